"""How a model reads lines: what each attention saw, with the words that its positions stand for."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Float
from torch import Tensor

from heedful.analysis.answered import Pair, answer
from heedful.analysis.record import AttentionMap, Recording, record
from heedful.attention.tap import Gates
from heedful.core.chunks import chunks
from heedful.core.symbols import BOS_ID, EOS_ID, PAD_ID
from heedful.tasks.rows import Row, group_rows, stack_rows
from heedful.tasks.task import Task
from heedful.tasks.words import Spelling, spell
from heedful.text.tokenizer import Tokenizer
from heedful.text.unread import Unread

CHUNK_LINES = 256
_RESERVED = (PAD_ID, BOS_ID, EOS_ID)


@dataclass(frozen=True)
class Side:
    """The positions of one sequence that a model reads, as text.

    Attributes:
        ids: symbols by position, reserved ones included.
        pieces: what a person sees of each.
        spelling: text of the symbols that are not reserved, and where each begins.
    """

    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    spelling: Spelling

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words between spaces, with each reserved symbol as a word of its own, in order of position."""
        return self._words[0]

    @cached_property
    def word_of(self) -> tuple[int, ...]:
        """For each position the index of its word in `words`."""
        return self._words[1]

    @cached_property
    def _words(self) -> tuple[tuple[str, ...], tuple[int, ...]]:
        spans = self.spelling.word_spans()
        owners = iter(self.spelling.owners(spans))
        words: list[str] = []
        word_of: list[int] = []
        previous: int | None = None
        for id_, piece in zip(self.ids, self.pieces, strict=True):
            owner = None if id_ in _RESERVED else next(owners)
            if owner is None or owner != previous or not words:
                words.append(piece if owner is None else self.spelling.text[slice(*spans[owner])])
            previous = owner
            word_of.append(len(words) - 1)
        return tuple(words), tuple(word_of)

    def owners(self, spans: Sequence[tuple[int, int]]) -> list[int | None]:
        """Return for each position which span of `spelling`'s text it belongs to; None for none and for reserved ones.

        Args:
            spans: first and past-the-end places of words in the text, such as a treebank's.
        """
        owners = iter(self.spelling.owners(spans))
        return [None if id_ in _RESERVED else next(owners) for id_ in self.ids]


@dataclass(frozen=True)
class Reading:
    """One line as a model read it.

    Attributes:
        line: its number, from 0.
        source_text: as given.
        target_text: the given target or label, else the model's own answer.
        is_forced: the target was given.
        source: ``w1 .. wn EOS``; None for a language model.
        target_input: what a decoder reads, ``BOS w1 .. wn``; None for a classifier.
        target_output: what it predicts there, ``w1 .. wn EOS``.
        recording: of the batch that the line was read in.
        row: the line's row in it.
        encoded: the line alone as it was read, in ids.
    """

    line: int
    source_text: str | None
    target_text: str
    is_forced: bool
    source: Side | None
    target_input: Side | None
    target_output: Side | None
    recording: Recording
    row: int
    encoded: Row

    @property
    def maps(self) -> list[AttentionMap]:
        """The weights of every recorded attention, padding cut off."""
        return list(self.recording.maps(self.row))

    def queries(self, kind: str) -> Side | None:
        """Return the positions that attend in attentions of a kind; None for pooling, which has one query.

        A decoder's self-attention is named by what it reads, a cross-attention by what it predicts.
        """
        return {"encoder": self.source, "decoder": self.target_input, "cross": self.target_output}.get(kind)

    def keys(self, kind: str) -> Side | None:
        """Return the positions that are attended to in attentions of a kind."""
        return self.target_input if kind == "decoder" else self.source


def read_lines(
    task: Task,
    pairs: Iterable[Pair],
    *,
    pattern: str = "*.weights",
    gates: Gates | None = None,
    unread: Unread | None = None,
) -> Iterator[Reading]:
    """Let a task's model read lines, and yield what it attended to, in order.

    Args:
        task: the model with its tokenizers.
        pairs: source (None for a language model) and target or label; a target of None stands for the model's own
            answer, searched as configured.
        pattern: which points are recorded, see `Recorder`.
        gates: factors for heads, e.g. 0 for those to be silent while the line is read; not while an answer is searched.
        unread: collects the lines that were not read whole.
    """
    numbered = enumerate(pairs)
    for chunk in chunks(numbered, CHUNK_LINES):
        readings = {each.line: each for batch in _read_chunk(task, chunk, pattern, gates, unread) for each in batch}
        yield from (readings[line] for line, _ in chunk)


def read_batches(
    task: Task,
    pairs: Iterable[Pair],
    *,
    pattern: str = "*.weights",
    gates: Gates | None = None,
    unread: Unread | None = None,
) -> Iterator[list[Reading]]:
    """Do the same batch by batch: the readings of one recording, in its rows' order, which is not that of the lines.

    Lines that were not read whole are collected in `unread`.
    """
    numbered = enumerate(pairs)
    for chunk in chunks(numbered, CHUNK_LINES):
        yield from _read_chunk(task, chunk, pattern, gates, unread)


def _read_chunk(
    task: Task,
    chunk: Sequence[tuple[int, Pair]],
    pattern: str,
    gates: Gates | None,
    unread: Unread | None,
) -> Iterator[list[Reading]]:
    answered = answer(task, chunk, unread)
    given = {line: pair for line, pair in chunk}
    texts = {each.row.line: each.text for each in answered}
    for group in _groups([each.row for each in answered]):
        with task.inference():
            recording = record(task.model, stack_rows(group).to(task.device), pattern, gates=gates)
        yield [
            _reading(task, row, given[row.line], texts[row.line], recording, place) for place, row in enumerate(group)
        ]


def _groups(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield rows that are read together: blank lines without a label not among those with one."""
    for is_labelled in (True, False):
        yield from group_rows([each for each in rows if (each.label is not None) == is_labelled])


def _reading(task: Task, row: Row, pair: Pair, target: str, recording: Recording, place: int) -> Reading:
    codec = task.codec
    output = None if row.target is None else _side(codec.target, row.target[1:], codec.decode_target)
    return Reading(
        line=row.line,
        source_text=pair[0],
        target_text=target,
        is_forced=pair[1] is not None,
        source=_side(codec.source, row.source, codec.decode_source),
        target_input=None if output is None else _as_read(codec.target, row.target, output),
        target_output=output,
        recording=recording,
        row=place,
        encoded=row,
    )


def _as_read(tokenizer: Tokenizer | None, target: Sequence[int] | None, output: Side) -> Side:
    """Return what a decoder reads of a target: what it predicts but for the ends, so that nothing is spelled again."""
    assert tokenizer is not None and target is not None
    ids = tuple(target[:-1])
    return Side(ids, tuple(tokenizer.pieces(list(ids))), output.spelling)


def _side(
    tokenizer: Tokenizer | None, ids: Sequence[int] | None, decode: Callable[[Sequence[int]], str]
) -> Side | None:
    if tokenizer is None or ids is None:
        return None
    visible = [each for each in ids if each not in _RESERVED]
    return Side(tuple(ids), tuple(tokenizer.pieces(list(ids))), spell(visible, decode))


def by_words(
    weights: Float[Tensor, "H Q K"], query_words: Sequence[int | None], key_words: Sequence[int | None]
) -> Float[Tensor, "H QW KW"]:
    """Return weights between words: summed over the symbols of a word that is read, mean over those of one that reads.

    Rows stay distributions (Clark et al. 2019, section 4.1; Voita et al. 2019 label heads in the same way).

    Args:
        weights: between positions.
        query_words: index of the word of each query; None leaves it out.
        key_words: index of the word of each key; None leaves it out, and rows then sum to less than 1.
    """
    from_query, counts = _membership(weights, query_words)
    from_key, _ = _membership(weights, key_words)
    return (from_query / counts.clamp(min=1)) @ weights @ from_key.T


def _membership(weights: Tensor, words: Sequence[int | None]) -> tuple[Float[Tensor, "W P"], Float[Tensor, "W 1"]]:
    num_words = max((each + 1 for each in words if each is not None), default=0)
    member = weights.new_zeros(num_words, len(words))
    owned = [position for position, word in enumerate(words) if word is not None]
    member[[words[position] for position in owned], owned] = 1
    return member, member.sum(1, keepdim=True)
