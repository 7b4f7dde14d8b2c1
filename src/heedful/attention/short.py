"""Scaled dot-product attention for sentences on a CPU: few keys, many rows.

With some twenty keys the products take almost no time and everything around them counts. torch's softmax is five to
twenty times slower on rows whose length is no multiple of its vector width (16 float32 numbers), and slower in bfloat16
than in float32; so keys are padded to that width, the softmax runs in float32, and the backward pass is written out.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from heedful.attention.masks import AttentionMask

_VECTOR_WIDTH = 16


def attend_short(
    query: Float[Tensor, "B H Q E"],
    keys: Float[Tensor, "B H K E"],
    values: Float[Tensor, "B H K E"],
    mask: AttentionMask | None,
    factors: Float[Tensor, "B H Q K"] | None,
) -> Float[Tensor, "B H Q E"]:
    """Return for each query the weighted mean of the values.

    Args:
        query: what asks.
        keys: what is compared with the query.
        values: what is averaged.
        mask: which keys each query may see; None lets it see all. A query that sees nothing gets zeros.
        factors: multiplied with the weights, for dropout.
    """
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    width = -(-keys.shape[2] // _VECTOR_WIDTH) * _VECTOR_WIDTH
    if mask is None:
        mask = AttentionMask(keep=torch.ones(1, 1, keys.shape[2], dtype=torch.bool, device=keys.device))
    empty_BQ1 = ~mask.is_nonempty if mask.has_empty_rows else None
    if factors is not None:
        factors = _pad(factors.detach(), width, axis=3)
    context: Tensor = _ShortAttention.apply(  # type: ignore[no-untyped-call]
        query, keys, values, mask.padded_bias(wide, width), empty_BQ1, factors
    )
    return context


def _pad(tensor: Tensor, size: int, *, axis: int) -> Tensor:
    """Return the tensor with zeros up to a size on one axis; contiguous, and a copy only where there is need of one."""
    missing = size - tensor.shape[axis]
    if missing == 0:
        return tensor
    return functional.pad(tensor, [0, 0] * (tensor.ndim - 1 - axis) + [0, missing])


class _ShortAttention(torch.autograd.Function):
    """Rows and heads are folded into one axis Z; keys are padded from K to P."""

    @staticmethod
    def forward(
        ctx: Any,
        query_BHQE: Tensor,
        keys_BHKE: Tensor,
        values_BHKE: Tensor,
        bias_BQP: Tensor,
        empty_BQ1: Tensor | None,
        factors_BHQP: Tensor | None,
    ) -> Tensor:
        width = bias_BQP.shape[2]
        folded_BHQP = (*query_BHQE.shape[:3], width)
        query_ZQE = query_BHQE.flatten(0, 1)
        keys_ZPE = _pad(keys_BHKE.flatten(0, 1), width, axis=1)
        values_ZPE = _pad(values_BHKE.flatten(0, 1), width, axis=1)
        scores_BHQP = torch.bmm(query_ZQE, keys_ZPE.mT).view(folded_BHQP)
        biased_BHQP = torch.add(bias_BQP[:, None], scores_BHQP, alpha=query_BHQE.shape[3] ** -0.5)
        weights_BHQP = torch.softmax(biased_BHQP, -1)
        if empty_BQ1 is not None:
            weights_BHQP.masked_fill_(empty_BQ1[:, None], 0.0)
        kept_BHQP = weights_BHQP.to(query_BHQE.dtype)
        if factors_BHQP is not None:
            kept_BHQP = kept_BHQP * factors_BHQP
        ctx.save_for_backward(query_ZQE, keys_ZPE, values_ZPE, weights_BHQP, kept_BHQP, factors_BHQP)
        ctx.num_keys = keys_BHKE.shape[2]
        return torch.bmm(kept_BHQP.flatten(0, 1), values_ZPE).view(query_BHQE.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query_ZQE, keys_ZPE, values_ZPE, weights_BHQP, kept_BHQP, factors_BHQP = ctx.saved_tensors
        shape_BHQE = gradients[0].shape
        grad_ZQE = gradients[0].contiguous().flatten(0, 1)
        grad_weights_BHQP = torch.bmm(grad_ZQE, values_ZPE.mT).view(weights_BHQP.shape)
        if factors_BHQP is not None:
            grad_weights_BHQP = grad_weights_BHQP * factors_BHQP
        wide = weights_BHQP.dtype
        grad_biased_BHQP = torch.ops.aten._softmax_backward_data(grad_weights_BHQP.to(wide), weights_BHQP, -1, wide)
        grad_scores_ZQP = (grad_biased_BHQP.mul_(shape_BHQE[3] ** -0.5)).to(query_ZQE.dtype).flatten(0, 1)
        grad_query_ZQE = torch.bmm(grad_scores_ZQP, keys_ZPE)
        grad_keys_ZPE = torch.bmm(grad_scores_ZQP.mT, query_ZQE)
        grad_values_ZPE = torch.bmm(kept_BHQP.flatten(0, 1).mT, grad_ZQE)
        shape_BHKE = (*shape_BHQE[:2], ctx.num_keys, shape_BHQE[3])
        return (
            grad_query_ZQE.view(shape_BHQE),
            grad_keys_ZPE[:, : ctx.num_keys].view(shape_BHKE),
            grad_values_ZPE[:, : ctx.num_keys].view(shape_BHKE),
            None,
            None,
            None,
        )
