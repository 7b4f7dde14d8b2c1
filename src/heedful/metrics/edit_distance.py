"""Levenshtein distance and longest common subsequence in machine words as long as needed.

A column of the classic table is held as bits of one Python integer, so that a step costs a few integer operations
however long the sequence is.
"""

from collections.abc import Hashable, Sequence


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return the fewest substitutions, insertions and deletions between two sequences.

    Myers 1999, in the form of Hyyrö 2003, figure 7: bit i of `rises` (`falls`) says that the table's column goes up
    (down) by 1 from row i to row i + 1.
    """
    if not first:
        return len(second)
    places = _places(first)
    full = (1 << len(first)) - 1
    last = 1 << (len(first) - 1)
    rises, falls, distance = full, 0, len(first)
    for symbol in second:
        matches = places.get(symbol, 0)
        diagonal = (((matches & rises) + rises) ^ rises) | matches | falls
        right_rises = falls | (full & ~(diagonal | rises))
        right_falls = rises & diagonal
        distance += bool(right_rises & last) - bool(right_falls & last)
        right_rises = ((right_rises << 1) | 1) & full
        right_falls = (right_falls << 1) & full
        rises = right_falls | (full & ~(diagonal | right_rises))
        falls = right_rises & diagonal
    return distance


def common_length(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return the length of the longest common subsequence (Hyyrö 2004: a bit falls to 0 where the length grows)."""
    places = _places(first)
    full = (1 << len(first)) - 1
    column = full
    for symbol in second:
        matches = column & places.get(symbol, 0)
        column = ((column + matches) | (column - matches)) & full
    return len(first) - column.bit_count()


def _places(sequence: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return for each symbol the bits of the places where it stands."""
    places: dict[Hashable, int] = {}
    for place, symbol in enumerate(sequence):
        places[symbol] = places.get(symbol, 0) | (1 << place)
    return places
