"""``v . tanh(query + key)`` for every pair of query and key, with its backward pass written by hand."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

_PAIR_VALUES_AT_ONCE = 2**18
"""How many numbers are handled at once: few enough to stay in the processor's cache from one operation to the next."""


def score_pairs(
    query: Float[Tensor, "B Q M"], key: Float[Tensor, "B K M"], vector: Float[Tensor, " M"]
) -> Float[Tensor, "B Q K"]:
    """Return ``v . tanh(query + key)`` for every pair."""
    return PairScores.apply(query, key, vector)  # type: ignore[no-any-return, no-untyped-call]


class PairScores(torch.autograd.Function):
    """What additive scores spend their time on: ``B Q K M`` numbers, of which only the tanh is kept."""

    @staticmethod
    def forward(ctx: Any, query_BQM: Tensor, key_BKM: Tensor, vector_M: Tensor) -> Tensor:
        """Return the scores, ``B Q K``."""
        rows, queries, width = query_BQM.shape
        keys = key_BKM.shape[1]
        tanh_BQKM = query_BQM.new_empty(rows, queries, keys, width)
        scores_BQK = query_BQM.new_empty(rows, queries, keys)
        for part in _parts(tanh_BQKM):
            torch.add(query_BQM[part].unsqueeze(2), key_BKM[part].unsqueeze(1), out=tanh_BQKM[part]).tanh_()
            torch.mv(tanh_BQKM[part].view(-1, width), vector_M, out=scores_BQK[part].view(-1))
        ctx.save_for_backward(tanh_BQKM, vector_M)
        return scores_BQK

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_BQK: Tensor) -> Any:
        tanh_BQKM, vector_M = ctx.saved_tensors
        rows, queries, keys, width = tanh_BQKM.shape
        grad_BQK = grad_BQK.contiguous()
        grad_query = tanh_BQKM.new_empty(rows, queries, width)
        grad_key = tanh_BQKM.new_empty(rows, keys, width)
        for part in _parts(tanh_BQKM):
            slope = torch.ops.aten.tanh_backward(grad_BQK[part].unsqueeze(-1), tanh_BQKM[part])
            torch.sum(slope, dim=2, out=grad_query[part])
            torch.sum(slope, dim=1, out=grad_key[part])
        grad_vector = (grad_BQK.view(1, -1) @ tanh_BQKM.view(-1, width)).view(-1)
        return grad_query.mul_(vector_M), grad_key.mul_(vector_M), grad_vector


def _parts(pairs_BQKM: Tensor) -> list[slice]:
    """Return the rows in groups small enough to be handled at once."""
    rows = pairs_BQKM.shape[0]
    size = max(1, _PAIR_VALUES_AT_ONCE * rows // max(1, pairs_BQKM.numel()))
    return [slice(first, min(first + size, rows)) for first in range(0, rows, size)]
