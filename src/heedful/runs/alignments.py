"""Word alignments from a trained model: how is chosen once on gold alignments and kept in its bundle."""

import contextlib
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.analysis.alignment import Links
from heedful.analysis.alignment_choice import AlignmentChoice, Tried, choose, default_choice
from heedful.analysis.alignment_error import AlignmentErrors, GoldLine, count_errors
from heedful.analysis.alignment_files import check_range, format_links, read_alignments, read_gold
from heedful.analysis.word_weights import WordWeights, cross_sites, read_word_weights
from heedful.core.config import parse_config
from heedful.core.errors import BundleError, ConfigError, DataError, did_you_mean
from heedful.runs.loaded import LoadedModel, load
from heedful.runs.training_run import RUN_LOCK
from heedful.tasks import Prediction, Task, amend_bundle, find_bundle, open_bundle
from heedful.tasks.bundle import ALIGNMENT
from heedful.text.truncation import Truncations
from heedful.training import RunFolder

CHUNK_LINES = 256


def align(
    model: LoadedModel, pairs: Iterable[tuple[str, str]], *, choice: AlignmentChoice | None = None
) -> Iterator[Links]:
    """Yield the links between the words of each source and its translation, in order; words stand between spaces.

    Args:
        model: an encoder-decoder with attention.
        pairs: source and target.
        choice: how weights become links; absent means as the bundle says, else as usually does well.

    Raises:
        RequestError: the model has no attention from target to source.
        ConfigError: the choice names a head that the model does not have.
    """
    truncations = Truncations()
    chosen = choice or choice_of(model)
    check_choice(chosen, model.task)
    for line in read_word_weights(model.task, pairs, truncations=truncations):
        yield chosen.links(chosen.weights(line))
    if truncations.num_lines:
        print(f"heedful: {truncations.summary()} What was cut has no links.", file=sys.stderr)


def align_predictions(
    model: LoadedModel, predictions: Iterable[Prediction], *, chunk_lines: int = CHUNK_LINES
) -> Iterator[Prediction]:
    """Yield predictions with the links between the words of the source and of every candidate.

    Args:
        model: that made them.
        predictions: in order.
        chunk_lines: predictions that are taken together.
    """
    predictions = iter(predictions)
    choice = choice_of(model)
    while chunk := list(itertools.islice(predictions, chunk_lines)):
        pairs = [(each.source, candidate.text) for each in chunk for candidate in each.candidates]
        links = align(model, pairs, choice=choice)
        for each in chunk:
            aligned = (replace(candidate, alignment=tuple(sorted(next(links)))) for candidate in each.candidates)
            yield replace(each, candidates=tuple(aligned))
        next(links, None)  # lets it report what was too long


def choose_alignment(model: LoadedModel, gold: Sequence[GoldLine]) -> Tried:
    """Return the heads, shift, threshold and symmetrisation that do best on gold alignments.

    Raises:
        RequestError: the model has no attention from target to source.
        DataError: the gold alignments come without their texts.
    """
    sites = cross_sites(model.task)
    lines: list[WordWeights] = list(read_word_weights(model.task, texts_of(gold)))
    return choose(lines, gold, sites)


def save_choice(model: LoadedModel, tried: Tried, gold_file: Path | str) -> None:
    """Keep a choice in the model's bundle, whose manifest then names it; all of it is written, or nothing.

    Raises:
        BundleError: the disk is full, or a training writes there.
    """
    development = {"file": Path(gold_file).name, **tried.errors.to_values()}
    values = {"choice": tried.choice.model_dump(mode="json"), "development": development}
    content = json.dumps(values, indent=2).encode() + b"\n"
    path = find_bundle(model.path)
    run = RunFolder(path.parent)
    is_in_run = path == run.bundle and run.checkpoints.is_dir()
    with run.lock(RUN_LOCK) if is_in_run else contextlib.nullcontext():
        amend_bundle(open_bundle(path), ALIGNMENT, content)


def saved_choice(model: LoadedModel) -> AlignmentChoice | None:
    """Return the choice that the model's bundle holds; None if none was made.

    Raises:
        BundleError: it is damaged.
    """
    file = find_bundle(model.path) / ALIGNMENT
    if not file.is_file():
        return None
    try:
        values: Any = json.loads(file.read_bytes())
        return parse_config(AlignmentChoice, values["choice"])
    except (ValueError, TypeError, KeyError, RecursionError, ConfigError) as error:
        reason = " ".join(str(error).split("\n")).rstrip(".")
        raise BundleError(f"{file}: damaged: {reason}. Choose again with `heedful align --choose`.") from None


def choice_of(model: LoadedModel) -> AlignmentChoice:
    """Return the saved choice, or what usually does well, which is told on stderr."""
    saved = saved_choice(model)
    if saved is not None:
        return saved
    sites = cross_sites(model.task)
    has_self_attention = any(each.kind == "decoder" for each in model.model.attention_sites())
    choice = default_choice(sites, is_recurrent=not has_self_attention)
    print(
        f"heedful: {model.path}: no way to align was chosen for it; taking what usually does well "
        f"({choice.describe()}). `heedful align RUN --choose GOLD` finds the best on gold alignments.",
        file=sys.stderr,
    )
    return choice


def check_choice(choice: AlignmentChoice, task: Task) -> None:
    """See that the model has the heads of a choice.

    Raises:
        ConfigError: it lacks one.
    """
    sites = {each.path: each.num_heads for each in cross_sites(task)}
    for each in choice.heads:
        if each.site not in sites:
            raise ConfigError(f"The model has no attention `{each.site}`. {did_you_mean(each.site, sites)}")
        if each.head >= sites[each.site]:
            raise ConfigError(f"`{each.site}` has {sites[each.site]} heads, counted from 0, so none is {each.head}.")


def texts_of(gold: Sequence[GoldLine]) -> list[tuple[str, str]]:
    """Return the texts that gold alignments are of.

    Raises:
        DataError: the file does not have them.
    """
    if any(each.source is None or each.target is None for each in gold):
        raise DataError(
            "The gold alignments come without their texts. Give a table with the columns `src`, `tgt`, `sure`, "
            "`possible`."
        )
    return [(each.source or "", each.target or "") for each in gold]


def evaluate_alignments(
    alignments: Path, gold: Sequence[GoldLine], *, is_one_based: bool = False, settings: Iterable[str] = ()
) -> AlignmentErrors:
    """Compare with gold alignments what a file of Pharaoh lines says, or a model, which then reads the gold texts.

    Args:
        alignments: a file, a run or a bundle.
        gold: see `read_gold`.
        is_one_based: words count from 1 in the file.
        settings: on top of the configuration of a model.

    Raises:
        DataError: a line that is no alignment or whose links lie outside its text, or not as many as gold ones.
        BundleError: a folder without a usable model.
    """
    if alignments.is_dir():
        return count_errors(align(load(alignments, settings=settings), texts_of(gold)), gold)
    found = read_alignments(alignments, is_one_based=is_one_based)
    if len(found) != len(gold):
        raise DataError(f"{len(found):,} lines, but there are {len(gold):,} gold ones.", alignments)
    for number, (links, line) in enumerate(zip(found, gold, strict=True), start=1):
        check_range(links, line.source, line.target, str(alignments), number)
    return count_errors(found, gold)


__all__ = [
    "align",
    "align_predictions",
    "choose_alignment",
    "evaluate_alignments",
    "format_links",
    "read_gold",
    "save_choice",
    "saved_choice",
]
