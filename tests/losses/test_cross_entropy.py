import pytest
import torch
from torch import Tensor
from torch.nn import functional

from heedful.core.types import SoftTargets
from heedful.losses import classification_loss, cross_entropy

N, D, V = 13, 5, 17


def make(dtype: torch.dtype, *, bias: bool = True, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    torch.manual_seed(7)
    hidden = (scale * torch.randn(N, D)).to(dtype).requires_grad_()
    weight = torch.randn(V, D).to(dtype).requires_grad_()
    return hidden, weight, torch.randn(V).to(dtype).requires_grad_() if bias else None, torch.randint(V, (N,))


def test_by_hand() -> None:
    hidden, weight = torch.tensor([[1.0], [0.0]]), torch.tensor([[0.0], [2.0], [1.0]])
    # Logits are (0, 2, 1) and (0, 0, 0).
    loss = cross_entropy(hidden, weight, None, torch.tensor([1, 2]))
    expected = torch.log(1 + torch.tensor(2.0).exp() + torch.tensor(1.0).exp()) - 2 + torch.tensor(3.0).log()
    torch.testing.assert_close(loss.total, expected)
    assert loss.count.item() == 2


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk_rows", [1, 4, 13, 100])
def test_equals_torch(bias: bool, smoothing: float, chunk_rows: int) -> None:
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 2e-6)):
        hidden, weight, offset, targets = make(dtype, bias=bias)
        inputs = [each for each in (hidden, weight, offset) if each is not None]
        loss = cross_entropy(hidden, weight, offset, targets, label_smoothing=smoothing, chunk_rows=chunk_rows)
        logits = functional.linear(hidden, weight, offset)
        expected = functional.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
        torch.testing.assert_close(loss.total, expected, rtol=tolerance, atol=tolerance)
        mean = loss.total / loss.count
        for mine, theirs in zip(
            torch.autograd.grad(mean, inputs), torch.autograd.grad(expected / N, inputs), strict=True
        ):
            torch.testing.assert_close(mine, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_teachers_word_is_a_second_target(share: float) -> None:
    hidden, weight, bias, targets = make(torch.float64)
    teacher = torch.softmax(torch.randn(N, V, dtype=torch.float64), -1)
    probs, ids = teacher.topk(4)
    ids[0], probs[0] = targets[0] + torch.arange(4) - (targets[0] > V - 4) * 3, 0.2  # the target is among them
    soft = SoftTargets(ids=ids, probs=probs, share=share)
    loss = cross_entropy(hidden, weight, bias, targets, label_smoothing=0.1, soft=soft, chunk_rows=5)
    # By the formula: both distributions written out over the whole vocabulary.
    wanted = (1 - probs.sum(-1, keepdim=True)).expand(N, V) / V
    wanted = wanted.scatter_add(1, ids, probs)
    smooth = 0.1 / V + 0.9 * functional.one_hot(targets, V)
    log_probs = functional.linear(hidden, weight, bias).log_softmax(-1)
    expected = -((share * wanted + (1 - share) * smooth) * log_probs).sum()
    torch.testing.assert_close(loss.total, expected)
    inputs = (hidden, weight, bias)
    for mine, theirs in zip(
        torch.autograd.grad(loss.total, inputs), torch.autograd.grad(expected, inputs), strict=True
    ):
        torch.testing.assert_close(mine, theirs)


def test_gradcheck() -> None:
    hidden, weight, bias, targets = make(torch.float64)
    assert torch.autograd.gradcheck(
        lambda *tensors: cross_entropy(*tensors, targets, label_smoothing=0.2, chunk_rows=5).total,
        (hidden, weight, bias),
    )


def test_bf16_stays_near_float64() -> None:
    hidden, weight, bias, targets = make(torch.bfloat16)
    exact = [each.detach().double().requires_grad_() for each in (hidden, weight, bias)]
    loss = cross_entropy(hidden, weight, bias, targets, chunk_rows=4)
    expected = functional.cross_entropy(functional.linear(*exact), targets, reduction="sum")
    assert loss.total.dtype == torch.float32
    torch.testing.assert_close(loss.total.double(), expected, rtol=1e-2, atol=0)
    for mine, theirs in zip(
        torch.autograd.grad(loss.total, (hidden, weight, bias)), torch.autograd.grad(expected, exact), strict=True
    ):
        torch.testing.assert_close(mine.double(), theirs, rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_certain_mistakes_stay_finite(dtype: torch.dtype) -> None:
    hidden, weight, bias, targets = make(dtype, scale=1000.0)
    loss = cross_entropy(hidden, weight, bias, targets, label_smoothing=0.1)
    expected = functional.cross_entropy(
        functional.linear(hidden.double(), weight.double(), bias.double()),
        targets,
        reduction="sum",
        label_smoothing=0.1,
    )
    torch.testing.assert_close(loss.total.double(), expected, rtol=1e-2, atol=0)
    loss.total.backward()
    assert torch.isfinite(hidden.grad).all()


def test_no_rows() -> None:
    hidden, weight, bias, targets = make(torch.float32)
    loss = cross_entropy(hidden[:0], weight, bias, targets[:0])
    loss.total.backward()
    assert loss.total.item() == 0 and loss.count.item() == 0 and weight.grad.abs().sum() == 0


def test_scoring_needs_no_gradient() -> None:
    hidden, weight, bias, targets = make(torch.float32)
    with torch.inference_mode():
        scored = cross_entropy(hidden, weight, bias, targets)
    torch.testing.assert_close(scored.total, cross_entropy(hidden, weight, bias, targets).total.detach())


def test_classification() -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
    loss = classification_loss(logits, torch.tensor([2, 0]))
    expected = torch.log(1 + torch.tensor(1.0).exp() + torch.tensor(2.0).exp()) - 2 + torch.tensor(3.0).log()
    torch.testing.assert_close(loss.total, expected)
    assert loss.count.item() == 2
