"""Lines as rows of ids: grouped by length, so that a batch is little padding, and set side by side as tensors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heedful.core.types import Batch
from heedful.data.collate import collate

MAX_ROWS = 64
MAX_TOKENS = 8192


@dataclass(frozen=True)
class Row:
    """One example as ids.

    Attributes:
        line: its line's number, from 0.
        source: ``w1 .. wn EOS``, or None.
        target: ``BOS w1 .. wn EOS``, or None.
        label: index of its class, or None.
        prefix: symbols that the output must begin with.
    """

    line: int
    source: Sequence[int] | None = None
    target: Sequence[int] | None = None
    label: int | None = None
    prefix: Sequence[int] = ()

    @property
    def length(self) -> int:
        """Return the length of the longer side."""
        return max(len(self.source or ()), len(self.target or ()))


def group_rows(rows: Sequence[Row], max_rows: int = MAX_ROWS) -> Iterator[list[Row]]:
    """Yield the rows in groups of similar length, the longest first: if memory does not suffice, it shows at once.

    A group has at most `max_rows` rows, and at most `MAX_TOKENS` positions of each side unless a row alone has more.
    """
    group: list[Row] = []
    for row in sorted(rows, key=lambda each: (-each.length, each.line)):
        if group and (len(group) == max_rows or (len(group) + 1) * group[0].length > MAX_TOKENS):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def stack_rows(rows: Sequence[Row]) -> Batch:
    """Return rows as tensors; a side is there if every row has it."""
    sources = [row.source for row in rows if row.source is not None]
    targets = [row.target for row in rows if row.target is not None]
    labels = [row.label for row in rows if row.label is not None]
    assert all(len(each) in (0, len(rows)) for each in (sources, targets, labels)), "rows of different kinds"
    return collate(
        lines=[row.line for row in rows], sources=sources or None, targets=targets or None, labels=labels or None
    )
