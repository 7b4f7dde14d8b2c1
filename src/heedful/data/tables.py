"""Tables as text: tab-separated values, and comma-separated values with quotes."""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from heedful.core.errors import DataError
from heedful.data.opening import locate, numbered_lines
from heedful.data.selection import Row, SelectionConfig

_ESCAPE = re.compile(r"\\([nt\\])")
_MEANING = {"n": "\n", "t": "\t", "\\": "\\"}


class TsvConfig(SelectionConfig):
    r"""Tab-separated values, one row a line, no quoting.

    Attributes:
        path: the file, plain or gzip; ``-`` is standard input.
        has_header: the first line names the columns; without it they are numbered from 0.
        is_escaped: ``\n``, ``\t`` and ``\\`` in a cell stand for a line break, a tab and a backslash.
    """

    kind: Literal["tsv"] = "tsv"
    path: str
    has_header: bool = True
    is_escaped: bool = False


class CsvConfig(SelectionConfig):
    """Comma-separated values; a cell in double quotes may hold commas, line breaks and doubled quotes (RFC 4180).

    Attributes:
        path: the file, plain or gzip; ``-`` is standard input.
        has_header: the first row names the columns; without it they are numbered from 0.
        delimiter: what separates cells.
    """

    kind: Literal["csv"] = "csv"
    path: str
    has_header: bool = True
    delimiter: str = Field(default=",", min_length=1, max_length=1)


def read_tsv(config: TsvConfig, folder: Path) -> Iterator[Row]:
    """Yield the rows of a tab-separated file; a blank line between rows of several columns is passed over."""
    path = locate(config.path, folder)
    cells = ((number, line.split("\t")) for number, line in numbered_lines(path))
    for row in _rows(cells, path, has_header=config.has_header):
        if config.is_escaped:
            row = row._replace(cells={name: unescape(cell) for name, cell in row.cells.items()})
        yield row


def unescape(cell: str) -> str:
    r"""Return a cell with ``\n``, ``\t`` and ``\\`` replaced by what they stand for; any other backslash stays."""
    return _ESCAPE.sub(lambda match: _MEANING[match[1]], cell) if "\\" in cell else cell


def read_csv(config: CsvConfig, folder: Path) -> Iterator[Row]:
    """Yield the rows of a comma-separated file."""
    path = locate(config.path, folder)
    return _rows(_csv_cells(path, config.delimiter), path, has_header=config.has_header)


def _csv_cells(path: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader((line + "\n" for _, line in numbered_lines(path)), delimiter=delimiter, strict=True)
    start = 1
    try:
        for cells in reader:
            yield start, cells or [""]
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"not valid CSV: {error}. Check the quotes of this row.", path, start) from None


def _rows(table: Iterator[tuple[int, list[str]]], path: str, *, has_header: bool) -> Iterator[Row]:
    names: Sequence[str] | None = None
    has_rows = False
    for line, cells in table:
        if names is None:
            names = cells if has_header else [str(index) for index in range(len(cells))]
            if has_header and not any(cell.strip() for cell in cells):
                raise DataError(
                    "the line is blank, but must name the columns. Remove it, or set `has_header = false`.", path, line
                )
            if len(set(names)) < len(names):
                raise DataError("two columns have the same name. Rename one in the header.", path, line)
            if has_header:
                continue
        if len(cells) != len(names):
            if cells == [""]:
                continue
            raise DataError(
                f"{len(cells)} columns where {len(names)} are expected. Check for stray or missing separators.",
                path,
                line,
            )
        has_rows = True
        yield Row(path, line, dict(zip(names, cells, strict=True)))
    if not has_rows:
        raise DataError("the file has no rows below its header.", path)
