"""Role cards as a page that needs no network: a map of all heads, then a card for each."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from heedful.analysis.heads_card import HeadCard, Score
from heedful.analysis.heads_summary import (
    MAIN_QUESTIONS,
    HeadsReport,
    describe_estimate,
    describe_marks,
    describe_share,
    summary_rows,
)
from heedful.core.storage import write_whole
from heedful.training.markup import escape
from heedful.training.report import Section, render_page, table

SHOWN_SCORES = 5
"""Bars of a card; the rest is folded away."""

FOLDED_SCORES = 25

STYLE = """<style>
body { max-width: 84rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(22rem, 100%), 1fr)); gap: 1rem; }
.card { border: 1px solid var(--rule); border-radius: .6rem; padding: .8rem 1rem; scroll-margin: 1rem; min-width: 0; }
.card:target { outline: 2px solid var(--c0); }
.card h4 { margin: 0 0 .4rem; font-size: 1rem; }
.badge { display: inline-block; margin: 0 .3rem .3rem 0; padding: .05rem .55rem; border-radius: 1rem; font-size: .8rem;
  border: 1.5px solid var(--tone, var(--faint)); color: var(--tone, var(--faint)); }
.badge.strong { background: var(--tone); color: var(--paper); }
.positional, .previous { --tone: var(--c0); } .syntactic { --tone: var(--c2); } .rare { --tone: var(--c3); }
.sink { --tone: var(--c6); } .alignment, .shifted, .copy { --tone: var(--c1); } .warning { --tone: var(--c4); }
.score { margin: .45rem 0 0; font-size: .85rem; }
.score p { margin: 0; display: flex; justify-content: space-between; gap: .5rem; }
.score p span:last-child { font-variant-numeric: tabular-nums; white-space: nowrap; color: var(--faint); }
.score small { color: var(--faint); font-variant-numeric: tabular-nums; }
.score b { color: var(--ink); font-weight: 600; }
.bar { position: relative; height: .6rem; margin: .15rem 0 .1rem; border-radius: .15rem; background: var(--rule); }
.bar i { position: absolute; top: 0; bottom: 0; }
.bar .value { left: 0; width: var(--v); border-radius: .15rem; background: var(--tone, var(--c0)); }
.bar .spread { left: var(--l); width: calc(var(--h) - var(--l)); min-width: 2px; top: 40%; bottom: 40%;
  background: var(--ink); }
.bar .tick { left: calc(var(--b) - 1px); width: 0; top: -.15rem; bottom: -.15rem; border-left: 2px solid var(--ink); }
.bar .tick.chance { border-left-style: dotted; }
.figures { display: grid; gap: 0 1rem; margin: .2rem 0 .4rem; font-size: .8rem; }
.figures.worth { grid-template-columns: 1fr 1fr; }
.figures div { display: flex; justify-content: space-between; gap: .5rem; } .figures dt { color: var(--faint); }
.figures dd { margin: 0; font-variant-numeric: tabular-nums; }
details { margin-top: .6rem; font-size: .85rem; } summary { cursor: pointer; color: var(--faint); }
.wide:has(.map) { margin-bottom: 1.2rem; }
.map td { padding: 0; border: 0; } .map th { padding: .2rem .5rem .2rem 0; border: 0; font-weight: normal; }
.map a { display: block; min-width: 5.5rem; margin: 1px; padding: .25rem .4rem; border-radius: .3rem; font-size: .78rem;
  text-decoration: none; color: var(--tone, var(--faint)); border: 1.5px solid var(--tone, var(--rule)); }
.map a.strong { background: var(--tone); color: var(--paper); }
.key span { margin-right: 1.2rem; } .key .bar { display: inline-block; width: 4rem; vertical-align: middle; }
</style>"""

_KINDS = {
    "encoder": "Encoder: the source reads itself",
    "decoder": "Decoder: the target reads what was written",
    "cross": "Cross-attention: the target reads the source",
    "pooling": "Pooling: the label reads the source",
}

_INTRODUCTION = """<p>A bar is the share of cases in which a head's strongest weight falls where the role would have it;
the line on it is the 95 % bootstrap interval over sentences. The upright marks are what is right without the model: the
one offset that is right most often (the baseline; no rival where the role is an offset itself) and, dotted, a look at
random (chance). A role is given from 90 % on one offset (positional), from 10 points above the baseline (syntactic;
both after Voita et al. 2019, section 5), and for the others from half of the cases and 10 points above the baseline, or
above chance where there is none. Confidence is the mean largest weight, evenness the entropy as a share of the largest
possible, with their 95 % intervals. Layers and heads count from 0:
<code>cross.1:2</code> is head 2 of the cross-attention of layer 1, and <code>heedful inspect --silence</code> takes it
by that name.</p>
<p class="key"><span><i class="badge strong positional">role</i> first role</span>
<span><i class="badge syntactic">role</i> further role</span>
<span><i class="badge warning">nearly uniform</i> its strongest weight tells little</span>
<span><i class="badge">sink 40%</i> no role, its best score</span></p>"""


def write_heads_page(reports: Sequence[HeadsReport], path: Path) -> None:
    """Write one HTML file; it appears whole or not at all."""
    title = "What every head does: " + ", ".join(each.bundle for each in reports)
    write_whole(path, render_page(title, list(_sections(reports))).encode("utf-8"))


def _sections(reports: Sequence[HeadsReport]) -> Iterator[Section]:
    rows = [summary_rows(each) for each in reports]
    side_by_side = [[name, *(dict(column)[name] for column in rows)] for name, _ in rows[0]]
    header = ["", *(each.bundle for each in reports)]
    yield Section("In short", STYLE + _INTRODUCTION + table(header, side_by_side) + "".join(map(_told, reports)))
    for number, report in enumerate(reports):
        for kind, title in _KINDS.items():
            cards = report.of_kind(kind)
            if cards:
                name = f"{report.bundle}: {title}" if len(reports) > 1 else title
                shown = "".join(_card(card, number) for card in cards)
                yield Section(name, f'{_map(cards, number)}<div class="cards">{shown}</div>')


def _told(report: HeadsReport) -> str:
    notes = "".join(f" {each[0].upper()}{each[1:]}." for each in report.notes)
    return (
        f'<p class="empty">{escape(report.bundle)}: {report.num_lines:,} lines; targets: {escape(report.targets)}; '
        f"token frequencies: {escape(report.frequencies)}; roles from {report.min_cases} cases on.{escape(notes)}</p>"
        + ("" if report.score is None else f'<p class="empty">What heads are worth: {escape(report.score)}.</p>')
    )


def _identity(card: HeadCard, number: int) -> str:
    return f"head-{number}-{card.kind}-{card.layer}-{card.head}"


def _map(cards: Sequence[HeadCard], number: int) -> str:
    """Return a table of links, a row for each layer."""
    layers: dict[int, list[HeadCard]] = {}
    for card in cards:
        layers.setdefault(card.layer, []).append(card)
    rows = "".join(
        f'<tr><th scope="row">layer {layer}</th>{"".join(_map_cell(each, number) for each in row)}</tr>'
        for layer, row in layers.items()
    )
    return f'<div class="wide"><table class="map">{rows}</table></div>'


def _map_cell(card: HeadCard, number: int) -> str:
    leading = card.score(card.roles[0]) if card.roles else None
    look = f"strong {leading.family}" if leading else "warning" if card.is_nearly_uniform else ""
    text = leading.name if leading else "nearly uniform" if card.is_nearly_uniform else _leaning(card)
    return f'<td><a class="{look}" href="#{_identity(card, number)}">{card.head}: {escape(text)}</a></td>'


def _leaning(card: HeadCard) -> str:
    """Return the best score of a head without a role, in short."""
    best = card.scores[0] if card.scores and card.scores[0].gain > 0 else None
    return "no role" if best is None else f"{best.name} {best.share.value:.0%}"


def _card(card: HeadCard, number: int) -> str:
    badges = [
        f'<span class="badge {"strong" if place == 0 else ""} {score.family}">{escape(score.name)}</span>'
        for place, name in enumerate(card.roles)
        if (score := card.score(name))
    ]
    if card.is_nearly_uniform:
        badges.append('<span class="badge warning">nearly uniform</span>')
    shown, folded, num_left_out = _by_place(card)
    about_main = [each for each in card.scores if each.name in MAIN_QUESTIONS and each not in shown]
    return (
        f'<article class="card" id="{_identity(card, number)}"><h4>{escape(card.name)}</h4>'
        f"<div>{''.join(badges) or '<span class=badge>no role</span>'}</div>"
        f"{_figures(card)}{_worth(card)}{''.join(map(_bar, shown))}{_distances([*shown, *about_main])}"
        f"{_folded(folded, num_left_out)}</article>"
    )


def _by_place(card: HeadCard) -> tuple[list[Score], list[Score], int]:
    """Return the scores that have a bar, those that are folded away, and how many there is no room for."""
    roles = [score for name in card.roles if (score := card.score(name))]
    others = [each for each in card.scores if each.name not in card.roles]
    shown = [*roles, *others][: max(SHOWN_SCORES, len(roles))]
    rest = sorted((each for each in card.scores if each not in shown), key=lambda each: each.name not in MAIN_QUESTIONS)
    folded = rest[:FOLDED_SCORES]
    return shown, [each for each in card.scores if each in folded], len(rest) - len(folded)


def _figures(card: HeadCard) -> str:
    """Return how sure the head is, each figure with its interval."""
    figures = {"confidence": card.confidence, "entropy, nats": card.entropy, "evenness": card.evenness}
    items = "".join(
        f"<div><dt>{name}</dt><dd>{describe_estimate(found)}</dd></div>"
        for name, found in figures.items()
        if found is not None
    )
    return f'<dl class="figures">{items}</dl>' if items else ""


def _worth(card: HeadCard) -> str:
    """Return what the head is worth: the figure, and its interval where one points at it."""
    found = card.importance
    if found is None:
        return ""
    parts = [("loss without it", found.loss_gained, "+.4f", ""), ("gradient", found.gradient, ".4f", "")]
    if found.score_lost is not None:
        parts.insert(0, ("score lost without it", found.score_lost, "+.2f", ""))
    if found.relevance is not None and found.relevance_share is not None:
        parts.append(("relevance", found.relevance, "+.2f", f" ({found.relevance_share:.0%} of its layer)"))
    items = "".join(
        f'<div title="95 %: {worth.low:{form}} to {worth.high:{form}}"><dt>{name}</dt>'
        f"<dd>{worth.value:{form}}{more}</dd></div>"
        for name, worth, form, more in parts
    )
    return f'<dl class="figures worth">{items}</dl>'


def _bar(score: Score) -> str:
    share = score.share
    places = f"--v:{share.value:.1%};--l:{share.low:.1%};--h:{share.high:.1%}"
    ticks = "" if score.baseline is None else f'<i class="tick" style="--b:{score.baseline:.1%}"></i>'
    ticks += f'<i class="tick chance" style="--b:{score.chance:.1%}"></i>'
    return (
        f'<div class="score {score.family}"><p><span>{escape(score.name)}</span>'
        f"<span><b>{share.value:.1%}</b> ({share.low:.1%} to {share.high:.1%})</span></p>"
        f'<div class="bar" style="{places}" role="img" aria-label="{escape(describe_share(score))}" '
        f'title="{escape(describe_share(score))}"><i class="value"></i><i class="spread"></i>{ticks}</div>'
        f"<small>{describe_marks(score)}, {score.cases:,} cases</small></div>"
    )


def _distances(scores: Sequence[Score]) -> str:
    """Return tables of the scores by distance, for those that words of several distances ask."""
    told = [each for each in scores if len(each.by_distance) > 1]
    if not told:
        return ""
    tables = "".join(
        table(
            ["distance", "cases", "head", "baseline", "chance"],
            [
                [
                    each.span,
                    each.cases,
                    f"{each.share:.1%}",
                    "" if score.baseline is None else f"{each.baseline:.1%}",
                    f"{each.chance:.1%}",
                ]
                for each in score.by_distance
            ],
            caption=score.name,
        )
        for score in told
    )
    return f"<details><summary>by distance</summary>{tables}</details>"


def _folded(scores: Sequence[Score], num_left_out: int) -> str:
    if not scores:
        return ""
    rows = [[each.name, each.cases, describe_share(each)] for each in scores]
    more = f" {num_left_out:,} more scores are there too." if num_left_out else ""
    where = f"<p>Distances of all of these are in the JSON (<code>--json</code>).{more}</p>"
    return f"<details><summary>next scores</summary>{table(['score', 'cases', 'share'], rows)}{where}</details>"
