import pytest
import torch

from heedful.attention import Dropout
from heedful.core.errors import ConfigError

DTYPES = [torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5, 0.9])
def test_rate_and_scale(dtype: torch.dtype, probability: float) -> None:
    torch.manual_seed(3)
    dropout = Dropout(probability)
    dropped = dropout(torch.ones(331, 997, dtype=dtype))
    assert dropout.effective_probability == pytest.approx(probability, abs=4e-3)
    assert set(dropped.unique().tolist()) == {0.0, dropout.scale}
    rate = (dropped == 0).double().mean().item()
    deviation = (probability * (1 - probability) / dropped.numel()) ** 0.5
    assert abs(rate - dropout.effective_probability) < 4 * deviation
    assert dropped.double().mean().item() == pytest.approx(1, abs=4 * deviation * dropout.scale)


@pytest.mark.parametrize("dtype", DTYPES)
def test_draws_do_not_depend_on_each_other(dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    dropout, size = Dropout(0.5), 2**18
    first, second = (2 * (dropout(torch.ones(size, dtype=dtype)) == 0).double() - 1 for _ in range(2))
    limit = 5 * size**-0.5
    assert abs((first * second).mean().item()) < limit
    for lag in (1, 2, 3, 4, 8, 25, 64, 256, 1024, 4096, 65536):
        assert abs((first[lag:] * first[:-lag]).mean().item()) < limit, lag
    # Sums over rows and columns spread as sums of independent draws do.
    for axis in (0, 1):
        sums = first.view(512, 512).sum(axis)
        assert sums.var().item() / 512 == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_are_dropped_independently_from_draw_to_draw(dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    dropout, draws = Dropout(0.3), 3001
    dropped = torch.stack([dropout(torch.ones(97, dtype=dtype)) == 0 for _ in range(draws)]).double()
    centred = (dropped - dropout.effective_probability) / (dropout.effective_probability / dropout.scale) ** 0.5
    products = centred.T @ centred / draws  # near the identity; neighbours may be two halves of one word
    limit = 5 * draws**-0.5
    assert (products - torch.eye(97)).fill_diagonal_(0).abs().max().item() < limit
    assert centred.mean(0).abs().max().item() < limit
    triples = (centred[:, :-2] * centred[:, 1:-1] * centred[:, 2:]).mean(0)
    assert triples.abs().max().item() < limit


def test_a_long_row_takes_several_tables() -> None:
    """No table's pattern comes again in the next."""
    torch.manual_seed(3)
    dropped = (Dropout(0.5)(torch.ones(3 * 2**18)) == 0).view(3, -1)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        share = (dropped[first] == dropped[second]).double().mean().item()
        assert share == pytest.approx(0.5, abs=5 * 2**-10)


def test_the_generator_alone_decides() -> None:
    dropout, values = Dropout(0.3), torch.randn(13, 17)
    torch.manual_seed(3)
    state = torch.get_rng_state()
    first, second = dropout(values), dropout(values)
    torch.set_rng_state(state)
    assert torch.equal(dropout(values), first) and torch.equal(dropout(values), second)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradient_is_dropped_alike(dtype: torch.dtype) -> None:
    dropout = Dropout(0.3)
    values = torch.ones(7, 11, 3, dtype=dtype).transpose(0, 1).requires_grad_()
    dropped = dropout(values)
    dropped.sum().backward()
    assert torch.equal(values.grad, dropped.detach())


def test_evaluation_and_zero_leave_the_values_alone() -> None:
    values = torch.randn(3, 5)
    assert Dropout(0.5).eval()(values) is values
    assert Dropout(0.0)(values) is values
    assert Dropout(0.5)(values[:0]).shape == (0, 5)


def test_a_probability_of_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="`dropout` must be at least 0 and less than 1, but is 1"):
        Dropout(1.0)


def test_adding_to_a_residual_equals_dropping_then_adding() -> None:
    dropout = Dropout(0.3)
    residual, values = torch.randn(7, 11), torch.randn(7, 11, requires_grad=True)
    torch.manual_seed(3)
    expected = residual + dropout(values)
    torch.manual_seed(3)
    added = dropout.add(residual, values)
    torch.testing.assert_close(added, expected)
    direction = torch.randn_like(added)
    torch.testing.assert_close(
        *(torch.autograd.grad(each, values, direction, retain_graph=True)[0] for each in (added, expected))
    )
    assert torch.equal(dropout.eval().add(residual, values), residual + values)
