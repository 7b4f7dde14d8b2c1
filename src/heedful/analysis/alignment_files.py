"""Alignments as text: Pharaoh lines (``0-0 1-2``), and gold alignments in such lines or in a table."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from heedful.analysis.alignment import Link, Links
from heedful.analysis.alignment_error import GoldLine
from heedful.core.errors import ConfigError, DataError, did_you_mean
from heedful.data.opening import STDIN, locate, numbered_lines
from heedful.data.selection import Row
from heedful.data.tables import TsvConfig, read_tsv

_LINK = re.compile(r"([0-9]{1,6})([-p?])([0-9]{1,6})")
_POSSIBLE = "p?"
GOLD_COLUMNS = ("src", "tgt", "sure", "possible")
SET_COLUMN = "set"
GOLD_FROM_ONE = "--one-based"
LINKS_FROM_ONE = "--links-one-based"
"""Options that say that words count from 1: in gold alignments, in links that are compared with them."""


def format_links(links: Iterable[Link]) -> str:
    """Return a Pharaoh line: ``source-target`` from 0, in order of the source."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def parse_links(text: str, *, is_one_based: bool = False, option: str = GOLD_FROM_ONE) -> tuple[Links, Links]:
    """Return the sure links of a Pharaoh line (``0-1``) and those that are only possible (``0p1`` or ``0?1``).

    Args:
        text: the line.
        is_one_based: words count from 1 in it.
        option: by which that was said, for messages.

    Raises:
        ValueError: a word that is no link, or a 0 where words count from 1; the message says which.
    """
    sure: set[Link] = set()
    possible: set[Link] = set()
    for word in text.split():
        match = _LINK.fullmatch(word)
        if match is None:
            raise ValueError(f"`{word}` is no link. Write `source-target`, such as `0-0 1-2`.")
        source, target = int(match[1]) - is_one_based, int(match[3]) - is_one_based
        if source < 0 or target < 0:
            raise ValueError(f"link {word}: words were said to count from 1. Leave out `{option}`.")
        (possible if match[2] in _POSSIBLE else sure).add((source, target))
    return frozenset(sure), frozenset(possible)


def read_alignments(path: Path | str, *, is_one_based: bool = False) -> list[Links]:
    """Read a file of Pharaoh lines; a blank line has no links.

    Raises:
        DataError: it cannot be read, or a line holds something else.
    """
    place = locate(str(path), Path.cwd())
    lines = numbered_lines(place)
    return [frozenset.union(*_parse(text, place, line, is_one_based, LINKS_FROM_ONE)) for line, text in lines]


def read_gold(path: Path | str, *, split: str | None = None, is_one_based: bool = False) -> list[GoldLine]:
    """Read gold alignments.

    A table (TSV with a header) has the columns ``src``, ``tgt``, ``sure`` and, where there are links that are only
    possible, ``possible``; with ``set`` it may hold several sets. Anything else is read as Pharaoh lines, possible
    links written ``0p1`` or ``0?1``.

    Args:
        path: plain or gzip.
        split: the value of ``set`` to take; absent takes every row.
        is_one_based: words count from 1 in the file.

    Raises:
        DataError: it cannot be read, a line is no alignment, or a link lies outside its text.
        ConfigError: a split that the file does not have, or standard input.
    """
    place = locate(str(path), Path.cwd())
    if place == STDIN:
        raise ConfigError("Gold alignments are read twice, so not from standard input. Save them as a file.")
    _, first = next(numbered_lines(place))
    if "sure" in first.split("\t"):
        return _read_table(place, split, is_one_based)
    if split is not None:
        raise ConfigError(f"{path}: not a table, so it has no set `{split}`. Leave out `--split`.")
    gold = []
    for line, text in numbered_lines(place):
        sure, possible = _parse(text, place, line, is_one_based)
        gold.append(GoldLine(sure, sure | possible))
    return gold


def seem_one_based(alignments: Iterable[Links]) -> bool:
    """Say whether there are links, and none has the word 0 on either side, as if words counted from 1."""
    words = [word for links in alignments for link in links for word in link]
    return bool(words) and 0 not in words


def check_range(
    links: Links, source: str | None, target: str | None, place: str, line: int, *, option: str = GOLD_FROM_ONE
) -> None:
    """See that links lie within their texts.

    Args:
        links: counted from 0.
        source: the text, or None where it is not known.
        target: likewise.
        place: where the links stand, for messages.
        line: likewise.
        option: which says that they count from 1 there.

    Raises:
        DataError: one does not.
    """
    for name, text, side in (("source", source, 0), ("target", target, 1)):
        if text is None:
            continue
        size = len(text.split())
        outside = min((link for link in links if link[side] >= size), default=None)
        if outside is not None:
            raise DataError(
                f"link {outside[0]}-{outside[1]} (counted from 0) lies outside the {name}, which has {size} words. "
                f"If the words count from 1 in the file, say `{option}`.",
                place,
                line,
            )


def _read_table(place: str, split: str | None, is_one_based: bool) -> list[GoldLine]:
    rows = list(read_tsv(TsvConfig(path=place, source="src", is_escaped=True), Path.cwd()))
    for column in GOLD_COLUMNS[:3]:
        if rows and column not in rows[0].cells:
            raise DataError(f"no column `{column}`. {did_you_mean(column, rows[0].cells)}", place)
    if split is not None:
        if rows and SET_COLUMN not in rows[0].cells:
            raise ConfigError(f"{place}: no column `{SET_COLUMN}`, so it has no set `{split}`. Leave out `--split`.")
        sets = {row.cells[SET_COLUMN] for row in rows}
        if split not in sets:
            raise ConfigError(f"{place}: no set `{split}`. {did_you_mean(split, sets)}")
        rows = [row for row in rows if row.cells[SET_COLUMN] == split]
    return list(_gold_lines(rows, is_one_based))


def _gold_lines(rows: Iterable[Row], is_one_based: bool) -> Iterator[GoldLine]:
    for row in rows:
        sure, marked = _parse(row.cells["sure"], row.path, row.line, is_one_based)
        possible = frozenset.union(
            sure, marked, *_parse(row.cells.get("possible", ""), row.path, row.line, is_one_based)
        )
        source, target = row.cells["src"], row.cells["tgt"]
        check_range(possible, source, target, row.path, row.line)
        yield GoldLine(sure, possible, source, target)


def _parse(text: str, place: str, line: int, is_one_based: bool, option: str = GOLD_FROM_ONE) -> tuple[Links, Links]:
    try:
        return parse_links(text, is_one_based=is_one_based, option=option)
    except ValueError as error:
        raise DataError(str(error), place, line) from None
