import pytest
import torch
from torch import Tensor

from heedful.attention.masks import AttentionMask, causal_keep
from heedful.attention.short import attend_short
from heedful.attention.weights import masked_softmax

B, H, Q, E = 2, 3, 5, 7


def _inputs(num_keys: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(3)
    shapes = (B, H, Q, E), (B, H, num_keys, E), (B, H, num_keys, E)
    query, keys, values = (torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes)
    return query, keys, values


def _spelled_out(
    query: Tensor, keys: Tensor, values: Tensor, mask: AttentionMask | None, factors: Tensor | None
) -> Tensor:
    weights = masked_softmax(query @ keys.mT * E**-0.5, mask)
    return (weights if factors is None else weights * factors) @ values


def _masks(num_keys: int) -> list[AttentionMask | None]:
    padding = torch.ones(B, num_keys, dtype=torch.bool)
    padding[1, 2:] = False
    empty = padding.clone()
    empty[0] = False
    causal = AttentionMask(keep=causal_keep(Q, num_keys, 1)[None])
    return [None, AttentionMask.padding(padding), AttentionMask.padding(empty), causal]


@pytest.mark.parametrize("with_factors", [False, True])
@pytest.mark.parametrize("num_keys", [1, 11, 16])
def test_equals_the_steps_spelled_out(num_keys: int, with_factors: bool) -> None:
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 3e-2)):
        inputs = _inputs(num_keys, dtype)
        factors = torch.randint(0, 2, (B, H, Q, num_keys)).to(dtype) * 1.25 if with_factors else None
        for mask in _masks(num_keys):
            mine, theirs = attend_short(*inputs, mask, factors), _spelled_out(*inputs, mask, factors)
            torch.testing.assert_close(mine, theirs, rtol=tolerance, atol=tolerance)
            direction = torch.randn_like(mine)
            for one, other in zip(
                torch.autograd.grad(mine, inputs, direction),
                torch.autograd.grad(theirs, inputs, direction),
                strict=True,
            ):
                torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_a_query_that_sees_nothing_gets_zeros() -> None:
    query, keys, values = _inputs(4, torch.float32)
    mask = AttentionMask.padding(torch.tensor([[True] * 4, [False] * 4]))
    context = attend_short(query, keys, values, mask)
    assert not context[1].any() and context[0].all()
