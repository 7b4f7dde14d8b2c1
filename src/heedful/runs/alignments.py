"""Word alignments from a trained model, as its bundle says, and how far alignments are from gold ones."""

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from heedful.analysis.alignment import Links
from heedful.analysis.alignment_choice import AlignmentChoice
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
from heedful.analysis.alignment_model import AlignmentModel, Line, links_above
from heedful.analysis.word_weights import read_word_weights
from heedful.core.chunks import chunks
from heedful.core.errors import DataError
from heedful.runs.alignment_kept import check_choice, choice_of, saved_lexicon
from heedful.runs.loaded import LoadedModel
from heedful.tasks import Prediction
from heedful.text.unread import Unread

CHUNK_LINES = 256


def align(
    model: LoadedModel,
    pairs: Iterable[tuple[str, str]],
    *,
    choice: AlignmentChoice | None = None,
    learnt: AlignmentModel | None = None,
    reverse: LoadedModel | None = None,
) -> Iterator[Links]:
    """Yield the links between the words of each source and its translation, in order; words stand between spaces.

    Args:
        model: an encoder-decoder with attention.
        pairs: source and target.
        choice: how weights become links; absent means as the bundle says, else as usually does well.
        learnt: over the heads of the choice, where it says so; absent means what the bundle holds.
        reverse: a model from target to source, whose weights count as much; what was learnt is not asked then.

    Raises:
        RequestError: a model has no attention from target to source.
        ConfigError: the choice names a head that the model does not have.
    """
    choice = choice or choice_of(model)
    if reverse is not None:
        pairs, turned = itertools.tee(pairs)
        both = zip(
            chosen_weights(model, pairs, choice),
            chosen_weights(reverse, ((target, source) for source, target in turned), choice_of(reverse)),
            strict=True,
        )
        yield from (choice.joint.links(weights, other) for weights, other in both)
    elif choice.learnt is not None:
        found = agreements(model, pairs, choice, learnt or saved_lexicon(model))
        yield from (links_above(each, choice.learnt) for each in found)
    else:
        yield from (choice.links(weights) for weights in chosen_weights(model, pairs, choice))


def agreements(
    model: LoadedModel, pairs: Iterable[tuple[str, str]], choice: AlignmentChoice, learnt: AlignmentModel
) -> Iterator[Tensor]:
    """Yield how probable every link of each pair is, ``T S``, by what was learnt, see `AlignmentModel.agreement`."""
    pairs, texts = itertools.tee(pairs)
    lines = (
        Line(source.split(), target.split(), weights)
        for (source, target), weights in zip(texts, chosen_weights(model, pairs, choice), strict=True)
    )
    for chunk in chunks(lines, CHUNK_LINES):
        yield from learnt.agreement(chunk)


def chosen_weights(model: LoadedModel, pairs: Iterable[tuple[str, str]], choice: AlignmentChoice) -> Iterator[Tensor]:
    """Yield the weights that count, ``T S``, between the words of each pair; tell of lines that were too long."""
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
    learnt = None if choice.learnt is None else saved_lexicon(model)
    for chunk in chunks(predictions, chunk_lines):
        pairs = [(each.source, candidate.text) for each in chunk for candidate in each.candidates]
        links = align(model, pairs, choice=choice, learnt=learnt)
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


__all__ = ["align", "align_predictions", "evaluate_alignments", "format_links", "read_gold"]
