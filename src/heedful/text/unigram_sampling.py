"""Segmentations drawn from a unigram model, as a pure function of text and seed (Kudo 2018, section 3.3).

SentencePiece draws from the same distribution, but what it draws for a seed depends on the process: now and then a line
comes out otherwise in another one. A run that is resumed must draw what it would have drawn, so the sums are made here,
in float64 and in a fixed order, with a generator of their own.
"""

import functools
import math
import random
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from heedful.text.words import Words

_CACHED_WORDS = 2**16
_UNKNOWN_PENALTY = 10.0
"""How far below the least probable piece an unknown character stands, as SentencePiece has it."""


@dataclass(frozen=True)
class Ending:
    """The pieces that may end at a place of a word.

    Attributes:
        starts: where each begins.
        shares: running sums of their probabilities, over all segmentations up to this place.
    """

    starts: Sequence[int]
    shares: Sequence[float]


class UnigramSampler:
    """Draws segmentations: each with its probability to the power alpha, normalised over all segmentations.

    What was computed for a word serves again wherever it comes.

    Args:
        scores: of the pieces: natural logarithms of their probabilities.
        words: takes texts apart and knows the symbols.
        alpha: 1 draws from the model, towards 0 all segmentations become alike.
    """

    def __init__(self, scores: Mapping[str, float], words: Words, alpha: float) -> None:
        self._scores = scores
        self._words = words
        self._alpha = alpha
        self._longest = max(map(len, scores), default=1)
        self._unknown = min(scores.values(), default=0.0) - _UNKNOWN_PENALTY
        self._endings = functools.lru_cache(_CACHED_WORDS)(self._sum)

    def sample(self, text: str, seed: int) -> list[int]:
        """Draw the symbols of a text, in which spaces are written as U+2581 and one stands before the first word."""
        draw = random.Random(seed).random
        return self._words.symbols(text, lambda word: self._draw(word, draw))

    def _draw(self, word: str, draw: Callable[[], float]) -> Sequence[str]:
        """Draw pieces from the end of a word to its beginning."""
        endings, stop, pieces = self._endings(word), len(word), []
        while stop:
            starts, shares = endings[stop - 1].starts, endings[stop - 1].shares
            start = starts[min(bisect_right(shares, draw() * shares[-1]), len(starts) - 1)]
            pieces.append(word[start:stop])
            stop = start
        return pieces[::-1]

    def _sum(self, word: str) -> tuple[Ending, ...]:
        """Sum over all segmentations up to each place, from the first to the last."""
        log_sums, endings = [0.0], []
        for stop in range(1, len(word) + 1):
            found = [(start, self._scores.get(word[start:stop])) for start in range(max(0, stop - self._longest), stop)]
            known = [(start, score) for start, score in found if score is not None]
            if word[stop - 1] not in self._scores:
                known.append((stop - 1, self._unknown))
            logs = [log_sums[start] + self._alpha * score for start, score in known]
            highest = max(logs)
            shares = list(accumulate(math.exp(each - highest) for each in logs))
            log_sums.append(highest + math.log(shares[-1]))
            endings.append(Ending([start for start, _ in known], shares))
        return tuple(endings)
