"""Words of two languages, and how probably each is written where the other stands."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

RAREST = 1e-6
"""Probability of a word that was never seen, and of two words that never stood in one pair of lines."""


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
    shares: Float[Tensor, "W"]
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
    """How probably a word is written from a word of the other language, for pairs of words that stood in one pair of
    lines.

    Attributes:
        codes: of the pairs, in order: source word times (target words + 1) plus target word.
        forward: probability of the target word, given the source word.
        backward: probability of the source word, given the target word.
        num_targets: words of the target's vocabulary.
    """

    codes: Int[Tensor, "X"]
    forward: Float[Tensor, "X"]
    backward: Float[Tensor, "X"]
    num_targets: int

    @property
    def sources(self) -> Int[Tensor, "X"]:
        """The source word of each pair."""
        return self.codes // (self.num_targets + 1)

    @property
    def targets(self) -> Int[Tensor, "X"]:
        """The target word of each pair."""
        return self.codes % (self.num_targets + 1)

    def __len__(self) -> int:
        return len(self.codes)

    def find(self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]) -> Int[Tensor, "B T S"]:
        """Return the place of each pair of words of each pair of lines; ``len(self)`` where it is not here."""
        codes = source[:, None, :] * (self.num_targets + 1) + target[:, :, None]
        places = torch.searchsorted(self.codes, codes)
        is_here = self.codes[places.clamp(max=max(len(self) - 1, 0))] == codes if len(self) else codes < 0
        return torch.where(is_here, places, len(self))

    def pruned(self, least: float) -> "Lexicon":
        """Return the pairs that are at least that probable in one direction."""
        kept = torch.maximum(self.forward, self.backward) >= least
        return Lexicon(self.codes[kept], self.forward[kept], self.backward[kept], self.num_targets)
