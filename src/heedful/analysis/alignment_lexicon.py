"""Words of two languages, and how often one was written where the other stands."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

RAREST = 1e-6
"""Probability of a word that was never seen."""


def fold(word: str) -> str:
    """Return the form under which words are counted: capitals are not told apart."""
    return word.casefold()


@dataclass(frozen=True)
class Vocabulary:
    """The words of one language that occurred, folded.

    Attributes:
        words: each once; its place is its number.
        shares: of all words that occurred, by number; the last is that of any unknown word.
    """

    words: tuple[str, ...]
    shares: Float[Tensor, " W"]
    _numbers: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_numbers", {word: number for number, word in enumerate(self.words)})

    @classmethod
    def of(cls, lines: Iterable[Sequence[str]]) -> "Vocabulary":
        """Count the words of lines."""
        counts = Counter(fold(word) for line in lines for word in line)
        shares = torch.tensor([*counts.values(), 0], dtype=torch.float32)
        return cls(tuple(counts), (shares / shares.sum()).clamp(min=RAREST))

    @property
    def unknown(self) -> int:
        """The number that stands for every unknown word."""
        return len(self.words)

    def numbers(self, words: Sequence[str]) -> list[int]:
        """Return the number of each word."""
        return [self._numbers.get(fold(word), self.unknown) for word in words]


@dataclass(frozen=True)
class Lexicon:
    """How often words of two languages were links of one another, as far as can be told.

    Attributes:
        codes: of the pairs of words, in order: source word times (target words + 1) plus target word.
        counts: expected number of links of each pair.
        num_sources: words of the source's vocabulary.
        num_targets: words of the target's vocabulary.
    """

    codes: Int[Tensor, " X"]
    counts: Float[Tensor, " X"]
    num_sources: int
    num_targets: int

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def source_totals(self) -> Float[Tensor, " W"]:
        """Expected number of links of each source word; 0 for the unknown one."""
        return self._totals(self.codes // (self.num_targets + 1), self.num_sources + 1)

    @cached_property
    def target_totals(self) -> Float[Tensor, " W"]:
        """Expected number of links of each target word; 0 for the unknown one."""
        return self._totals(self.codes % (self.num_targets + 1), self.num_targets + 1)

    def _totals(self, words: Int[Tensor, " X"], number: int) -> Float[Tensor, " W"]:
        return torch.zeros(number, dtype=torch.float64).index_add_(0, words, self.counts.double()).float()

    def find(self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]) -> Int[Tensor, "B T S"]:
        """Return the place of each pair of words of each pair of lines; ``len(self)`` where it is not here."""
        codes = source[:, None, :] * (self.num_targets + 1) + target[:, :, None]
        if not len(self):
            return torch.zeros_like(codes)
        places = torch.searchsorted(self.codes, codes)
        return torch.where(self.codes[places.clamp(max=len(self) - 1)] == codes, places, len(self))

    def counted(self, places: Int[Tensor, "B T S"]) -> Float[Tensor, "B T S"]:
        """Return the counts by place; 0 for a place past the end."""
        if not len(self):
            return torch.zeros(places.shape)
        last = len(self) - 1
        return torch.where(places <= last, self.counts[places.clamp(max=last)], 0.0)

    def pruned(self, least: float) -> "Lexicon":
        """Return the pairs that were expected to be links at least that often."""
        kept = self.counts >= least
        return Lexicon(self.codes[kept], self.counts[kept], self.num_sources, self.num_targets)
