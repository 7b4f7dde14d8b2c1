"""What every head of trained models does: text, trees and gold alignments in, a report for each model out."""

import json
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Int
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from heedful.analysis.heads import Line, survey_heads
from heedful.analysis.heads_card import MIN_CASES, HeadCard, order_roles
from heedful.analysis.heads_summary import HeadsReport, format_comparison, format_report
from heedful.analysis.importance import IMPORTANCE_LINES, weigh_heads
from heedful.core.errors import ConfigError, HeedfulError, RequestError
from heedful.core.storage import write_whole
from heedful.data.readers import AnySourceConfig
from heedful.runs.heads_input import HeadsData, HeadsInput
from heedful.runs.loaded import LoadedModel, load
from heedful.runs.training_examples import draw_examples
from heedful.tasks import Task
from heedful.text.unread import Unread

FREQUENCY_LINES = 20_000
"""So many lines, drawn from all of the training data, tell how frequent a token is."""


def describe_heads(
    bundles: Sequence[Path | str],
    data: HeadsData,
    *,
    settings: Iterable[str] = (),
    min_cases: int = MIN_CASES,
    with_importance: bool = False,
) -> list[HeadsReport]:
    """Return a report on the heads of each bundle, all over the same text.

    Args:
        bundles: run or bundle folders.
        data: what the models read.
        settings: ``key=value`` on top of the bundles' configurations.
        min_cases: of fewer no role comes.
        with_importance: find what each head is worth too, on `IMPORTANCE_LINES` lines; this takes minutes.

    Raises:
        ConfigError: neither text nor treebank nor gold alignments, or targets that do not go with the bundles.
        DataError: a file cannot be read, or does not go with the text.
        RequestError: a model without heads.
    """
    if len(data.targets) not in (0, 1, len(bundles)):
        raise ConfigError(
            f"{len(data.targets)} `--target` files for {len(bundles)} bundles. Give one for each, in their order, or "
            "one for all."
        )
    given = HeadsInput(data)
    names = _names(bundles)
    reports = []
    for index, path in enumerate(bundles):
        target = None if not data.targets else data.targets[index if len(data.targets) > 1 else 0]
        model = load(path, settings=settings)
        lines = given.lines(model, target)
        print(f"heedful: {names[index]}: reading {len(lines):,} lines", file=sys.stderr)
        try:
            report = _describe(model, names[index], lines, given.gold_lines(lines), min_cases)
            reports.append(_weigh(report, model, lines) if with_importance else report)
        except RequestError as error:
            raise RequestError(f"{path}: {error}") from None
    return reports


def _names(bundles: Sequence[Path | str]) -> list[str]:
    """Return short names of the bundles, whole paths where two would be the same."""
    paths = [Path(each) for each in bundles]
    short = [bundle_name(each) for each in paths]
    return short if len(set(short)) == len(short) else [str(each) for each in paths]


def bundle_name(path: Path) -> str:
    """Return the short name of a run or bundle: its own, the run's of a bundle in its run."""
    return path.resolve().parent.name if path.name == "bundle" else path.resolve().name


def _describe(model: LoadedModel, name: str, lines: list[Line], gold: list[Line] | None, min_cases: int) -> HeadsReport:
    has_target = model.task.codec.target is not None
    frequencies, told = count_frequencies(model.task, model.config.task.data.train, lines)
    unread = Unread()
    cards = survey_heads(model.task, lines, frequencies=frequencies, min_cases=min_cases, unread=unread)
    if missed := unread.summary("What was cut is not looked at."):
        print(f"heedful: {name}: {missed}", file=sys.stderr)
    if gold is not None:
        cards = _with_alignment(model, cards, gold, min_cases)
    is_given = any(each.target is not None for each in lines)
    return HeadsReport(
        bundle=name,
        path=str(model.path),
        num_lines=len(lines),
        targets=("given" if is_given else "the model's own") if has_target else "none",
        frequencies=told,
        min_cases=min_cases,
        cards=tuple(cards),
        notes=tuple(_notes(model, cards, lines, gold)),
    )


def _weigh(report: HeadsReport, model: LoadedModel, lines: Sequence[Line]) -> HeadsReport:
    """Return the report with what each head is worth on some lines, drawn from all."""
    filled = [each for each in lines if (each.source or each.target or "").strip()]
    chosen = random.Random(1).sample(filled, min(len(filled), IMPORTANCE_LINES))
    pairs = [(each.source, each.target) for each in chosen]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(f"{report.bundle}: silencing heads", total=len(report.cards))
        found = weigh_heads(model.task, pairs, tell=lambda done, _: progress.update(bar, completed=done))
    cards = tuple(replace(each, importance=found.heads[each.site][each.head]) for each in report.cards)
    told = f"{found.num_lines:,} lines"
    if found.score is not None:
        told += f"; {found.score}: {found.whole:.2f} with all heads"
    return replace(report, cards=cards, score=told)


def _notes(
    model: LoadedModel, cards: Sequence[HeadCard], lines: Sequence[Line], gold: list[Line] | None
) -> Iterator[str]:
    kinds = {each.kind for each in cards}
    if "cross" in kinds and gold is None:
        yield "alignment roles need `--gold` alignments"
    has_trees = any(each.tree is not None for each in lines)
    reader = "decoder" if model.task.codec.source is None else "encoder"
    for name, is_given, kind in (
        ("dependency trees", has_trees, reader),
        ("gold alignments", gold is not None, "cross"),
    ):
        if is_given and kind not in kinds:
            is_pruned = any(each.kind == kind for each in model.model.attention_sites())
            why = f"every {kind} head was pruned away" if is_pruned else f"the model never had {kind} heads"
            yield f"nobody was asked about the {name}, for {why}"
    if any(each.is_nearly_uniform for each in cards):
        yield "the strongest weight of a nearly uniform head is little above the others, so that its shares tell little"


def _with_alignment(model: LoadedModel, cards: list[HeadCard], gold: list[Line], min_cases: int) -> list[HeadCard]:
    """Add the alignment scores, which come from the gold alignments' own sentences, where heads are left for them."""
    if not any(each.kind == "cross" for each in model.model.attention_sites()):
        raise ConfigError(f"{model.path}: gold alignments are for models that attend from a target to a source.")
    judged = survey_heads(model.task, gold, min_cases=min_cases)
    return [add_scores(card, other, ("alignment", "shifted")) for card, other in zip(cards, judged, strict=True)]


def add_scores(card: HeadCard, other: HeadCard, families: Sequence[str]) -> HeadCard:
    """Return a card with some scores, and the roles they make, of the same head's card over other lines."""
    more = [each for each in other.scores if each.family in families]
    names = {each.name for each in more}
    scores = sorted([*card.scores, *more], key=lambda each: -each.gain)
    roles = {*(each for each in other.roles if each in names), *card.roles}
    return replace(card, scores=tuple(scores), roles=order_roles([each for each in scores if each.name in roles]))


def count_frequencies(task: Task, source: AnySourceConfig, lines: Sequence[Line]) -> tuple[Int[Tensor, " V"], str]:
    """Return how often each symbol that the model reads occurs in the training data, else in the text; and in which.

    A language model reads its target.

    Args:
        task: whose symbols they are.
        source: of the training data.
        lines: the text.
    """
    codec = task.codec
    is_target = codec.source is None
    size, encode = (codec.target_size, codec.target_symbols) if is_target else (codec.source_size, codec.encode_source)
    assert size is not None
    counts = torch.zeros(size, dtype=torch.long)
    try:
        drawn = draw_examples(source, FREQUENCY_LINES)
        texts = [(each.target if is_target else each.source) or "" for each in drawn]
        told = f"{len(texts):,} lines of the training data"
    except HeedfulError:
        texts = [(each.target if is_target else each.source) or "" for each in lines]
        told = "the text itself, for the training data were not found"
    for text in texts:
        counts += torch.bincount(torch.tensor(encode(text), dtype=torch.long), minlength=size)
    return counts, told


def heads_text(reports: Sequence[HeadsReport]) -> str:
    """Return reports for a terminal, several compared at the end."""
    parts = [format_report(each) for each in reports]
    rest = "All scores of every head, each with its interval and by distance, are in what `--json` writes.\n"
    return "\n".join([*parts, *([format_comparison(reports)] if len(reports) > 1 else []), rest])


def heads_json(reports: Sequence[HeadsReport]) -> str:
    """Return reports as JSON."""
    return json.dumps({"bundles": [each.to_values() for each in reports]}, indent=1, ensure_ascii=False) + "\n"


def write_heads_json(reports: Sequence[HeadsReport], path: Path) -> None:
    """Write reports as JSON; the file appears whole or not at all."""
    write_whole(path, heads_json(reports).encode("utf-8"))
