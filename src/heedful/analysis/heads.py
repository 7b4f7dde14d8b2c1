"""Surveying heads: a model reads lines once, and every head gets its role card."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from heedful.analysis.alignment_error import GoldLine
from heedful.analysis.bootstrap import Estimate, ratio_intervals
from heedful.analysis.heads_card import (
    MIN_CASES,
    ByDistance,
    HeadCard,
    RoleFamily,
    Score,
    offset_name,
    order_roles,
)
from heedful.analysis.heads_counts import (
    CONFIDENCE,
    ENTROPY,
    EVENNESS,
    FEATURES,
    OFFSETS,
    RARE,
    SINK,
    HeadCounter,
    KindCounts,
    SiteCounts,
)
from heedful.analysis.heads_questions import (
    BUCKETS,
    LineWords,
    Question,
    View,
    syntactic_questions,
    word_questions,
)
from heedful.analysis.locating import locate_words
from heedful.analysis.reading import Reading, Side, read_batches
from heedful.analysis.treebank import Tree
from heedful.core.errors import RequestError
from heedful.tasks.task import Task
from heedful.text.unread import Unread

_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Line:
    """A line to survey heads on.

    Attributes:
        source: None for a language model.
        target: None for the model's own answer.
        tree: of the source, or of a language model's text.
        source_words: how the source is split; absent means at spaces and punctuation.
        target_words: likewise.
        gold: links between these words.
    """

    source: str | None
    target: str | None
    tree: Tree | None = None
    source_words: tuple[str, ...] | None = None
    target_words: tuple[str, ...] | None = None
    gold: GoldLine | None = None


def survey_heads(
    task: Task,
    lines: Sequence[Line],
    *,
    frequencies: Int[Tensor, " V"] | None = None,
    min_cases: int = MIN_CASES,
    unread: Unread | None = None,
) -> list[HeadCard]:
    """Let a model read lines once and return the card of every head.

    Args:
        task: the model with its tokenizers.
        lines: what it reads.
        frequencies: how often each symbol of the source, or of a language model's text, occurs, best in the training
            data; None: no rare-token role.
        min_cases: of fewer no role comes, and relations with fewer are not asked about.
        unread: collects the lines that were not read whole.

    Raises:
        RequestError: the model has no head.
    """
    sites = [each for each in task.model.attention_sites() if each.num_heads]
    if not sites and task.model.attention_sites():
        raise RequestError("every head was pruned away, so there is none to give a role to. Name the model before.")
    if not sites:
        raise RequestError(
            "the model has no attention, so there is no head to give a role to. Try a Transformer, or a recurrent "
            "model with `model.attention`."
        )
    counter = HeadCounter(sites, _questions(task, lines, min_cases), frequencies)
    pairs = [(each.source, each.target) for each in lines]
    for batch in read_batches(task, pairs, unread=unread):
        counter.add(batch, [_words(task, reading, lines[reading.line]) for reading in batch])
    return [card for site in counter.sites for card in _cards(site, counter.kinds[site.site.kind], min_cases)]


def _questions(task: Task, lines: Sequence[Line], min_cases: int) -> list[Question]:
    """Return what is asked. A tree is of what the model reads: of a source, whether heads are left that read it or not.

    Were it asked of a decoder that writes something else, its words would be counted off on another text.
    """
    has_gold = any(each.gold is not None for each in lines)
    syntax: View = "reading" if task.codec.source is None else "encoder"
    views: tuple[View, ...] = ("predicting", "cross")
    return [
        *syntactic_questions([each.tree for each in lines], syntax, min_cases),
        *(question for view in views for question in word_questions(view, has_gold=has_gold)),
    ]


def _words(task: Task, reading: Reading, line: Line) -> LineWords:
    """Return the words of a reading: the treebank's, the gold alignment's, or those between spaces and punctuation."""
    tree_units = None if line.tree is None else line.tree.units
    is_read = reading.source is not None
    source_words = line.source_words or (tree_units if is_read else None)
    target_words = line.target_words or (None if is_read else tree_units)
    source, source_spans = _spans(task, reading.source, source_words)
    target, target_spans = _spans(task, reading.target_output, target_words)
    return LineWords(
        source=source,
        target=target,
        source_owners=_owners(reading.source, source_spans),
        read_owners=_owners(reading.target_input, target_spans),
        predicted_owners=_owners(reading.target_output, target_spans),
        tree=line.tree,
        gold=line.gold,
    )


def _spans(
    task: Task, side: Side | None, given: tuple[str, ...] | None
) -> tuple[tuple[str, ...], list[tuple[int, int]]]:
    if side is None:
        return (), []
    text = side.spelling.text
    if given is None:
        found = list(_WORD.finditer(text))
        return tuple(each[0] for each in found), [each.span() for each in found]
    words = tuple(task.codec.normalize(each) for each in given)
    return words, locate_words(words, text)


def _owners(side: Side | None, spans: Sequence[tuple[int, int]]) -> list[int | None]:
    return [] if side is None else side.owners(spans)


@dataclass
class _Table:
    """Sums, cases and intervals of one site: features, then questions, by head."""

    values: Float[np.ndarray, "X H"]
    low: Float[np.ndarray, "X H"]
    high: Float[np.ndarray, "X H"]
    cases: Float[np.ndarray, " X"]
    index: dict[str, int] = field(default_factory=dict)

    def measured(self, name: str, head: int) -> Estimate | None:
        """Return a figure; None where there was no case."""
        return self.estimate(name, head) if self.cases[self.index[name]] else None

    def estimate(self, name: str, head: int) -> Estimate:
        row = self.index[name]
        return Estimate(*(float(each[row, head]) for each in (self.values, self.low, self.high)))


def _table(site: SiteCounts, kind: KindCounts) -> _Table:
    sums_NXH = np.concatenate(site.sums)
    cases_NX = np.concatenate(kind.cases)
    num_heads = sums_NXH.shape[2]
    low, high = ratio_intervals(sums_NXH.reshape(len(sums_NXH), -1), np.repeat(cases_NX, num_heads, axis=1))
    cases = cases_NX.sum(0, dtype=np.float64)
    values = sums_NXH.sum(0, dtype=np.float64) / np.maximum(cases, 1)[:, None]
    names = [*FEATURES, *(each.name for each in kind.questions)]
    index = {name: row for row, name in enumerate(names)}
    return _Table(values, low.reshape(values.shape), high.reshape(values.shape), cases, index)


def _cards(site: SiteCounts, kind: KindCounts, min_cases: int) -> Iterable[HeadCard]:
    table = _table(site, kind)
    for head in range(site.site.num_heads):
        scores = [
            *_token_scores(table, kind, site.site.kind, head),
            *(each for each in _word_scores(site, table, kind, head) if each.cases),
        ]
        yield HeadCard(
            site=site.site.path,
            kind=site.site.kind,
            layer=site.site.layer,
            head=head,
            confidence=table.measured(CONFIDENCE, head),
            entropy=table.measured(ENTROPY, head),
            evenness=table.measured(EVENNESS, head),
            offsets=_offset_shares(table, head),
            scores=tuple(sorted(scores, key=lambda each: -each.gain)),
            roles=order_roles(each for each in scores if each.is_role(min_cases)),
        )


def _offset_shares(table: _Table, head: int) -> dict[int, float]:
    return {
        each: float(table.values[table.index[str(each)], head])
        for each in OFFSETS
        if table.cases[table.index[str(each)]]
    }


def _token_scores(table: _Table, kind: KindCounts, kind_name: str, head: int) -> Iterable[Score]:
    """Yield what is asked of tokens: the offset with the most hits, the end-of-sentence sink, the rarest token."""
    rows = {each: table.index[str(each)] for each in OFFSETS}
    best = max(OFFSETS, key=lambda each: (table.values[rows[each], head] * table.cases[rows[each]], -abs(each)))
    named: list[tuple[str, str, RoleFamily]] = [
        (str(best), offset_name(best, kind_name), "positional"),
        (SINK, SINK, "sink"),
        (RARE, RARE, "rare"),
    ]
    for feature, name, family in named:
        cases = int(table.cases[table.index[feature]])
        if not cases:
            continue
        baseline = offset = None
        if family == "rare":
            offset, hits = max(kind.rare_offsets.items(), key=lambda each: (each[1], -abs(each[0])))
            baseline = hits / cases
        chance = float(kind.chance[FEATURES.index(feature)]) / cases
        yield Score(name, family, cases, table.estimate(feature, head), baseline, offset, chance)


def _word_scores(site: SiteCounts, table: _Table, kind: KindCounts, head: int) -> Iterable[Score]:
    """Yield what is asked of words, by distance too."""
    for interviewer in kind.interviewers.values():
        for question, book in zip(interviewer.questions, interviewer.books, strict=True):
            cases = int(book.num_cases.sum())
            if not cases:
                continue
            offset, hits = book.baseline()
            has_baseline = question.family != "previous"
            rows = []
            for bucket, (first, last) in enumerate(BUCKETS):
                count = int(book.num_cases[bucket])
                if count:
                    right = float(site.by_distance[question.name][bucket, head]) / count
                    rows.append(
                        ByDistance(first, last, count, right, hits[bucket] / count, float(book.chance[bucket]) / count)
                    )
            yield Score(
                name=question.name,
                family=question.family,
                cases=cases,
                share=table.estimate(question.name, head),
                baseline=sum(hits) / cases if has_baseline else None,
                baseline_offset=offset if has_baseline else None,
                chance=float(book.chance.sum()) / cases,
                by_distance=tuple(rows),
            )
