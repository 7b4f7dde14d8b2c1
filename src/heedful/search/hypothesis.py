"""What a search gives back."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Hypothesis:
    """One finished output.

    Attributes:
        ids: its symbols without BOS and EOS, a forced prefix included.
        score: what hypotheses are ranked by: log-probability under the length and coverage penalties.
        log_prob: summed natural log-probability of all symbols, EOS included; with a `repetition_penalty`, of those
            that it left.
        is_complete: False where EOS was forced by a limit although the model preferred to go on: the output is cut.
        attention: weights over the source for each symbol, EOS last, ``len(ids) + 1`` rows; None unless asked for.
    """

    ids: tuple[int, ...]
    score: float
    log_prob: float
    is_complete: bool = True
    attention: Float[Tensor, "T S"] | None = None


DEAD_END = Hypothesis(ids=(), score=float("-inf"), log_prob=float("-inf"), is_complete=False)
"""Stands in for a line to which the model gave no possible output, so that a line in stays a line out."""


def rank(hypotheses: list[Hypothesis], num_best: int) -> list[Hypothesis]:
    """Return the best hypotheses, best first; of equals, the one found first."""
    return sorted(hypotheses, key=lambda each: -each.score)[:num_best] or [DEAD_END]
