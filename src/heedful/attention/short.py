"""Scaled dot-product attention for sentences on a CPU: few keys, many rows.

With some twenty keys the products take almost no time and everything around them counts. Left to itself torch keeps and
copies more than is needed for the backward pass, so that is written out; and its softmax of short rows is slower in
bfloat16 than in float32.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from heedful.attention.masks import AttentionMask


def attend_short(
    query: Float[Tensor, "B H Q E"],
    keys: Float[Tensor, "B H K E"],
    values: Float[Tensor, "B H K E"],
    mask: AttentionMask | None,
    factors: Float[Tensor, "B H Q K"] | None = None,
) -> Float[Tensor, "B H Q E"]:
    """Return for each query the weighted mean of the values.

    Args:
        query: what asks.
        keys: what is compared with the query.
        values: what is averaged.
        mask: which keys each query may see; None lets it see all. A query that sees nothing gets zeros.
        factors: multiplied with the weights, for dropout.
    """
    dtype = torch.float32 if keys.shape[2] < _NARROW_FROM_KEYS and query.dtype == torch.bfloat16 else query.dtype
    bias = torch.zeros(1, 1, 1, dtype=dtype, device=query.device) if mask is None else mask.bias(dtype)
    empty = ~mask.is_nonempty if mask is not None and mask.has_empty_rows else None
    if not torch.is_grad_enabled():
        return _attend(query, keys, values, bias, empty, factors).context
    context: Tensor = _ShortAttention.apply(  # type: ignore[no-untyped-call]
        query, keys, values, bias, empty, None if factors is None else factors.detach()
    )
    return context


_NARROW_FROM_KEYS = 64
"""From how many keys on the softmax is quicker in bfloat16, whose kernel sums in float32 as well, than in float32."""


class _Steps(NamedTuple):
    """What comes of the steps of attention; rows and heads are folded into one axis Z."""

    query_ZQE: Tensor
    keys_ZKE: Tensor
    values_ZKE: Tensor
    weights_BHQK: Tensor
    kept_BHQK: Tensor
    context: Tensor


def _attend(
    query_BHQE: Tensor,
    keys_BHKE: Tensor,
    values_BHKE: Tensor,
    bias_BQK: Tensor,
    empty_BQ1: Tensor | None,
    factors_BHQK: Tensor | None,
) -> _Steps:
    query_ZQE, keys_ZKE, values_ZKE = (each.flatten(0, 1) for each in (query_BHQE, keys_BHKE, values_BHKE))
    scores_BHQK = torch.bmm(query_ZQE, keys_ZKE.mT).view(*query_BHQE.shape[:3], keys_BHKE.shape[2])
    biased_BHQK = torch.add(bias_BQK[:, None], scores_BHQK, alpha=query_BHQE.shape[3] ** -0.5)
    weights_BHQK = torch.softmax(biased_BHQK, -1)
    if empty_BQ1 is not None:
        weights_BHQK.masked_fill_(empty_BQ1[:, None], 0.0)
    kept_BHQK = weights_BHQK.to(query_BHQE.dtype)
    if factors_BHQK is not None:
        kept_BHQK = kept_BHQK * factors_BHQK
    context = torch.bmm(kept_BHQK.flatten(0, 1), values_ZKE).view(query_BHQE.shape)
    return _Steps(query_ZQE, keys_ZKE, values_ZKE, weights_BHQK, kept_BHQK, context)


class _ShortAttention(torch.autograd.Function):
    """The same with a backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        query_BHQE: Tensor,
        keys_BHKE: Tensor,
        values_BHKE: Tensor,
        bias_BQK: Tensor,
        empty_BQ1: Tensor | None,
        factors_BHQK: Tensor | None,
    ) -> Tensor:
        *steps, context = _attend(query_BHQE, keys_BHKE, values_BHKE, bias_BQK, empty_BQ1, factors_BHQK)
        ctx.save_for_backward(*steps, factors_BHQK)
        return context

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query_ZQE, keys_ZKE, values_ZKE, weights_BHQK, kept_BHQK, factors_BHQK = ctx.saved_tensors
        shape_BHQE = gradients[0].shape
        shape_BHKE = (*shape_BHQE[:2], *keys_ZKE.shape[1:])
        grad_ZQE = gradients[0].contiguous().flatten(0, 1)
        grad_weights_BHQK = torch.bmm(grad_ZQE, values_ZKE.mT).view(weights_BHQK.shape)
        if factors_BHQK is not None:
            grad_weights_BHQK = grad_weights_BHQK * factors_BHQK
        dtype = weights_BHQK.dtype
        grad_biased_BHQK = torch.ops.aten._softmax_backward_data(grad_weights_BHQK.to(dtype), weights_BHQK, -1, dtype)
        grad_scores_ZQK = grad_biased_BHQK.mul_(shape_BHQE[3] ** -0.5).to(query_ZQE.dtype).flatten(0, 1)
        grad_query_ZQE = torch.bmm(grad_scores_ZQK, keys_ZKE)
        grad_keys_ZKE = torch.bmm(grad_scores_ZQK.mT, query_ZQE)
        grad_values_ZKE = torch.bmm(kept_BHQK.flatten(0, 1).mT, grad_ZQE)
        return (
            grad_query_ZQE.view(shape_BHQE),
            grad_keys_ZKE.view(shape_BHKE),
            grad_values_ZKE.view(shape_BHKE),
            None,
            None,
            None,
        )
