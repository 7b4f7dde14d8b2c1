"""Cross-attention between the words of two lines, whatever symbols a model reads them as."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.reading import Reading, by_words, read_lines
from heedful.core.errors import RequestError
from heedful.models.interfaces import AttentionSite
from heedful.tasks.task import Task
from heedful.text.unread import Unread

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, order=True)
class HeadName:
    """One head of a model.

    Attributes:
        site: path of its attention.
        head: its number there, from 0.
    """

    site: str
    head: int


@dataclass(frozen=True)
class WordWeights:
    """What the cross-attention heads of a model say of one pair of lines, summed to the words between spaces.

    Attributes:
        line: its number, from 0.
        heads: in the order of the weights.
        predicted: weights of the step that predicts a target word, over the source words.
        read: weights of the step after it, which has read the target word: often the better alignment (Chen et al.
            2020, section 4.1).
    """

    line: int
    heads: tuple[HeadName, ...]
    predicted: Float[Tensor, "H T S"]
    read: Float[Tensor, "H T S"]

    def mean(self, heads: Sequence[HeadName], shift: int) -> Float[Tensor, "T S"]:
        """Return the mean over some heads; a shift of 1 takes the weights of the step after."""
        rows = [self.heads.index(each) for each in heads]
        return (self.read if shift else self.predicted)[rows].mean(dim=0)


def cross_sites(task: Task) -> list[AttentionSite]:
    """Return the attentions that tell which source words a target word goes with.

    Raises:
        RequestError: the model has none.
    """
    cross = [each for each in task.model.attention_sites() if each.kind == "cross"]
    sites = [each for each in cross if each.num_heads]
    if cross and not sites:
        raise RequestError(
            "Every head that attends from target to source was pruned away. Align with the model as it was before."
        )
    if not sites:
        raise RequestError(
            f"`model.kind` is `{task.config.model.kind}`, without an attention from target to source as it was "
            "trained. Alignments need an encoder-decoder with attention."
        )
    return sites


def read_word_weights(
    task: Task, pairs: Iterable[tuple[str, str]], *, unread: Unread | None = None
) -> Iterator[WordWeights]:
    """Let a model read given translations, and yield its cross-attention between their words, in order.

    Args:
        task: an encoder-decoder with attention.
        pairs: source and target.
        unread: collects the lines that were not read whole; the words cut off have weights of 0.

    Raises:
        RequestError: the model has no cross-attention.
    """
    sites = {each.path for each in cross_sites(task)}
    for reading in read_lines(task, pairs, pattern="*cross_attention.weights"):
        yield _between_words(task, reading, sites, unread)


def _between_words(task: Task, reading: Reading, sites: set[str], unread: Unread | None) -> WordWeights:
    codec, line = task.codec, reading.line
    source, target = reading.source_text or "", reading.target_text
    codec.encode_source(source, unread=unread, line=line + 1)
    codec.encode_target(target, unread=unread, line=line + 1)
    assert codec.source is not None and codec.target is not None
    encode_source, encode_target = codec.source.encode, codec.target.encode
    source_words = word_of_symbols(source, lambda text: encode_source(codec.normalize(text)))
    target_words = word_of_symbols(target, lambda text: encode_target(codec.normalize(text)))
    num_source, num_target = len(source.split()), len(target.split())
    maps = [each for each in reading.maps if each.site.path in sites]
    weights = torch.cat([each.weights for each in maps])
    # Queries are BOS w1 .. wn and predict w1 .. wn EOS; the last key is EOS, which no word owns.
    num_queries, num_keys = weights.shape[1:]
    rows, columns = _fit(target_words, num_queries - 1), _fit(source_words, num_keys - 1)
    predicted, read = (
        _pad(by_words(each[:, :, :-1], rows, columns), num_target, num_source)
        for each in (weights[:, :-1], weights[:, 1:])
    )
    heads = tuple(HeadName(each.site.path, head) for each in maps for head in range(each.site.num_heads))
    return WordWeights(line, heads, predicted, read)


def word_of_symbols(text: str, encode: Callable[[str], Sequence[int]]) -> list[int | None]:
    """Return for each symbol of a text which of the words between spaces it belongs to.

    No tokenizer lets a symbol cross a space, so that the symbols of a text's beginning begin those of the text. Spaces
    belong to the word after them.

    Args:
        text: as given.
        encode: returns the symbols of a text, without reserved ones.
    """
    owners: list[int | None] = []
    for word, match in enumerate(_WORD.finditer(text)):
        owners += [word] * (len(encode(text[: match.end()])) - len(owners))
    return owners + [None] * (len(encode(text)) - len(owners))


def _fit(words: list[int | None], num_positions: int) -> list[int | None]:
    """Return as many owners as there are positions: a line that was too long has fewer."""
    return words[:num_positions] + [None] * (num_positions - len(words))


def _pad(weights: Tensor, num_target: int, num_source: int) -> Tensor:
    padded = weights.new_zeros(weights.shape[0], num_target, num_source)
    padded[:, : weights.shape[1], : weights.shape[2]] = weights
    return padded
