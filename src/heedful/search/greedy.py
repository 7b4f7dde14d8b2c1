"""Greedy search: the most probable symbol at each step."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from heedful.search.walk import Chooser


@dataclass(frozen=True)
class Greedy(Chooser):
    """Chooses the most probable symbol, of equals the one with the least id."""

    num_paths: int = 1

    def choose(self, log_probs: Float[Tensor, "B N V"], step: int) -> Int[Tensor, "B N"]:
        """Return the most probable symbol of each path."""
        return log_probs.argmax(dim=2)
