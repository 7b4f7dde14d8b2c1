"""The heads of a model in a few figures, and of several models side by side; as text for a terminal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.analysis.bootstrap import Estimate
from heedful.analysis.heads_card import ByDistance, HeadCard, Score, offset_name, plain
from heedful.analysis.heads_counts import RARE, SINK
from heedful.analysis.heads_questions import ALIGNED, COPY, DOWN, PREVIOUS, SHIFTED, UP

MAIN_RELATIONS = ("nsubj", "obj", "amod", "advmod")
"""Those of Voita et al. (2019, section 5.2); ``dobj`` of older treebanks is ``obj`` today."""

MAIN_QUESTIONS = tuple(f"{relation}: {way}" for relation in MAIN_RELATIONS for way in (UP, DOWN))
"""Each direction by itself, for its baseline is another."""

MANY_KINDS = ("encoder", "decoder", "cross", "pooling")
SHOWN_ROLES = 3


@dataclass(frozen=True)
class HeadsReport:
    """The heads of one model over a corpus.

    Attributes:
        bundle: the model's name.
        path: where it was found.
        num_lines: lines that were read.
        targets: where the targets came from: ``given`` or ``the model's own``; ``none`` where it reads none.
        frequencies: where the frequencies of tokens came from.
        min_cases: fewest cases that make a role.
        cards: one for each head.
        notes: what a reader should know.
        score: the score of which heads are worth something, its value with all of them, and the number of lines; None
            where that was not asked or there was none.
    """

    bundle: str
    path: str
    num_lines: int
    targets: str
    frequencies: str
    min_cases: int
    cards: tuple[HeadCard, ...]
    notes: tuple[str, ...] = ()
    score: str | None = None

    def of_kind(self, kind: str) -> list[HeadCard]:
        """Return the cards of a kind of attention."""
        return [each for each in self.cards if each.kind == kind]

    def best(self, name: str, kind: str | None = None) -> tuple[HeadCard, Score] | None:
        """Return the head with the highest share for a question, all heads or those of a kind."""
        found = [(card, card.score(name)) for card in self.cards if kind in (None, card.kind)]
        scored = [(card, score) for card, score in found if score is not None]
        return max(scored, key=lambda each: each[1].share.value, default=None)

    def with_role(self, kind: str, fits: Callable[[str], bool]) -> list[HeadCard]:
        """Return the heads of a kind that have a role whose name fits."""
        return [each for each in self.of_kind(kind) if any(map(fits, each.roles))]

    def to_values(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values = plain(self)
        for card, made in zip(self.cards, values["cards"], strict=True):
            made["name"], made["is_nearly_uniform"] = card.name, card.is_nearly_uniform
        values["heads"] = values.pop("cards")
        values["summary"] = dict(summary_rows(self))
        return dict(values)


def summary_rows(report: HeadsReport) -> list[tuple[str, str]]:
    """Return what is told of a whole model, as a name and a text each; the same names for every model."""
    numbers = [(kind, len(report.of_kind(kind))) for kind in MANY_KINDS]
    rows = [("heads", ", ".join(f"{number} {kind}" for kind, number in numbers if number))]
    for kind in ("encoder", "decoder"):
        for offset in (-1, 0, 1) if kind == "encoder" else (-1, 0):
            found = report.with_role(kind, offset_name(offset).__eq__)
            rows.append(
                (f"{kind} heads that look {_at(offset)}", _count(found) + _nearest(report.of_kind(kind), offset))
            )
    rows.append(("nearly uniform heads", _count([each for each in report.cards if each.is_nearly_uniform])))
    rows.append(("encoder heads on the sink", _count(report.with_role("encoder", SINK.__eq__))))
    rows.append(("cross heads on the sink", _count(report.with_role("cross", SINK.__eq__))))
    reader = "encoder" if report.best(RARE, "encoder") else "decoder"
    rows.append(("rare-token head of self-attention", _best(report, RARE, reader)))
    for name in MAIN_QUESTIONS:
        heads = [card for card in report.cards if name in card.roles]
        best = report.best(name)
        rows.append((name, f"{_count(heads)}; most: {_describe(best)}" if best else "not measured"))
    for name, kind in ((PREVIOUS, "decoder"), (COPY, "cross"), (ALIGNED, "cross"), (SHIFTED, "cross")):
        rows.append((f"best for {name}", _best(report, name, kind)))
    return rows


def _nearest(cards: Sequence[HeadCard], offset: int) -> str:
    """Name the head that looks there most often, whether that makes a role or not."""
    best = max((each for each in cards if offset in each.offsets), key=lambda each: each.offsets[offset], default=None)
    return "" if best is None else f"; most: {best.name}, {best.offsets[offset]:.1%}"


def _at(offset: int) -> str:
    return "at themselves" if offset == 0 else offset_name(offset)


def _count(cards: Sequence[HeadCard]) -> str:
    return f"{len(cards)} ({', '.join(each.name for each in cards)})" if 0 < len(cards) <= 4 else str(len(cards))


def _best(report: HeadsReport, name: str, kind: str) -> str:
    found = report.best(name, kind)
    return "not measured" if found is None else _describe(found)


def _describe(found: tuple[HeadCard, Score]) -> str:
    card, score = found
    return f"{card.name}: {describe_share(score)}"


def describe_share(score: Score) -> str:
    """Return a score as text: the share, its interval, and what to hold it against."""
    share = score.share
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%}, {describe_marks(score)})"


def describe_marks(score: Score | ByDistance) -> str:
    """Return baseline, where there is one, and chance as text."""
    return ("" if score.baseline is None else f"baseline {score.baseline:.1%}, ") + f"chance {score.chance:.1%}"


def describe_estimate(found: Estimate) -> str:
    """Return a figure of a head with its interval."""
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def format_report(report: HeadsReport) -> str:
    """Return a report for a terminal: a line for each head, then the summary."""
    has_worth = any(each.importance is not None for each in report.cards)
    worth = f" {'loss +':>7} {'score -':>7} {'gradient':>8} {'relevance':>9}" if has_worth else ""
    lines = [
        f"{report.bundle}: {len(report.cards)} heads over {report.num_lines:,} lines; targets: {report.targets}; "
        f"token frequencies: {report.frequencies}",
        "",
        f"{'head':14} {'confidence, 95 %':>19} {'entropy, nats':>13} {'evenness':>8}{worth}  roles",
    ]
    for card in report.cards:
        confidence = "-" if card.confidence is None else describe_estimate(card.confidence)
        figures = f"{confidence:>19} {_figure(card.entropy):>13} {_figure(card.evenness):>8}{_worth(card)}"
        lines.append(f"{card.name:14} {figures}  {_roles(card)}")
    if report.score is not None:
        lines += ["", f"what heads are worth: {report.score}"]
    lines += ["", *_aligned(summary_rows(report)), *_distances(report)]
    lines += ["", *(f"note: {each}" for each in report.notes)] if report.notes else []
    return "\n".join(lines) + "\n"


def _distances(report: HeadsReport) -> list[str]:
    """Return by distance what the best heads for subjects do, a line for each distance between subject and verb."""
    lines = []
    for name in MAIN_QUESTIONS[:2]:
        best = report.best(name)
        if best is not None:
            lines += ["", f"{name}, by distance: {best[0].name}"]
            rows = [
                (each.span, f"{each.share:.1%} ({describe_marks(each)}) of {each.cases:,} cases")
                for each in best[1].by_distance
            ]
            lines += [f"  {each}" for each in _aligned(rows)]
    return lines


def format_comparison(reports: Sequence[HeadsReport]) -> str:
    """Return the summaries of several models under one another, figure by figure."""
    columns = [dict(summary_rows(each)) for each in reports]
    width = max(len(each.bundle) for each in reports)
    lines = []
    for name in columns[0]:
        lines.append(name)
        lines += [f"  {report.bundle:{width}}  {column[name]}" for report, column in zip(reports, columns, strict=True)]
    return "\n".join(lines) + "\n"


def _figure(found: Estimate | None) -> str:
    return "-" if found is None else f"{found.value:.2f}"


def _worth(card: HeadCard) -> str:
    found = card.importance
    if found is None:
        return ""
    lost, relevance = _figure(found.score_lost), _figure(found.relevance)
    return f" {found.loss_gained.value:>7.4f} {lost:>7} {found.gradient.value:>8.4f} {relevance:>9}"


def _roles(card: HeadCard) -> str:
    warning = "nearly uniform; " if card.is_nearly_uniform else ""
    named = [f"{name} {describe_share(score)}" for name in card.roles[:SHOWN_ROLES] if (score := card.score(name))]
    more = len(card.roles) - SHOWN_ROLES
    if named:
        return warning + "; ".join(named) + (f"; and {more} more" if more > 0 else "")
    leading = card.scores[0] if card.scores else None
    return f"{warning}no role" + ("" if leading is None else f"; most: {leading.name} {describe_share(leading)}")


def _aligned(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [f"{name:{width}}  {text}" for name, text in rows]
