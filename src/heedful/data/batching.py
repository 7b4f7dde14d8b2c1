"""Rows into batches of equal work: rows of like length together, in an order that seed and epoch fix."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from heedful.core.config import Config

_NOISE = 0.05

Rows = NDArray[np.int64]
Lengths = NDArray[np.int64]


class BatchingConfig(Config):
    """How many rows go together.

    A batch's budget counts padded positions: rows times the longest row. It is set for the target side, where most work
    is done (for the source side where there is no target); the other side has its own, wider cap.

    Attributes:
        batch_tokens: padded target positions of a batch at most, BOS not counted. A single longer row is a batch alone.
        max_source_tokens: padded source positions of a batch at most; absent means twice `batch_tokens`.
        max_rows: rows of a batch at most.
        is_grouped: rows of like length go together; False takes them in random order, with more padding.
    """

    batch_tokens: int = Field(default=4096, ge=1)
    max_source_tokens: int | None = Field(default=None, ge=1)
    max_rows: int | None = Field(default=None, ge=1)
    is_grouped: bool = True


@dataclass(frozen=True)
class Waste:
    """Share of padding among all positions of an epoch, from 0 to 1, and how many batches there are.

    A target has as many positions as it has symbols to be predicted: BOS is read, but not said.
    """

    source: float
    target: float
    num_batches: int

    def summary(self) -> str:
        """Return one sentence."""
        return f"{self.num_batches:,} batches; padding is {self.source:.1%} of source and {self.target:.1%} of target"


def group_rows(
    source_lengths: Lengths | None, target_lengths: Lengths | None, config: BatchingConfig, seed: Sequence[int]
) -> list[Rows]:
    """Divide all rows into batches, each row in one, and shuffle the batches.

    Rows are sorted by their longer side and, within it, by how much one side is longer, in alternating direction, so
    that neighbours are alike on both sides; equal rows are shuffled, and the cuts are elsewhere with each seed.

    Args:
        source_lengths: positions of each source, or None.
        target_lengths: positions of each target, or None.
        config: the budget.
        seed: integers that fix the order.
    """
    generator = np.random.default_rng(list(seed))
    known = target_lengths if target_lengths is not None else source_lengths
    assert known is not None, "rows need a source or a target"
    order = generator.permutation(len(known))
    source = (np.zeros_like(known) if source_lengths is None else source_lengths)[order]
    target = (np.zeros_like(known) if target_lengths is None else target_lengths)[order]
    if config.is_grouped:
        # A little noise, in proportion, lets rows meet others than their nearest where few lengths are equal.
        longer = np.floor(np.maximum(source, target) * generator.uniform(1, 1 + _NOISE, len(known))).astype(np.int64)
        difference = source - target
        places = np.lexsort((np.where(longer % 2, -difference, difference), longer))
        order, source, target = order[places], source[places], target[places]
    # Without a target the source carries the budget. BOS is read, but not said.
    budget = config.batch_tokens
    source_limit = budget if target_lengths is None else config.max_source_tokens or 2 * budget
    limits = np.array([source_limit, budget, config.max_rows or len(known)])
    bounds = _cut(source, target - 1, limits, first_share=generator.random())
    batches = np.split(order, bounds)
    return [batches[index] for index in generator.permutation(len(batches))]


def _cut(source: Lengths, target: Lengths, limits: NDArray[np.int64], first_share: float) -> list[int]:
    """Return where, in rows that are in order, a new batch must begin.

    Args:
        source: positions of each source.
        target: positions of each target.
        limits: of source positions, target positions and rows of a batch.
        first_share: the first batch has this share of the limits, so that the cuts are elsewhere in each epoch.
    """
    bounds: list[int] = []
    start = longest_source = longest_target = 0
    most_source, most_target, most_rows = (limits * first_share).tolist()
    for index, (source_length, target_length) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
        longest_source, longest_target = max(longest_source, source_length), max(longest_target, target_length)
        count = index + 1 - start
        is_over = count * longest_source > most_source or count * longest_target > most_target or count > most_rows
        if is_over and count > 1:
            bounds.append(index)
            start, longest_source, longest_target = index, source_length, target_length
            most_source, most_target, most_rows = limits.tolist()
    return bounds


def measure_waste(batches: list[Rows], source_lengths: Lengths | None, target_lengths: Lengths | None) -> Waste:
    """Return how much of the batches is padding; target lengths count BOS."""
    said = None if target_lengths is None else target_lengths - 1
    return Waste(_waste(batches, source_lengths), _waste(batches, said), len(batches))


def _waste(batches: list[Rows], lengths: Lengths | None) -> float:
    if lengths is None:
        return 0.0
    real = sum(int(lengths[rows].sum()) for rows in batches)
    padded = sum(len(rows) * int(lengths[rows].max()) for rows in batches)
    return 1 - real / padded
