"""From scores to weights. This file alone decides what a query gets that may see nothing: weights of zero."""

from jaxtyping import Float
from torch import Tensor

from heedful.attention.masks import AttentionMask


def masked_softmax(scores: Float[Tensor, "*heads Q K"], mask: AttentionMask | None) -> Float[Tensor, "*heads Q K"]:
    """Return weights over the keys that the mask keeps; each row sums to 1, or to 0 where nothing is kept.

    Scores are ``B Q K`` or ``B H Q K``. The softmax kernel sums in float32 whatever the type of the scores.
    """
    if mask is None:
        return scores.softmax(-1)
    bias = mask.bias(scores.dtype)
    return biased_softmax(scores + (bias if scores.ndim == 3 else bias[:, None]), mask)


def biased_softmax(
    biased_scores: Float[Tensor, "*heads Q K"], mask: AttentionMask | None
) -> Float[Tensor, "*heads Q K"]:
    """Do the same for scores to which the mask's bias is already added."""
    return zero_empty_rows(biased_scores.softmax(-1), mask)


def zero_empty_rows(rows: Float[Tensor, "*heads Q X"], mask: AttentionMask | None) -> Float[Tensor, "*heads Q X"]:
    """Return weights, or contexts made from them, with zeros for each query that may see nothing."""
    if mask is None or not mask.has_empty_rows:
        return rows
    nonempty = mask.is_nonempty
    return rows.masked_fill(~(nonempty if rows.ndim == 3 else nonempty[:, None]), 0.0)
