"""Which rows and columns of a file are meant: by column values, by hash, with replacements."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from heedful.core.config import Config
from heedful.core.errors import DataError, did_you_mean
from heedful.data.example import Example
from heedful.data.report import ReadReport

Column = str | int
"""A column by its name, or by its number from 0."""

_MAX_VALUES_NAMED = 12


class Row(NamedTuple):
    """One row of a file: its place and its cells by column name, in the file's order."""

    path: str
    line: int
    cells: Mapping[str, str]


class Replacement(Config):
    r"""A change to one column's text, made before anything else sees it.

    Attributes:
        column: the column.
        pattern: a regular expression (Python's).
        with: what each match becomes; ``\1`` is the first group.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    column: Column
    pattern: str
    replacement: str = Field(alias="with")

    @model_validator(mode="after")
    def _compiles(self) -> "Replacement":
        try:
            re.compile(self.pattern).sub(self.replacement, "")
        except (re.error, IndexError) as error:
            raise ValueError(f"not a regular expression: `{self.pattern}` with `{self.replacement}`: {error}") from None
        return self


class Part(Config):
    """A part of a file's rows, chosen by the SHA-1 of one column, so that equal texts are always together.

    A row's bucket is ``int(sha1(text).hexdigest()[:8], 16) % of``.

    Attributes:
        of: number of buckets.
        keep: buckets that belong to the part (give this or ``drop``).
        drop: buckets that do not.
        by: the column; absent means the source (or target) column.
    """

    of: int = Field(ge=2)
    keep: tuple[int, ...] | None = None
    drop: tuple[int, ...] | None = None
    by: Column | None = None

    @model_validator(mode="after")
    def _has_one(self) -> "Part":
        if (self.keep is None) == (self.drop is None):
            raise ValueError("give either `keep` or `drop`, a list of buckets")
        wrong = [each for each in (self.keep or self.drop or ()) if not 0 <= each < self.of]
        if wrong:
            raise ValueError(f"the buckets are 0 to {self.of - 1}, not {wrong[0]}")
        return self

    def holds(self, text: str) -> bool:
        """Say whether the part holds rows whose column has this text."""
        number = bucket(text, self.of)
        return number in self.keep if self.keep is not None else number not in (self.drop or ())


def bucket(text: str, of: int) -> int:
    """Return the number of the bucket that a text falls into, out of ``of``."""
    return int(hashlib.sha1(text.encode("utf-8"), usedforsecurity=False).hexdigest()[:8], 16) % of


def _as_texts(value: object) -> object:
    values = value if isinstance(value, list | tuple) else (value,)
    return tuple(as_text(each) if isinstance(each, int | float) else each for each in values)


def as_text(value: str | int | float) -> str:
    """Return a value as a cell holds it: a number, and true or false, as JSON writes them."""
    return value if isinstance(value, str) else json.dumps(value)


Values = Annotated[tuple[str, ...], BeforeValidator(_as_texts)]
"""One value or several, any of which is accepted."""


class SelectionConfig(Config):
    """What all formats with columns have in common.

    Attributes:
        source: column of the source; absent where the task has none.
        target: column of the target.
        label: column of the class.
        where: column values that a row must have, such as ``{split = "train"}`` or ``{fold = [0, 1]}``; a number, true
            and false stand for their text in JSON (``0.5``, ``true``).
        part: the part of the rows to take, by hash; absent for all.
        replace: changes to columns, in order.
        limit: rows to take at most.
    """

    source: Column | None = None
    target: Column | None = None
    label: Column | None = None
    where: dict[str, Values] = Field(default_factory=dict)
    part: Part | None = None
    replace: tuple[Replacement, ...] = ()
    limit: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _has_column(self) -> "SelectionConfig":
        if self.source is None and self.target is None:
            raise ValueError("name the columns: `source`, and `target` or `label`")
        return self


def select(rows: Iterator[Row], config: SelectionConfig, report: ReadReport) -> Iterator[Example]:
    """Yield the examples that a config asks for.

    Args:
        rows: of one file.
        config: rows and columns.
        report: counts every row read, and the rows left to other splits.

    Raises:
        DataError: a column is missing, or no row is left.
    """
    by = config.part.by if config.part and config.part.by is not None else config.source
    part_column = config.target if by is None else by
    roles = (config.source, config.target, config.label)
    patterns = [(each.column, re.compile(each.pattern), each.replacement) for each in config.replace]
    seen: dict[str, set[str]] = {column: set() for column in config.where}
    num_kept, row = 0, None
    for row in rows:
        report.num_read += 1
        if not _matches(row, config, seen) or (config.part and not config.part.holds(_cell(row, part_column))):
            report.num_filtered += 1
            continue
        cells = dict(row.cells)
        for column, pattern, replacement in patterns:
            name = _name(row, column)
            cells[name] = pattern.sub(replacement, cells[name])
        source, target, label = (None if each is None else cells[_name(row, each)] for each in roles)
        yield Example(source=source, target=target, label=label, line=row.line, path=row.path)
        num_kept += 1
        if num_kept == config.limit:
            return
    if not num_kept:
        raise _no_row(row, seen)


def _matches(row: Row, config: SelectionConfig, seen: dict[str, set[str]]) -> bool:
    is_match = True
    for column, accepted in config.where.items():
        value = _cell(row, column)
        if value not in accepted:
            is_match = False
            if len(seen[column]) < _MAX_VALUES_NAMED:
                seen[column].add(value)
    return is_match


def _no_row(row: Row | None, seen: dict[str, set[str]]) -> DataError:
    hints = [f"`{column}` has values such as {', '.join(sorted(values))}." for column, values in seen.items() if values]
    return DataError(" ".join(["no row matches `where` and `part`.", *hints]), row.path if row else None)


def _cell(row: Row, column: Column | None) -> str:
    assert column is not None
    return row.cells[_name(row, column)]


def _name(row: Row, column: Column) -> str:
    """Return a column's name in this row; a number counts the columns from 0."""
    if isinstance(column, str) and column in row.cells:
        return column
    names = list(row.cells)
    if isinstance(column, int) and 0 <= column < len(names):
        return names[column]
    if isinstance(column, int):
        raise DataError(f"no column {column}: there are {len(names)}, counted from 0.", row.path, row.line)
    raise DataError(f"no column `{column}`. {did_you_mean(column, names)}", row.path, row.line)
