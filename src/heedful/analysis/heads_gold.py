"""Word alignments drawn by people, to judge cross-attention by."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.analysis.heads_questions import Gold
from heedful.core.errors import DataError
from heedful.data.opening import numbered_lines

_LINK = re.compile(r"(\d+)([-?])(\d+)")
_COLUMNS = {"source": ("source", "src"), "target": ("target", "tgt"), "sure": ("sure",), "possible": ("possible",)}


@dataclass(frozen=True)
class GoldPair:
    """Two sentences, split at single spaces, and their links.

    Attributes:
        source: words.
        target: words.
        gold: links between them.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    gold: Gold


def read_gold(path: Path | str) -> list[GoldPair]:
    """Read a table with the columns source, target, sure and (if there are any) possible, links written ``0-1``.

    Raises:
        DataError: a column is missing, a link is none, or it points out of its sentence; named by file and line.
    """
    name = str(path)
    rows = numbered_lines(name)
    columns = _columns(next(rows)[1].split("\t"), name)
    pairs = [_pair(line.split("\t"), columns, name, number) for number, line in rows if line.strip()]
    if not pairs:
        raise DataError("there is no sentence below the header.", name)
    return pairs


def _columns(header: Sequence[str], path: str) -> dict[str, int]:
    found = {
        key: next(header.index(name) for name in names if name in header)
        for key, names in _COLUMNS.items()
        if any(name in header for name in names)
    }
    for key in ("source", "target", "sure"):
        if key not in found:
            raise DataError(
                f"no column `{key}`. Gold alignments are a table with tabs and a header: source, target, sure, "
                "possible; links are written `0-1`, words count from 0.",
                path,
                1,
            )
    return found


def _pair(cells: Sequence[str], columns: dict[str, int], path: str, line: int) -> GoldPair:
    if len(cells) <= max(columns.values()):
        raise DataError(f"{len(cells)} columns, but the header has more.", path, line)
    source, target = cells[columns["source"]].split(), cells[columns["target"]].split()
    sure = frozenset(_links(cells[columns["sure"]], len(source), len(target), path, line))
    possible = cells[columns["possible"]] if "possible" in columns else ""
    more = frozenset(_links(possible, len(source), len(target), path, line))
    return GoldPair(tuple(source), tuple(target), Gold(sure, sure | more))


def _links(text: str, num_source: int, num_target: int, path: str, line: int) -> Iterator[tuple[int, int]]:
    for word in text.split():
        match = _LINK.fullmatch(word)
        if match is None:
            raise DataError(f"`{word}` is no link. Write `0-1`: source word 0, target word 1.", path, line)
        link = int(match[1]), int(match[3])
        for side, index, size in (("source", link[0], num_source), ("target", link[1], num_target)):
            if index >= size:
                hint = " Are the links counted from 1? Subtract 1 from each." if index == size else ""
                raise DataError(
                    f"the link `{word}` points at {side} word {index}, but there are {size}, counted from 0.{hint}",
                    path,
                    line,
                )
        yield link
