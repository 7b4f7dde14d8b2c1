"""Learning to align on top of attention: training pairs are read once, a lexicon is learnt over what it expects."""

import copy
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from heedful.analysis.alignment_choice import AlignmentChoice
from heedful.analysis.alignment_error import AlignmentErrors, GoldLine, count_errors
from heedful.analysis.alignment_learning import NUM_ROUNDS, learn
from heedful.analysis.alignment_model import USUAL_THRESHOLD, AlignmentModel, Line, links_above
from heedful.core.errors import DataError, HeedfulError
from heedful.core.runtime import choose_dtype
from heedful.data.opening import STDIN
from heedful.data.readers import data_paths, read_examples
from heedful.data.report import ReadReport
from heedful.runs.alignment_choices import choose_unsupervised
from heedful.runs.alignment_kept import saved_choice
from heedful.runs.alignments import agreements, chosen_weights, texts_of
from heedful.runs.loaded import LoadedModel

MAX_PAIRS = 100_000
THRESHOLDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)


@dataclass(frozen=True)
class LearntAlignment:
    """What was learnt, not yet saved.

    Attributes:
        model: lexicon and jumps.
        choice: the heads whose attention was read, and above what a link is one.
        num_pairs: that were learnt from.
        errors: on the gold alignments that the threshold was chosen on, if any.
    """

    model: AlignmentModel
    choice: AlignmentChoice
    num_pairs: int
    errors: AlignmentErrors | None


def learn_alignment(
    model: LoadedModel,
    pairs: Sequence[tuple[str, str]] = (),
    *,
    choice: AlignmentChoice | None = None,
    gold: Sequence[GoldLine] | None = None,
    max_pairs: int = MAX_PAIRS,
) -> LearntAlignment:
    """Learn which words translate each other, from the model's training pairs and others.

    Args:
        model: an encoder-decoder with attention.
        pairs: source and target of texts that are to be aligned, or any others; they are read first.
        choice: heads whose attention is what is expected; absent means the saved ones, else those that agree most.
        gold: alignments with texts, on which the threshold of links is chosen; absent means the usual one.
        max_pairs: that are read at most, the given ones included.

    Raises:
        RequestError: the model has no attention from target to source.
        DataError: there are no pairs with words on both sides, or the training data cannot be read and none are given.
    """
    texts = _texts(model, pairs, max_pairs)
    choice = choice or saved_choice(model) or choose_unsupervised(model, texts)[0]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("reading pairs", total=len(texts))
        lines = []
        for line in _read(model, texts, choice):
            lines.append(line)
            progress.update(bar, completed=len(lines))
        bar = progress.add_task("rounds of learning", total=NUM_ROUNDS)
        try:
            learnt = learn(lines, tell=lambda done: progress.update(bar, completed=done))
        except ValueError as error:
            raise DataError(f"{error}, so nothing can be learnt. Give texts in both languages.") from None
    choice = choice.model_copy(update={"learnt": USUAL_THRESHOLD})
    if gold is None:
        return LearntAlignment(learnt, choice, len(texts), None)
    threshold, errors = _choose_threshold(model, choice, learnt, gold)
    return LearntAlignment(learnt, choice.model_copy(update={"learnt": threshold}), len(texts), errors)


def _texts(model: LoadedModel, pairs: Sequence[tuple[str, str]], max_pairs: int) -> list[tuple[str, str]]:
    """Return the pairs to read: those given, then those of training; what is missing of the latter is told."""
    texts = list(pairs[:max_pairs])
    try:
        texts += itertools.islice(_training_pairs(model), max_pairs - len(texts))
    except HeedfulError as error:
        if not any(source.strip() and target.strip() for source, target in texts):
            raise DataError(
                f"The training pairs cannot be read: {error} Name two files, RUN SOURCE TARGET, to learn from."
            ) from None
        print(f"heedful: learning from the {len(texts):,} given pairs alone: {error}", file=sys.stderr)
    return texts


def _training_pairs(model: LoadedModel) -> Iterator[tuple[str, str]]:
    source = model.config.task.data.train
    if STDIN in data_paths(source):
        raise DataError("they came on standard input.")
    for each in read_examples(source, Path.cwd(), ReadReport()):
        if each.source and each.target:
            yield each.source, each.target


def _read(model: LoadedModel, texts: Sequence[tuple[str, str]], choice: AlignmentChoice) -> Iterator[Line]:
    """Yield the pairs with what the chosen heads say of them: in the machine's quickest arithmetic, in half precision,
    as they are many and no single weight matters.
    """
    quick = copy.copy(model)
    quick.task = copy.copy(model.task)
    quick.task.dtype = choose_dtype("auto", model.task.device)
    for (source, target), weights in zip(texts, chosen_weights(quick, texts, choice), strict=True):
        yield Line(source.split(), target.split(), weights.to(torch.float16))


def _choose_threshold(
    model: LoadedModel, choice: AlignmentChoice, learnt: AlignmentModel, gold: Sequence[GoldLine]
) -> tuple[float, AlignmentErrors]:
    """Return the threshold that does best on gold alignments."""
    found = list(agreements(model, texts_of(gold), choice, learnt))
    tried = (
        (threshold, count_errors((links_above(each, threshold) for each in found), gold)) for threshold in THRESHOLDS
    )
    return min(tried, key=lambda pair: pair[1].aer)
