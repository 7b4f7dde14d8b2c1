"""Learning to align on top of attention: training pairs are read once, a lexicon is learnt over what it expects."""

import copy
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from heedful.analysis.alignment_choice import AlignmentChoice
from heedful.analysis.alignment_error import AlignmentErrors, GoldLine, count_errors
from heedful.analysis.alignment_learning import MAX_WORDS, NUM_ROUNDS, learn, teaches
from heedful.analysis.alignment_model import USUAL_THRESHOLD, AlignmentModel, Line, links_above
from heedful.analysis.word_weights import cross_sites, read_word_weights
from heedful.core.errors import DataError, HeedfulError
from heedful.core.runtime import choose_dtype
from heedful.data.example import Example
from heedful.runs.alignment_choices import choose_unsupervised
from heedful.runs.alignment_kept import check_choice, saved_choice, saved_reasons
from heedful.runs.alignments import agreements, texts_of
from heedful.runs.loaded import LoadedModel
from heedful.runs.training_examples import draw_examples

Pair = tuple[str, str]

MAX_PAIRS = 100_000
THRESHOLDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)

_FEW_WORDS = 1.5
"""Words a line on either side, below which words are perhaps not what stands between spaces."""


@dataclass(frozen=True)
class LearntAlignment:
    """What was learnt, not yet saved.

    Attributes:
        model: lexicon and jumps.
        choice: the heads whose attention was read, and above what a link is one.
        num_pairs: that were learnt from.
        chosen_by: how heads and threshold were chosen, as plain values.
        errors: on the gold alignments that the threshold was chosen on, if any.
    """

    model: AlignmentModel
    choice: AlignmentChoice
    num_pairs: int
    chosen_by: dict[str, Any]
    errors: AlignmentErrors | None


def learn_alignment(
    model: LoadedModel,
    pairs: Sequence[Pair] = (),
    *,
    choice: AlignmentChoice | None = None,
    gold: Sequence[GoldLine] | None = None,
    max_pairs: int = MAX_PAIRS,
) -> LearntAlignment:
    """Learn which words translate each other, from the model's training pairs and others.

    Pairs without words on one side or with more than 100 are left out. The training pairs are those of the file, as
    they were before cleaning; if they are too many, so many of them, each as likely.

    Args:
        model: an encoder-decoder with attention.
        pairs: source and target of texts that are to be aligned, or any others; they are taken first.
        choice: heads whose attention is what is expected; absent means the saved ones, else those that agree most.
        gold: alignments with texts, on which the threshold of links is chosen; absent means the usual one.
        max_pairs: that are read at most, the given ones included.

    Raises:
        RequestError: the model has no attention from target to source.
        DataError: there are no pairs with words on both sides, or the training data cannot be read and none are given.
        ConfigError: the choice names a head that the model does not have.
    """
    cross_sites(model.task)
    texts = _texts(model, pairs, max_pairs)
    chosen_by: dict[str, Any] = {}
    if choice is None:
        choice, chosen_by = saved_choice(model), saved_reasons(model)
    if choice is None:
        choice, agreement = choose_unsupervised(model, texts)
        chosen_by = {"agreement": agreement}
    check_choice(choice, model.task)
    learnt = _learn(model, texts, choice)
    threshold, errors = USUAL_THRESHOLD, None
    if gold is not None:
        threshold, errors = _choose_threshold(model, choice, learnt, gold)
    choice = choice.model_copy(update={"learnt": threshold})
    chosen_by |= {"pairs": len(texts), **(errors.to_values() if errors else {})}
    return LearntAlignment(learnt, choice, len(texts), chosen_by, errors)


def _texts(model: LoadedModel, pairs: Iterable[Pair], max_pairs: int) -> list[Pair]:
    """Return the pairs to read: those given, then those of training; what is missing of the latter is told."""
    texts = [each for each in pairs if _teaches(each)][:max_pairs]
    try:
        if len(texts) < max_pairs:
            source, left = model.config.task.data.train, max_pairs - len(texts)
            texts += map(_pair, draw_examples(source, left, is_wanted=lambda each: _teaches(_pair(each))))
    except HeedfulError as error:
        if not texts:
            raise DataError(
                f"The training pairs cannot be read: {error} Name two files with words on both sides, RUN SOURCE "
                "TARGET, to learn from."
            ) from None
        print(f"heedful: learning from the {len(texts):,} given pairs alone: {error}", file=sys.stderr)
    if not texts:
        raise DataError(f"There is no pair of lines with 1 to {MAX_WORDS} words on both sides to learn from.")
    num_words = [sum(len(text.split()) for text in side) / len(texts) for side in zip(*texts, strict=True)]
    if min(num_words) < _FEW_WORDS:
        print(
            f"heedful: lines have {min(num_words):.1f} words on one side. Words are what stands between spaces; text "
            "without spaces is a single word, with which nothing is aligned.",
            file=sys.stderr,
        )
    return texts


def _teaches(pair: Pair) -> bool:
    source, target = pair
    return teaches(source.split(), target.split())


def _pair(example: Example) -> Pair:
    return example.source or "", example.target or ""


def _learn(model: LoadedModel, texts: Sequence[Pair], choice: AlignmentChoice) -> AlignmentModel:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("reading pairs", total=len(texts))
        lines = []
        for line in _read(model, texts, choice):
            lines.append(line)
            progress.update(bar, completed=len(lines))
        bar = progress.add_task("rounds of learning", total=NUM_ROUNDS)
        return learn(lines, tell=lambda done: progress.update(bar, completed=done))


def _read(model: LoadedModel, texts: Sequence[Pair], choice: AlignmentChoice) -> Iterator[Line]:
    """Yield the pairs with what the chosen heads say of them: in the machine's quickest arithmetic, in half precision,
    as they are many and no single weight matters.
    """
    task = copy.copy(model.task)
    task.dtype = choose_dtype("auto", task.device)
    for (source, target), weights in zip(texts, read_word_weights(task, texts), strict=True):
        yield Line(source.split(), target.split(), choice.weights(weights).to(torch.float16))


def _choose_threshold(
    model: LoadedModel, choice: AlignmentChoice, learnt: AlignmentModel, gold: Sequence[GoldLine]
) -> tuple[float, AlignmentErrors]:
    """Return the threshold that does best on gold alignments."""
    found = list(agreements(model, texts_of(gold), choice, learnt))
    tried = (
        (threshold, count_errors((links_above(each, threshold) for each in found), gold)) for threshold in THRESHOLDS
    )
    return min(tried, key=lambda pair: pair[1].aer)
