"""Segmentations drawn by leaving out merges (BPE-dropout, Provilkov et al. 2020), a pure function of text and seed.

SentencePiece does the same, but what it draws for a seed is not the same in every process (see `unigram_sampling`).
"""

import heapq
import random
from collections.abc import Callable, Sequence

from heedful.text.words import Words


class MergeSampler:
    """Merges neighbours by rank, and leaves each merge out with a probability when its turn comes.

    Args:
        ranks: of each string that is a merge of two, the lowest first; characters may have ranks, too.
        words: takes texts apart and knows the symbols.
        dropout: the probability.
    """

    def __init__(self, ranks: dict[str, float], words: Words, dropout: float) -> None:
        self._ranks = ranks
        self._words = words
        self._dropout = dropout

    def sample(self, text: str, seed: int) -> list[int]:
        """Draw the symbols of a text, in which spaces are written as U+2581 and one stands before the first word."""
        draw = random.Random(seed).random
        return self._words.symbols(text, lambda word: self._merge(word, draw))

    def _merge(self, word: str, draw: Callable[[], float]) -> Sequence[str]:
        """Return the pieces of a word. A merge that was left out has its turn again only if a neighbour changes."""
        pieces = list(word)  # one that was merged into its left neighbour is empty
        after = list(range(1, len(word) + 1))
        before = list(range(-1, len(word) - 1))
        waiting: list[tuple[float, int, int, str]] = []

        def consider(left: int, right: int) -> None:
            if left >= 0 and right < len(pieces):
                joined = pieces[left] + pieces[right]
                if joined in self._ranks:
                    heapq.heappush(waiting, (self._ranks[joined], left, right, joined))

        for right in range(1, len(word)):
            consider(right - 1, right)
        while waiting:
            _, left, right, joined = heapq.heappop(waiting)
            is_current = pieces[left] and pieces[right] and pieces[left] + pieces[right] == joined
            if not is_current or draw() < self._dropout:
                continue
            pieces[left], pieces[right] = joined, ""
            after[left] = after[right]
            if after[left] < len(pieces):
                before[after[left]] = left
            consider(before[left], left)
            consider(left, after[left])
        return [each for each in pieces if each]
