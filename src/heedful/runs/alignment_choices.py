"""How a model aligns words best: chosen on gold alignments, or without, by how far its heads agree with themselves."""

import itertools
from collections.abc import Iterable, Sequence

from heedful.analysis.alignment_choice import AlignmentChoice, Tried, choose, choose_by_agreement, choose_joint
from heedful.analysis.alignment_error import GoldLine
from heedful.analysis.word_weights import cross_sites, read_word_weights
from heedful.core.errors import DataError
from heedful.runs.alignment_kept import choice_of
from heedful.runs.alignments import chosen_weights, texts_of
from heedful.runs.loaded import LoadedModel

AGREEMENT_LINES = 500


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
        list(chosen_weights(model, pairs, tried.choice)),
        list(chosen_weights(reverse, turned, choice_of(reverse))),
        gold,
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
