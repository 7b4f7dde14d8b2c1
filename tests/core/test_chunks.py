"""Chunks of items that may end with an error."""

import itertools
from collections.abc import Iterator

import pytest

from heedful.core.chunks import chunks
from heedful.core.errors import DataError


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, []), (1, [[0]]), (3, [[0, 1, 2]]), (4, [[0, 1, 2], [3]]), (6, [[0, 1, 2], [3, 4, 5]])],
)
def test_all_items_come_in_order(number: int, expected: list[list[int]]) -> None:
    assert list(chunks(range(number), 3)) == expected


@pytest.mark.parametrize("number", [0, 2, 3, 4])
def test_what_came_before_an_error_is_yielded_first(number: int) -> None:
    def items() -> Iterator[int]:
        yield from range(number)
        raise DataError("no text.", "in.txt", number + 1)

    found: list[int] = []
    with pytest.raises(DataError):
        found.extend(itertools.chain.from_iterable(chunks(items(), 3)))
    assert found == list(range(number))


def test_other_errors_come_at_once() -> None:
    """A fault in the program itself is not something to work around."""

    def items() -> Iterator[int]:
        yield 1
        raise RuntimeError

    with pytest.raises(RuntimeError):
        next(chunks(items(), 3))
