"""Batches shrink through few sizes, and never lose a sentence that is not over."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.search.compaction import rows_to_keep, size_for


def test_sizes_by_hand() -> None:
    assert [size_for(each) for each in (0, 1, 2, 3, 4, 5, 8, 9, 17, 64)] == [0, 1, 2, 4, 4, 8, 8, 16, 24, 64]


@given(st.lists(st.booleans(), min_size=1, max_size=70))
def test_open_rows_stay_in_order(over: list[bool]) -> None:
    kept = rows_to_keep(torch.tensor(over))
    num_open = over.count(False)
    if kept is None:
        assert size_for(num_open) >= len(over)
        return
    rows = kept.tolist()
    assert len(rows) == size_for(num_open) < len(over)
    assert rows == sorted(set(rows))
    assert [row for row in rows if not over[row]] == [row for row, each in enumerate(over) if not each]
