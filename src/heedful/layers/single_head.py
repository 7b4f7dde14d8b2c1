"""Attention with one head over vectors as they are: what recurrent decoders and pooling use."""

from jaxtyping import Float
from torch import Tensor, nn

from heedful.attention.masks import AttentionMask
from heedful.attention.scores import Score
from heedful.attention.tap import Gates, ScopedTap
from heedful.attention.weights import masked_softmax


class SingleHeadAttention(nn.Module):
    """Score, softmax, weighted sum (Bahdanau et al. 2015, equations 5 and 6), seen by taps as one head.

    The points are ``query``, ``scores``, ``weights`` and ``context``, with an axis of one head: ``B 1 Q ...``.

    Args:
        score: gives the scores.
    """

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.score = score

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
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B Q D"]:
        """Return a context for each query; zeros where the mask keeps nothing."""
        scores_BQK = self.score(_visit(tap, "query", query_BQD), prepared)
        weights_BQK = masked_softmax(_visit(tap, "scores", scores_BQK), mask)
        context_BQD = _visit(tap, "weights", weights_BQK) @ values_BKD
        context_BQD = _visit(tap, "context", context_BQD)
        gate = None if gates is None else gates.here()
        return context_BQD if gate is None else context_BQD * gate.to(context_BQD.dtype)


def _visit(tap: ScopedTap | None, point: str, value: Tensor) -> Tensor:
    """Show a tensor ``B Q ...`` to the tap as that of one head."""
    return value if tap is None else tap.visit(point, value.unsqueeze(1)).squeeze(1)
