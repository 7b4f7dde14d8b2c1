"""Attention in numbers: what one attention computed, kept exactly, so that a page can follow it step by step.

The page recomputes what follows from what: scores from queries and keys, weights from scores (and the factors of local
attention), the context from weights and values; and holds the outcome against what the model recorded.
"""

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor

from heedful.analysis.lens import LensNumbers
from heedful.analysis.lens_matrix import Matrix
from heedful.analysis.lens_norms import transform_values
from heedful.attention.multihead import MultiHeadAttention
from heedful.models.interfaces import AttentionSite

FAINTEST = -80.0
"""A kept key whose score is so far below the best may get a weight of 0 in float32; one above it that has 0 is hidden
by a mask."""


def numbers_of(
    site: AttentionSite,
    points: Mapping[str, Float[Tensor, "H P X"]],
    attention: MultiHeadAttention | None,
    *,
    with_share: bool = True,
) -> LensNumbers:
    """Return the numbers of one attention.

    Args:
        site: the attention.
        points: what was recorded of one row by the last part of each point's name, padding cut off.
        attention: where it has heads with an output projection.
        with_share: keep what each head adds to the new vector.
    """
    context, key = points["context"], points.get("key")
    share = None
    if attention is not None and with_share:
        share = transform_values(context, attention)
    query, factor = points.get("query"), points.get("factor")
    return LensNumbers(
        path=site.path,
        query=None if query is None else Matrix.pack(query, "f4"),
        key=None if key is None else Matrix.pack(key, "f4"),
        value=Matrix.pack(points["value"], "f4"),
        scores=Matrix.pack(points["scores"], "f4") if key is None else None,
        keep=Matrix.pack(_kept(points["weights"], points["scores"]).float(), "u1"),
        factor=None if factor is None else Matrix.pack(factor, "f4"),
        context=Matrix.pack(context, "f4"),
        share=None if share is None else Matrix.pack(share, "f4"),
    )


def _kept(weights: Float[Tensor, "H Q K"], scores: Float[Tensor, "H Q K"]) -> Tensor:
    """Return which keys each query may see, ``1 Q K``: the mask itself is not shown to taps, but its work is."""
    is_seen = weights > 0
    best = scores.masked_fill(~is_seen, float("-inf")).amax(-1, keepdim=True)
    return (is_seen | (scores - best < FAINTEST)).all(0, keepdim=True)
