"""Batches: every row once, within the budget, little padding, an order that seed and epoch fix."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data import BatchingConfig, collate, group_rows
from heedful.data.batching import measure_waste

LENGTHS = st.lists(st.tuples(st.integers(1, 53), st.integers(2, 47)), min_size=1, max_size=150)


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 97), st.integers(1, 13), st.integers(0, 2), st.booleans())
def test_every_row_once_within_the_budget(
    lengths: list[tuple[int, int]], budget: int, max_rows: int, sides: int, is_grouped: bool
) -> None:
    source, target = (np.array(each) for each in zip(*lengths, strict=True))
    config = BatchingConfig(batch_tokens=budget, max_rows=max_rows, is_grouped=is_grouped)
    known = (source if sides != 1 else None, target if sides != 2 else None)
    batches = group_rows(*known, config, seed=(3, 0))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for rows in batches:
        assert len(rows) <= max_rows
        if len(rows) > 1:
            assert known[1] is None or len(rows) * (target[rows].max() - 1) <= budget
            assert known[0] is None or len(rows) * source[rows].max() <= budget * (2 if known[1] is not None else 1)


def test_order_is_fixed_by_seed_and_epoch() -> None:
    generator = np.random.default_rng(1)
    source, target = generator.integers(2, 19, 211), generator.integers(2, 17, 211)

    def order(*seed: int) -> list[list[int]]:
        return [rows.tolist() for rows in group_rows(source, target, BatchingConfig(batch_tokens=101), seed)]

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(1, 1) != order(2, 1)
    first, second = (set(map(frozenset, order(1, epoch))) for epoch in (0, 1))
    assert len(first & second) < len(first) / 3  # equal rows meet new company


def test_a_batch_by_hand() -> None:
    # Symbols to say: 3, 7, 3, 3, 5; the budget of 6 takes two short rows, and each other row alone.
    for seed in range(13):
        batches = group_rows(None, np.array([4, 8, 4, 4, 6]), BatchingConfig(batch_tokens=6), seed=(seed,))
        assert [1] in [rows.tolist() for rows in batches] and [4] in [rows.tolist() for rows in batches]
        assert sorted(len(rows) for rows in batches) in ([1, 1, 1, 2], [1, 1, 1, 1, 1])
    waste = measure_waste([np.array([0, 1]), np.array([2])], None, np.array([3, 7, 5]))
    assert waste.target == pytest.approx(4 / 16) and waste.source == 0.0
    assert waste.summary() == "2 batches; padding is 0.0% of source and 25.0% of target"


def test_little_is_padding() -> None:
    """Lengths like those of image captions: near 15, correlated at 0.87 as the real ones are."""
    generator = np.random.default_rng(7)
    common = generator.gamma(9, 1.5, 29_000)
    source = np.round(common + generator.normal(0, 1.3, 29_000)).clip(1).astype(np.int64) + 2
    target = np.round(common + generator.normal(0, 1.3, 29_000)).clip(1).astype(np.int64) + 3
    assert 0.8 < np.corrcoef(source, target)[0, 1] < 0.95
    batches = group_rows(source, target, BatchingConfig(), (1, 0))
    waste = measure_waste(batches, source, target)
    assert waste.source < 0.05 and waste.target < 0.05
    loose = group_rows(source, target, BatchingConfig(is_grouped=False), (1, 0))
    assert measure_waste(loose, source, target).target > 0.3


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(1, 99), min_size=1, max_size=11), min_size=1, max_size=7))
def test_collating_pads_at_the_right(rows: list[list[int]]) -> None:
    batch = collate(lines=range(len(rows)), sources=rows, targets=[np.array([2, *row], np.uint16) for row in rows])
    assert batch.source is not None and batch.target is not None and batch.source_lengths is not None
    width = max(map(len, rows))
    assert batch.source.tolist() == [row + [0] * (width - len(row)) for row in rows]
    assert batch.source.dtype == torch.int64 and batch.labels is None
    assert batch.source_lengths.tolist() == [len(row) for row in rows]
    assert torch.equal(batch.target[:, 1:], batch.source)
    assert batch.source_keep.sum(1).tolist() == [len(row) for row in rows]


def test_collating_nothing() -> None:
    batch = collate(lines=[], sources=[], labels=[])
    assert len(batch) == 0 and batch.source is not None and batch.source.shape == (0, 0)
