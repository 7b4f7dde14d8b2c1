import pytest
import torch
from torch import Tensor

from heedful.attention import AttentionMask, Dropout, Tap, attend, padding_keep, scope_tap
from heedful.attention.attend import _FEW_QUERIES, _FUSED_FROM_KEYS, _attend_fused
from heedful.attention.masks import causal_keep, window_keep
from heedful.attention.short import attend_short
from heedful.attention.weights import masked_softmax

B, H, E = 2, 3, 5


class Watcher(Tap):
    """Sees the weights and leaves them as they are."""

    def wants(self, point: str) -> bool:
        return point == "here.weights"

    def visit(self, point: str, value: Tensor) -> Tensor:
        self.weights = value
        return value


def inputs(num_queries: int, num_keys: int, dtype: torch.dtype) -> list[Tensor]:
    torch.manual_seed(3)
    return [torch.randn(B, H, size, E).to(dtype).requires_grad_() for size in (num_queries, num_keys, num_keys)]


def masks(size: int) -> dict[str, AttentionMask | None]:
    padding = AttentionMask.padding(padding_keep(torch.tensor([size, size // 2]), size))
    causal = AttentionMask.causal(size)
    empty = AttentionMask.padding(padding_keep(torch.tensor([size, 0]), size))
    return {"none": None, "padding": padding, "causal": causal, "both": padding & causal, "empty row": empty}


@pytest.mark.parametrize("size", [7, 67])
@pytest.mark.parametrize("kind", masks(1))
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_all_ways_are_equal(dtype: torch.dtype, kind: str, size: int) -> None:
    tensors, mask = inputs(size, size, dtype), masks(size)[kind]
    tolerance = {torch.bfloat16: 3e-2, torch.float32: 1e-5, torch.float64: 1e-12}[dtype]
    watched = attend(*tensors, mask=mask, tap=scope_tap(Watcher(), "here"))
    direction = torch.randn_like(watched)
    expected = torch.autograd.grad(watched, tensors, direction)
    for context in (
        attend(*tensors, mask=mask),
        attend_short(*tensors, mask),
        _attend_fused(*tensors, mask, None),
    ):
        torch.testing.assert_close(context, watched, atol=tolerance, rtol=tolerance)
        for mine, theirs in zip(torch.autograd.grad(context, tensors, direction), expected, strict=True):
            torch.testing.assert_close(mine, theirs, atol=tolerance, rtol=tolerance)
    with torch.no_grad():
        torch.testing.assert_close(attend_short(*tensors, mask), watched, atol=tolerance, rtol=tolerance)


def test_by_hand() -> None:
    query = torch.tensor([[[[1.0, 1.0]]]])
    keys = torch.tensor([[[[2.0, 0.0], [0.0, 0.0], [9.0, 9.0]]]])
    values = torch.tensor([[[[1.0], [3.0], [7.0]]]]).expand(1, 1, 3, 2)
    weight = torch.sigmoid(torch.tensor(2 / 2**0.5))  # scores sqrt(2) and 0; the third key is not kept
    context = attend(query, keys, values, mask=AttentionMask.padding(torch.tensor([[True, True, False]])))
    torch.testing.assert_close(context, (weight * 1 + (1 - weight) * 3).expand(1, 1, 1, 2))


def test_dropout_drops_weights_alike_on_every_way() -> None:
    query, keys, values = inputs(7, 11, torch.float32)
    dropout, contexts = Dropout(0.5), []
    for tap in (None, scope_tap(Watcher(), "here")):
        torch.manual_seed(5)
        contexts.append(attend(query, keys, values, dropout=dropout, tap=tap))
    torch.testing.assert_close(*contexts)
    assert not torch.allclose(contexts[0], attend(query, keys, values))
    dropout.eval()
    assert torch.equal(attend(query, keys, values, dropout=dropout), attend(query, keys, values))


def test_the_fused_kernel_runs_for_many_queries_and_keys_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    fused = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        "torch.nn.functional.scaled_dot_product_attention",
        lambda *given, **named: called.append(given[1].shape[2]) or fused(*given, **named),
    )
    for dtype, limit in _FUSED_FROM_KEYS.items():
        for size in (limit - 1, limit):
            attend(*inputs(_FEW_QUERIES, size, dtype))
            attend(*inputs(_FEW_QUERIES + 1, size, dtype))
            attend(*inputs(_FEW_QUERIES + 1, size, dtype), dropout=Dropout(0.5))
            attend(*inputs(_FEW_QUERIES + 1, size, dtype), tap=scope_tap(Watcher(), "here"))
    assert called == list(_FUSED_FROM_KEYS.values())


def test_weights_sum_to_one_or_zero() -> None:
    torch.manual_seed(3)
    keep = padding_keep(torch.tensor([5, 2, 0]), 5)
    for scores in (torch.randn(3, 4, 5), torch.randn(3, 2, 4, 5)):
        weights = masked_softmax(scores, AttentionMask.padding(keep))
        sums = weights.sum(-1)
        torch.testing.assert_close(sums[:2], torch.ones_like(sums[:2]))
        assert not weights[2].any() and not weights[1, ..., 2:].any() and weights[1, ..., :2].all()


def test_masks_by_hand() -> None:
    def marks(keep: Tensor) -> list[str]:
        return ["".join(".x"[int(each)] for each in row) for row in keep.tolist()]

    assert marks(padding_keep(torch.tensor([2, 0, 3]), 3)) == ["xx.", "...", "xxx"]
    assert marks(causal_keep(2, 3)) == ["x..", "xx."]
    assert marks(causal_keep(2, 4, 2)) == ["xxx.", "xxxx"]
    assert marks(window_keep(3, 4, before=1, after=0)) == ["x...", "xx..", ".xx."]
    assert marks(window_keep(2, 5, before=0, after=1, offset=2)) == ["..xx.", "...xx"]


def test_a_bias_is_computed_once() -> None:
    mask = AttentionMask.padding(padding_keep(torch.tensor([2, 1]), 3))
    assert mask.bias(torch.float32) is mask.bias(torch.float32)
    assert mask.bias(torch.bfloat16).dtype == torch.bfloat16
    rows = torch.tensor([1, 1])
    assert mask.select(rows).bias(torch.float32).eq(0).tolist() == [[[True, False, False]]] * 2
