"""The folded search for the largest numbers against the plain one."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.search.largest import GROUP, fold, largest


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 5), st.integers(0, GROUP - 1), st.integers(1, 6), st.integers(0, 99), st.booleans())
def test_folding_finds_the_same(rows: int, rest: int, count: int, seed: int, has_impossible: bool) -> None:
    width = 7
    values = torch.randn(rows, width * GROUP + rest, generator=torch.Generator().manual_seed(seed))
    if has_impossible:
        values[values < 0.5] = float("-inf")
    found, places = fold(values, count, width)
    assert torch.equal(found, values.topk(count, dim=1).values)
    assert torch.equal(values.gather(1, places), found)
    real = found > float("-inf")
    assert all(len(set(each[keep].tolist())) == int(keep.sum()) for each, keep in zip(places, real, strict=True))


def test_many_numbers_are_folded_to_the_same_end() -> None:
    values = torch.randn(37, 7993)
    found, places = largest(values, 5)
    expected = values.topk(5, dim=1)
    assert torch.equal(found, expected.values) and torch.equal(places, expected.indices)
