"""Pooling: by hand, without a look at padding, and zeros where there is nothing."""

import pytest
import torch
from torch import Tensor

from heedful.attention.tap import Gates, ScopedTap, Tap
from heedful.layers.pooling import AttentionPooling, MaxPooling, PoolingName, build_pooling

NAMES: list[PoolingName] = ["mean", "max", "first", "attention"]
VALUES = torch.tensor([[[1.0, -4.0], [3.0, -2.0], [9.0, 9.0]], [[5.0, 6.0], [9.0, 9.0], [9.0, 9.0]]])
KEEP = torch.tensor([[True, True, False], [True, False, False]])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mean", [[2.0, -3.0], [5.0, 6.0]]), ("max", [[3.0, -2.0], [5.0, 6.0]]), ("first", [[1.0, -4.0], [5.0, 6.0]])],
)
def test_by_hand(name: PoolingName, expected: list[list[float]]) -> None:
    torch.testing.assert_close(build_pooling(name, 2)(VALUES, KEEP), torch.tensor(expected))


def test_attention_by_hand() -> None:
    pooling = AttentionPooling(2)
    with torch.no_grad():
        pooling.inner.weight.copy_(torch.eye(2))
        pooling.inner.bias.zero_()
        pooling.vector.copy_(torch.tensor([1.0, 0.0]))
    # scores tanh(1) = 0.76159 and tanh(3) = 0.99505: weights 0.44188 and 0.55812
    pooled = pooling(VALUES, KEEP)
    torch.testing.assert_close(pooled[0], torch.tensor([2.11624, -2.88376]), atol=1e-4, rtol=0)
    torch.testing.assert_close(pooled[1], VALUES[1, 0])


@pytest.mark.parametrize("name", NAMES)
def test_padding_is_not_looked_at(name: PoolingName) -> None:
    pooling = build_pooling(name, 2)
    other = VALUES.masked_fill(~KEEP[:, :, None], -77.0)
    assert torch.equal(pooling(other, KEEP), pooling(VALUES, KEEP))


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_row_gives_zeros_and_finite_gradients(name: PoolingName) -> None:
    values = VALUES.clone().requires_grad_()
    pooled = build_pooling(name, 2)(values, torch.tensor([[False] * 3, [True] * 3]))
    assert (pooled[0] == 0).all() and pooled[1].any()
    pooled.sum().backward()
    assert values.grad is not None and values.grad.isfinite().all()


class Uniform(Tap):
    def wants(self, point: str) -> bool:
        return point == "pooling.weights"

    def visit(self, point: str, value: Tensor) -> Tensor:
        return KEEP[:, None, None] / KEEP.sum(1)[:, None, None, None]


def test_a_tap_makes_attention_a_mean_and_a_gate_silences_it() -> None:
    pooling = AttentionPooling(2)
    mean = build_pooling("mean", 2)(VALUES, KEEP)
    torch.testing.assert_close(pooling(VALUES, KEEP, tap=ScopedTap(Uniform(), "pooling")), mean)
    closed = Gates({"pooling": torch.zeros(1)}).scope("pooling")
    assert not pooling(VALUES, KEEP, gates=closed).any()


def test_max_passes_values_below_zero() -> None:
    assert MaxPooling()(-torch.ones(1, 2, 3), torch.tensor([[True, False]])).tolist() == [[-1.0, -1.0, -1.0]]


def test_a_gate_of_another_type_does_not_change_that_of_the_output() -> None:
    pooling = AttentionPooling(2)
    half = Gates({"pooling": torch.full((1,), 0.5, dtype=torch.float64)}).scope("pooling")
    gated = pooling(VALUES, KEEP, gates=half)
    assert gated.dtype == torch.float32
    torch.testing.assert_close(gated, pooling(VALUES, KEEP) / 2)
