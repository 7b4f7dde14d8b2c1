"""Scaled dot-product attention (Vaswani et al. 2017, eq. 1) for all heads at once, by the quickest of equal ways."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from heedful.attention.dropout import Dropout
from heedful.attention.masks import AttentionMask
from heedful.attention.short import attend_short
from heedful.attention.tap import ScopedTap
from heedful.attention.weights import masked_softmax, zero_empty_rows

Query = Float[Tensor, "B H Q E"]
Keys = Float[Tensor, "B H K E"]
Values = Float[Tensor, "B H K E"]


def attend(
    query: Query,
    keys: Keys,
    values: Values,
    *,
    mask: AttentionMask | None = None,
    dropout: Dropout | None = None,
    tap: ScopedTap | None = None,
) -> Query:
    """Return for each query the mean of the values, weighted by ``softmax(query . keys / sqrt(E))``.

    Args:
        query: what asks.
        keys: what is compared with the query.
        values: what is averaged.
        mask: which keys each query may see; None lets it see all. A query that sees nothing gets zeros.
        dropout: applied to the weights, when it is active.
        tap: scores and weights are shown to it, and may be replaced by it, when it wants them.
    """
    if tap is not None and (tap.wants("scores") or tap.wants("weights")):
        return _attend_watched(query, keys, values, mask, dropout, tap)
    dropping = dropout if dropout is not None and dropout.is_active else None
    if _is_fused_quicker(query, keys, dropping):
        return _attend_fused(query, keys, values, mask, dropping)
    factors = None if dropping is None else dropping.factors(torch.Size((*query.shape[:3], keys.shape[2])), query)
    return attend_short(query, keys, values, mask, factors)


_FEW_QUERIES = 8
"""Up to how many queries (the steps of a search) the fused kernel is never worth its start on a CPU."""

_FUSED_FROM_KEYS = {torch.bfloat16: 1536, torch.float32: 256, torch.float64: 256}
"""From how many keys on the fused kernel is the quicker on a CPU, as benchmarks/attention_paths.py measured."""


def _is_fused_quicker(query: Query, keys: Keys, dropping: Dropout | None) -> bool:
    """Choose by device, type, length and dropout, which torch's kernels draw slowly on a CPU."""
    if query.device.type != "cpu":
        return True
    if dropping is not None or query.shape[2] <= _FEW_QUERIES:
        return False
    return keys.shape[2] >= _FUSED_FROM_KEYS.get(query.dtype, 256)


def _attend_watched(
    query: Query,
    keys: Keys,
    values: Values,
    mask: AttentionMask | None,
    dropout: Dropout | None,
    tap: ScopedTap,
) -> Query:
    """Spell out every step; the oracle of the others."""
    scores_BHQK = tap.visit("scores", query @ keys.mT * query.shape[-1] ** -0.5)
    weights_BHQK = tap.visit("weights", masked_softmax(scores_BHQK, mask))
    return (weights_BHQK if dropout is None else dropout(weights_BHQK)) @ values


def _attend_fused(
    query: Query, keys: Keys, values: Values, mask: AttentionMask | None, dropping: Dropout | None
) -> Query:
    """Let torch's kernel do it, which never holds all weights at once."""
    is_causal = mask is not None and mask.is_causal and query.shape[2] == keys.shape[2]
    bias = None if mask is None or is_causal else mask.bias(query.dtype)[:, None]
    context = functional.scaled_dot_product_attention(
        query,
        keys,
        values,
        attn_mask=bias,
        is_causal=is_causal,
        dropout_p=0.0 if dropping is None else dropping.effective_probability,
    )
    return zero_empty_rows(context, mask)
