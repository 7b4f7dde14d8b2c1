"""Attention with one head over vectors as they are: what recurrent decoders and pooling use."""

from dataclasses import replace

from jaxtyping import Float
from torch import Tensor, nn

from heedful.attention.local import Locality, Nearby
from heedful.attention.masks import AttentionMask
from heedful.attention.scores import Score
from heedful.attention.tap import Gates, ScopedTap
from heedful.attention.weights import masked_softmax


class SingleHeadAttention(nn.Module):
    """Score, softmax, weighted sum (Bahdanau et al. 2015, equations 5 and 6), seen by taps as one head.

    The points are ``query``, ``value``, ``scores``, ``weights`` and ``context``, with one head: ``B 1 Q ..``; also
    ``factor`` (``B 1 Q K``), before the weights, where the locality lessens them.

    Args:
        score: gives the scores.
        locality: says where each query may look (Luong et al. 2015, section 3.2); None means everywhere.
    """

    def __init__(self, score: Score, locality: Locality | None = None) -> None:
        super().__init__()
        self.score = score
        self.locality = locality

    def prepare(self, keys_BKD: Float[Tensor, "B K D"]) -> Tensor:
        """Do once what every query needs of the keys."""
        prepared: Tensor = self.score.prepare(keys_BKD)
        return prepared

    def forward(
        self,
        query_BQD: Float[Tensor, "B Q I"],
        prepared: Tensor,
        values_BKD: Float[Tensor, "B K D"],
        mask: AttentionMask,
        *,
        step: int | None = None,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B Q D"]:
        """Return a context for each query; zeros where the mask keeps nothing.

        The queries are the positions of a target from its first on, or, where a ``step`` is given, hypotheses that all
        stand at that position.
        """
        query_BQD, values_BKD = _visit(tap, "query", query_BQD), _visit(tap, "value", values_BKD)
        scores_BQK = _visit(tap, "scores", self.score(query_BQD, prepared))
        if self.locality is None:
            weights_BQK = masked_softmax(scores_BQK, mask)
        else:
            nearby = _look_around(self.locality, query_BQD, mask, step)
            if nearby.factor is not None:
                nearby = replace(nearby, factor=_visit(tap, "factor", nearby.factor))
            weights_BQK = nearby.lessen(masked_softmax(scores_BQK, mask & nearby.mask))
        context_BQD = _visit(tap, "weights", weights_BQK) @ values_BKD
        context_BQD = _visit(tap, "context", context_BQD)
        gate = None if gates is None else gates.here()
        return context_BQD if gate is None else context_BQD * gate.to(context_BQD)


def _look_around(locality: Locality, query_BQD: Tensor, mask: AttentionMask, step: int | None) -> Nearby:
    """Ask the locality where the queries may look, hypotheses as rows of their own."""
    lengths, num_keys = mask.keep.sum(dim=(1, 2)), mask.keep.shape[2]
    if step is None:
        return locality(query_BQD, 0, lengths, num_keys)  # type: ignore[no-any-return]
    rows, queries, width = query_BQD.shape
    nearby = locality(query_BQD.reshape(-1, 1, width), step, lengths.repeat_interleave(queries), num_keys)
    factor = None if nearby.factor is None else nearby.factor.view(rows, queries, num_keys)
    return Nearby(AttentionMask(keep=nearby.mask.keep.view(rows, queries, num_keys)), factor)


def _visit(tap: ScopedTap | None, point: str, value: Tensor) -> Tensor:
    """Show a tensor ``B Q ...`` to the tap as that of one head."""
    return value if tap is None else tap.visit(point, value.unsqueeze(1)).squeeze(1)
