"""Word alignments from a trained model: how is chosen once on gold alignments and kept in its bundle."""

import contextlib
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful.analysis.alignment import Links
from heedful.analysis.alignment_choice import (
    AlignmentChoice,
    Tried,
    choose,
    choose_by_agreement,
    choose_joint,
    default_choice,
)
from heedful.analysis.alignment_error import AlignmentErrors, GoldLine, count_errors
from heedful.analysis.alignment_files import (
    GOLD_FROM_ONE,
    LINKS_FROM_ONE,
    check_range,
    format_links,
    read_alignments,
    seem_one_based,
)
from heedful.analysis.alignment_files import read_gold as read_gold_file
from heedful.analysis.word_weights import cross_sites, read_word_weights
from heedful.core.chunks import chunks
from heedful.core.config import parse_config
from heedful.core.errors import BundleError, ConfigError, DataError, did_you_mean
from heedful.runs.loaded import LoadedModel
from heedful.runs.training_run import RUN_LOCK
from heedful.tasks import Prediction, Task, amend_bundle, find_bundle, open_bundle
from heedful.tasks.bundle import ALIGNMENT
from heedful.text.unread import Unread
from heedful.training import RunFolder, run_of_checkpoint

CHUNK_LINES = 256
AGREEMENT_LINES = 500


def align(
    model: LoadedModel,
    pairs: Iterable[tuple[str, str]],
    *,
    choice: AlignmentChoice | None = None,
    reverse: LoadedModel | None = None,
) -> Iterator[Links]:
    """Yield the links between the words of each source and its translation, in order; words stand between spaces.

    Args:
        model: an encoder-decoder with attention.
        pairs: source and target.
        choice: how weights become links; absent means as the bundle says, else as usually does well.
        reverse: a model from target to source, whose weights count as much.

    Raises:
        RequestError: a model has no attention from target to source.
        ConfigError: the choice names a head that the model does not have.
    """
    choice = choice or choice_of(model)
    if reverse is None:
        yield from (choice.links(weights) for weights in _weights(model, pairs, choice))
        return
    pairs, turned = itertools.tee(pairs)
    both = zip(
        _weights(model, pairs, choice),
        _weights(reverse, ((target, source) for source, target in turned), choice_of(reverse)),
        strict=True,
    )
    yield from (choice.joint.links(weights, other) for weights, other in both)


def _weights(model: LoadedModel, pairs: Iterable[tuple[str, str]], choice: AlignmentChoice) -> Iterator[Tensor]:
    """Yield the weights that count, between the words of each pair; tell of lines that were too long."""
    check_choice(choice, model.task)
    unread = Unread()
    for line in read_word_weights(model.task, pairs, unread=unread):
        yield choice.weights(line)
    if told := unread.summary("What was cut has no links."):
        print(f"heedful: {told}", file=sys.stderr)


def align_predictions(
    model: LoadedModel, predictions: Iterable[Prediction], *, chunk_lines: int = CHUNK_LINES
) -> Iterator[Prediction]:
    """Yield predictions with the links between the words of the source and of every candidate.

    Args:
        model: that made them.
        predictions: in order.
        chunk_lines: predictions that are taken together.
    """
    choice = choice_of(model)
    for chunk in chunks(predictions, chunk_lines):
        pairs = [(each.source, candidate.text) for each in chunk for candidate in each.candidates]
        links = align(model, pairs, choice=choice)
        for each in chunk:
            aligned = (replace(candidate, alignment=tuple(sorted(next(links)))) for candidate in each.candidates)
            yield replace(each, candidates=tuple(aligned))
        next(links, None)  # lets it report what was too long


def read_gold(path: Path | str, *, split: str | None = None, is_one_based: bool = False) -> list[GoldLine]:
    """Read gold alignments as `heedful.analysis.alignment_files.read_gold` does; tell on stderr if they seem to count
    from 1 although that was not said.
    """
    gold = read_gold_file(path, split=split, is_one_based=is_one_based)
    if not is_one_based:
        _tell_base(path, (line.possible for line in gold), GOLD_FROM_ONE)
    return gold


def _tell_base(path: Path | str, alignments: Iterable[Links], option: str) -> None:
    if seem_one_based(alignments):
        print(
            f"heedful: {path}: no link has the word 0, as if words counted from 1 there; they are taken to count from "
            f"0. If they count from 1, say `{option}`.",
            file=sys.stderr,
        )


def choose_alignment(model: LoadedModel, gold: Sequence[GoldLine], *, reverse: LoadedModel | None = None) -> Tried:
    """Return the heads, shift, threshold and symmetrisation that do best on gold alignments.

    Args:
        model: an encoder-decoder with attention.
        gold: with texts.
        reverse: a model of the other direction, for which a choice is saved: then how both do best together is found
            too, and the errors are those of both.

    Raises:
        RequestError: a model has no attention from target to source.
        DataError: the gold alignments come without their texts, or without a sure link.
    """
    pairs = texts_of(gold)
    if not any(line.sure for line in gold):
        raise DataError("The gold alignments hold no sure link, so no way to align can be told from another.")
    tried = choose(list(read_word_weights(model.task, pairs)), gold, cross_sites(model.task))
    if reverse is None:
        return tried
    turned = [(target, source) for source, target in pairs]
    joint, errors = choose_joint(
        list(_weights(model, pairs, tried.choice)), list(_weights(reverse, turned, choice_of(reverse))), gold
    )
    return Tried(tried.choice.model_copy(update={"joint": joint}), errors)


def choose_unsupervised(model: LoadedModel, pairs: Iterable[tuple[str, str]]) -> tuple[AlignmentChoice, float]:
    """Return the head or mean, and the shift, whose two views agree most on some pairs, and how far they do.

    Args:
        model: an encoder-decoder with attention.
        pairs: source and target, of which the first 500 are read.

    Raises:
        RequestError: the model has no attention from target to source.
        DataError: there are no pairs with words on both sides.
    """
    lines = list(read_word_weights(model.task, itertools.islice(pairs, AGREEMENT_LINES)))
    if not any(line.predicted.numel() for line in lines):
        raise DataError("There are no words to choose by. Give texts in both languages.")
    return choose_by_agreement(lines, cross_sites(model.task))


def save_choice(model: LoadedModel, choice: AlignmentChoice, chosen_by: dict[str, Any]) -> None:
    """Keep a choice in the model's bundle, whose manifest then names it; all of it is written, or nothing.

    Args:
        model: whose bundle.
        choice: that was made.
        chosen_by: what is told of how it was made, as plain values.

    Raises:
        BundleError: the disk is full, or a training writes there.
    """
    values = {"choice": choice.model_dump(mode="json"), "chosen_by": chosen_by}
    content = json.dumps(values, indent=2).encode() + b"\n"
    path = find_bundle(model.path)
    run = RunFolder(path.parent)
    is_in_run = path == run.bundle and run.checkpoints.is_dir()
    with run.lock(RUN_LOCK) if is_in_run else contextlib.nullcontext():
        amend_bundle(open_bundle(path), ALIGNMENT, content)


def saved_choice(model: LoadedModel) -> AlignmentChoice | None:
    """Return the choice that the model's bundle holds; None if none was made, as for a checkpoint's weights.

    Raises:
        BundleError: it is damaged.
    """
    if run_of_checkpoint(model.path) is not None:
        return None
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
        f"({choice.describe()}). `heedful align RUN --choose GOLD` finds the best on gold alignments, `heedful align "
        "RUN SOURCE TARGET --agree` a good one without.",
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
    alignments: Path | LoadedModel,
    gold: Sequence[GoldLine],
    *,
    reverse: LoadedModel | None = None,
    is_one_based: bool = False,
) -> AlignmentErrors:
    """Compare with gold alignments what a file of Pharaoh lines says, or a model, which then reads the gold texts.

    Args:
        alignments: a file or a model.
        gold: see `read_gold`.
        reverse: a model of the other direction, to align together with the model.
        is_one_based: words count from 1 in the file, whatever they do in the gold alignments' file.

    Raises:
        DataError: a line that is no alignment or whose links lie outside its text, or not as many as gold ones.
    """
    if isinstance(alignments, LoadedModel):
        return count_errors(align(alignments, texts_of(gold), reverse=reverse), gold)
    found = read_alignments(alignments, is_one_based=is_one_based)
    if len(found) != len(gold):
        raise DataError(f"{len(found):,} lines, but there are {len(gold):,} gold ones.", alignments)
    for number, (links, line) in enumerate(zip(found, gold, strict=True), start=1):
        check_range(links, line.source, line.target, str(alignments), number, option=LINKS_FROM_ONE)
    if not is_one_based:
        _tell_base(alignments, found, LINKS_FROM_ONE)
    return count_errors(found, gold)


__all__ = [
    "align",
    "align_predictions",
    "choose_alignment",
    "choose_unsupervised",
    "evaluate_alignments",
    "format_links",
    "read_gold",
    "save_choice",
    "saved_choice",
]
