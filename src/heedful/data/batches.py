"""Batches for training, epoch after epoch, from any position on."""

import hashlib
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np

from heedful.core.symbols import BOS_ID
from heedful.core.types import Batch, PlacedBatch, Position
from heedful.data.batching import BatchingConfig, Rows, Waste, group_rows, measure_waste
from heedful.data.collate import Row, collate
from heedful.data.store import Store
from heedful.data.stream import Stream
from heedful.text.codec import Codec
from heedful.text.unread import Unread


class Batches(ABC):
    """All batches of a training set. What an epoch gives depends on the seed and the epoch's number alone."""

    @abstractmethod
    def epoch(self, number: int) -> list[Rows]:
        """Return the batches of an epoch (from 0) as indices; their order is the order of training."""

    @abstractmethod
    def batch(self, rows: Rows, epoch: int) -> Batch:
        """Return the tensors of a batch of that epoch."""

    def placed(self, position: Position) -> Iterator[PlacedBatch]:
        """Yield batches for ever from a position on, each with the position that follows it."""
        epoch, start = position.epoch, position.batch
        while True:
            plan = self.epoch(epoch)
            for index in range(start, len(plan)):
                following = Position(epoch, index + 1) if index + 1 < len(plan) else Position(epoch + 1, 0)
                yield PlacedBatch(self.batch(plan[index], epoch), following)
            epoch, start = epoch + 1, 0


class LineBatches(Batches):
    """Batches of a store's rows, of like length together.

    Args:
        store: the ids.
        config: the budget.
        seed: of the order and of subword sampling.
        codec: given, and if its tokenizers sample, each epoch cuts every line into symbols anew, drawn by (seed, epoch,
            line); batches are still planned by the lengths in the store.
    """

    def __init__(self, store: Store, config: BatchingConfig, seed: int, codec: Codec | None = None) -> None:
        self.store = store
        self.config = config
        self.seed = seed
        self.codec = codec if codec is not None and codec.is_sampling else None

    @property
    def is_fixed(self) -> bool:
        """True if a row is the same in every epoch."""
        return self.codec is None

    def epoch(self, number: int) -> list[Rows]:
        seed = (self.seed % 2**63, number)
        return group_rows(self.store.source_lengths, self.store.target_lengths, self.config, seed)

    def batch(self, rows: Rows, epoch: int) -> Batch:
        store = self.store
        sides = [self._sides(int(row), epoch) for row in rows]
        return collate(
            lines=store.corpus.lines[store.rows[rows]] - 1,
            sources=None if store.source_lengths is None else [source for source, _ in sides],
            targets=None if store.target_lengths is None else [target for _, target in sides],
            labels=None if store.labels is None else store.labels[rows],
        )

    def _sides(self, row: int, epoch: int) -> tuple[Row, Row]:
        """Return a row's source and target as stored or as drawn for the epoch; empty where there is none."""
        store, codec = self.store, self.codec
        source: Row = () if store.source_lengths is None else store.source(row)
        target: Row = () if store.target_lengths is None else store.target(row)
        if codec is None:
            return source, target
        example, seed = store.example(row), line_seed(self.seed, epoch, row)
        if codec.source is not None:
            source = _draw(codec.encode_source, example.source or "", seed, source)
        if codec.target is not None:
            target = _draw(codec.encode_target, example.target or "", seed ^ 1, target)
        return source, target

    def waste(self, epoch: int = 0) -> Waste:
        """Return how much of an epoch is padding."""
        return measure_waste(self.epoch(epoch), self.store.source_lengths, self.store.target_lengths)


def _draw(encode: Callable[..., list[int]], text: str, seed: int, stored: Row) -> Row:
    """Return a segmentation drawn by the seed, or the stored one if the drawn is longer than the codec allows."""
    cuts = Unread()
    drawn = encode(text, seed, unread=cuts)
    return stored if cuts.cut.count else drawn


class StreamBatches(Batches):
    """Windows of a stream for language models: every symbol is predicted once an epoch (but for the ends).

    A row is BOS and ``context`` symbols, without EOS. Windows follow one another without gap; where the first begins is
    drawn for each epoch, so that a symbol is not always seen at the same place.

    Args:
        stream: the ids.
        context: symbols of a window.
        config: `batch_tokens` symbols make a batch.
        seed: of the order and the first window's place.
    """

    def __init__(self, stream: Stream, context: int, config: BatchingConfig, seed: int) -> None:
        self.stream = stream
        self.context = context
        self.config = config
        self.seed = seed

    def epoch(self, number: int) -> list[Rows]:
        """Return the batches as places in the stream where their windows begin."""
        generator = np.random.default_rng([self.seed % 2**63, number])
        size, context = len(self.stream), self.context
        num_rows = max(min(self.config.batch_tokens // context, self.config.max_rows or size), 1)
        starts = np.arange(0, size, context)
        if size > context:
            last = size - context
            starts = generator.permutation(np.arange(generator.integers(min(context, last + 1)), last + 1, context))
        return np.split(starts, np.arange(num_rows, len(starts), num_rows))

    def batch(self, rows: Rows, epoch: int) -> Batch:
        windows = [np.concatenate(([BOS_ID], self.stream.ids[start : start + self.context])) for start in rows]
        return collate(lines=rows, targets=windows)


def line_seed(seed: int, epoch: int, line: int) -> int:
    """Return a seed of 32 bits that is like no other line's or epoch's."""
    packed = struct.pack("<Qqq", seed % 2**64, epoch, line)
    return int.from_bytes(hashlib.blake2b(packed, digest_size=4).digest(), "little")
