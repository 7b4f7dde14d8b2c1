"""Scaled dot-product attention (Vaswani et al. 2017, eq. 1) for all heads at once, by the quickest of equal ways."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from heedful.attention.dropout import Dropout
from heedful.attention.masks import AttentionMask
from heedful.attention.tap import ScopedTap
from heedful.attention.weights import biased_softmax, masked_softmax, zero_empty_rows

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
    if (dropout is not None and dropout.is_active) or not _is_fused_quicker(query, keys):
        return _attend_plain(query, keys, values, mask, dropout)
    return _attend_fused(query, keys, values, mask)


def _is_fused_quicker(query: Query, keys: Keys) -> bool:
    """Choose as benchmarks/attention_paths.py measured; on other devices torch's own choice is trusted."""
    if query.device.type != "cpu":
        return True
    return query.dtype != torch.bfloat16 or keys.shape[2] >= 1024


def _attend_watched(
    query: Query,
    keys: Keys,
    values: Values,
    mask: AttentionMask | None,
    dropout: Dropout | None,
    tap: ScopedTap,
) -> Query:
    """Spell out every step; the oracle of the other two."""
    scores_BHQK = tap.visit("scores", query @ keys.mT * query.shape[-1] ** -0.5)
    weights_BHQK = tap.visit("weights", masked_softmax(scores_BHQK, mask))
    return (weights_BHQK if dropout is None else dropout(weights_BHQK)) @ values


def _attend_plain(
    query: Query, keys: Keys, values: Values, mask: AttentionMask | None, dropout: Dropout | None
) -> Query:
    """Two batched products with a softmax between; scale and mask ride along in the first."""
    heads = query.shape[:2]
    query_ZQE, keys_ZKE, values_ZKE = query.flatten(0, 1), keys.flatten(0, 1), values.flatten(0, 1)
    scale = query.shape[-1] ** -0.5
    if mask is None:
        weights_ZQK = torch.bmm(query_ZQE * scale, keys_ZKE.mT).softmax(-1)
    else:
        bias = mask.folded_bias(query.dtype, heads[1])
        scores_ZQK = torch.baddbmm(bias, query_ZQE, keys_ZKE.mT, alpha=scale)
        weights_ZQK = biased_softmax(scores_ZQK.view(*heads, *scores_ZQK.shape[1:]), mask).flatten(0, 1)
    if dropout is not None:
        weights_ZQK = dropout(weights_ZQK)
    return torch.bmm(weights_ZQK, values_ZKE).view(query.shape)


def _attend_fused(query: Query, keys: Keys, values: Values, mask: AttentionMask | None) -> Query:
    """Let torch's kernel do it, which never holds all weights at once."""
    is_causal = mask is not None and mask.is_causal and query.shape[2] == keys.shape[2]
    bias = None if mask is None or is_causal else mask.bias(query.dtype)[:, None]
    context = functional.scaled_dot_product_attention(query, keys, values, attn_mask=bias, is_causal=is_causal)
    return zero_empty_rows(context, mask)
