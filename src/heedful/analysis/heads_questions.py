"""What heads are asked, word by word: does the strongest weight fall on the word that a role would have it on?

A case is a word that looks and the words that would be right. Baseline and chance belong to the case, not to the head:
the baseline looks at the one offset that is right most often (Voita et al. 2019, section 5.2), chance at any word that
can be seen. A right word that cannot, because it comes later or lies beyond the window, makes no case.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Bool

from heedful.analysis.alignment_error import GoldLine
from heedful.analysis.treebank import Tree

View = Literal["encoder", "reading", "predicting", "cross"]
"""Which words look at which: source at source; in a decoder those read, or those predicted, at those read; predicted
target words at the source's."""

Family = Literal["syntactic", "previous", "copy", "alignment", "shifted"]

BUCKETS = ((0, 0), (1, 1), (2, 2), (3, 4), (5, 8), (9, None))
"""Distances between two words: from, and to (None: no end)."""


@dataclass(frozen=True)
class Question:
    """Something that a head may do at a word.

    Attributes:
        name: for people.
        family: of which kind.
        view: which words look at which.
    """

    name: str
    family: Family
    view: View


@dataclass(frozen=True)
class LineWords:
    """The words of a reading, and which of them each position belongs to.

    Attributes:
        source: words of the source, empty for a language model.
        target: words of the target, empty for a classifier.
        source_owners: the word of each source position; None for none.
        read_owners: likewise of each target position as a decoder reads it.
        predicted_owners: likewise of each target position as it is predicted.
        tree: of the source, or of a language model's text; its units are the words then.
        gold: links between source and target words.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    source_owners: Sequence[int | None]
    read_owners: Sequence[int | None]
    predicted_owners: Sequence[int | None]
    tree: Tree | None = None
    gold: GoldLine | None = None

    def owners(self, view: View) -> tuple[Sequence[int | None], Sequence[int | None]]:
        """Return the words of the positions that look, and of those that are looked at."""
        queries = {
            "encoder": self.source_owners,
            "reading": self.read_owners,
            "predicting": self.predicted_owners,
            "cross": self.predicted_owners,
        }
        return queries[view], self.source_owners if view in ("encoder", "cross") else self.read_owners

    def num_words(self, view: View) -> tuple[int, int]:
        """Return how many words look and are looked at."""
        source, target = len(self.source), len(self.target)
        return {"encoder": (source, source), "cross": (target, source)}.get(view, (target, target))


@dataclass(frozen=True)
class Case:
    """A word that looks, with the words where its strongest weight would be right.

    Attributes:
        question: its index.
        query: index of the word that looks.
        accepted: indices of the right words.
        distance: to the nearest of them.
    """

    question: int
    query: int
    accepted: tuple[int, ...]
    distance: int


@dataclass
class CaseBook:
    """What is known of a question's cases without looking at any head.

    Attributes:
        num_cases: by distance.
        chance: summed over cases, by distance.
        offsets: how often each offset would have been right, by distance.
    """

    num_cases: np.ndarray = field(default_factory=lambda: np.zeros(len(BUCKETS), np.int64))
    chance: np.ndarray = field(default_factory=lambda: np.zeros(len(BUCKETS)))
    offsets: list[Counter[int]] = field(default_factory=lambda: [Counter() for _ in BUCKETS])

    def add(self, bucket: int, offsets: set[int], chance: float) -> None:
        """Count a case."""
        self.num_cases[bucket] += 1
        self.chance[bucket] += chance
        self.offsets[bucket].update(offsets)

    def baseline(self) -> tuple[int, list[int]]:
        """Return the offset that is right most often, the nearest of equals, and its hits by distance."""
        together = sum(self.offsets, Counter[int]())
        best = max(together, key=lambda each: (together[each], -abs(each), each), default=0)
        return best, [each[best] for each in self.offsets]


def bucket_of(distance: int) -> int:
    """Return the index of the distance's entry in `BUCKETS`."""
    return next(
        i for i, (first, last) in enumerate(BUCKETS) if distance >= first and (last is None or distance <= last)
    )


def syntactic_questions(trees: Sequence[Tree | None], view: View, min_cases: int) -> list[Question]:
    """Return both directions of every relation with enough cases, the most frequent first."""
    counts: Counter[str] = Counter()
    for tree in trees:
        counts.update(word.relation for word in tree.words if word.head is not None) if tree is not None else None
    names = sorted((each for each in counts if counts[each] >= min_cases), key=lambda each: (-counts[each], each))
    return [Question(f"{name}: {way}", "syntactic", view) for name in names for way in (UP, DOWN)]


UP = "dependent → head"
DOWN = "head → dependent"


class Interviewer:
    """Finds the cases of all questions of a view in a line.

    Args:
        questions: all of one view.
    """

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = list(questions)
        self.books = [CaseBook() for _ in questions]
        self._index = {each.name: index for index, each in enumerate(questions)}

    def cases(self, line: LineWords, view: View, seen: Bool[np.ndarray, "X Y"]) -> list[Case]:
        """Return the cases that the positions can show, and enter them in the books.

        Args:
            line: its words.
            view: which of them look at which.
            seen: True where a position of a word that looks sees one of a word that is looked at.
        """
        num_queries, num_keys = line.num_words(view)
        found = []
        for index, query, right in self._raise(line, view):
            if query >= num_queries:
                continue
            keys = set(np.flatnonzero(seen[query]).tolist())
            accepted = tuple(sorted(right & keys))
            if not accepted or len(keys) < 2:
                continue
            origin = query if view != "cross" else (2 * query + 1) * num_keys // (2 * max(num_queries, 1))
            offsets = {each - origin for each in accepted}
            distance = min(map(abs, offsets))
            self.books[index].add(bucket_of(distance), offsets, len(accepted) / len(keys))
            found.append(Case(index, query, accepted, distance))
        return found

    def _raise(self, line: LineWords, view: View) -> Iterator[tuple[int, int, set[int]]]:
        """Yield question, the word that looks, and the right words, whether a model can see them or not."""
        for name, query, right in _ask(line, view):
            if name in self._index:
                yield self._index[name], query, right


PREVIOUS = "previous target word"
COPY = "copy"
REPEAT = "earlier same word"
ALIGNED = "alignment"
SHIFTED = "alignment of the previous word"


def word_questions(view: View, *, has_gold: bool) -> list[Question]:
    """Return what is asked of a decoder's heads and of cross-attention, besides syntax."""
    if view == "predicting":
        return [Question(PREVIOUS, "previous", view), Question(REPEAT, "copy", view)]
    if view != "cross":
        return []
    aligned = [Question(ALIGNED, "alignment", view), Question(SHIFTED, "shifted", view)]
    return [Question(COPY, "copy", view), *(aligned if has_gold else [])]


def _ask(line: LineWords, view: View) -> Iterator[tuple[str, int, set[int]]]:
    if line.tree is not None and view in ("encoder", "reading"):
        yield from _syntax(line.tree)
    if view == "predicting":
        for index in range(1, len(line.target)):
            yield PREVIOUS, index, {index - 1}
            if _is_word(line.target[index]):
                yield REPEAT, index, {each for each in range(index) if line.target[each] == line.target[index]}
    if view == "cross":
        for index, word in enumerate(line.target):
            if _is_word(word):
                yield COPY, index, {each for each, other in enumerate(line.source) if other == word}
        if line.gold is not None:
            yield from _aligned(line.gold)


def _syntax(tree: Tree) -> Iterator[tuple[str, int, set[int]]]:
    """Yield each word with its head, and each head with all its dependents of a relation."""
    governed: dict[tuple[str, int], set[int]] = {}
    for word in tree.words:
        if word.head is None:
            continue
        head = tree.words[word.head].unit
        if head != word.unit:
            yield f"{word.relation}: {UP}", word.unit, {head}
            governed.setdefault((word.relation, head), set()).add(word.unit)
    for (relation, head), dependents in governed.items():
        yield f"{relation}: {DOWN}", head, dependents


def _aligned(gold: GoldLine) -> Iterator[tuple[str, int, set[int]]]:
    """Yield each target word that has a sure link, once by itself and once for the word after it.

    The shift is that of Chen et al. (2020, section 3): a decoder that has just read a word looks at its source then.
    """
    for target in sorted({target for _, target in gold.sure}):
        right = {source for source, other in gold.possible if other == target}
        yield ALIGNED, target, right
        yield SHIFTED, target + 1, right


def _is_word(text: str) -> bool:
    """Tell words and numbers from punctuation, which stands at the ends whatever is copied."""
    return any(map(str.isalnum, text))
