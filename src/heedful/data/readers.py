"""The file formats by kind. A new one is one file and one line here."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from heedful.core.config import Config
from heedful.core.errors import DataError
from heedful.data.example import SIDES, Example
from heedful.data.json_lines import JsonLinesConfig, read_json_lines
from heedful.data.opening import STDIN
from heedful.data.parallel import ParallelConfig, read_parallel
from heedful.data.plain import LinesConfig, read_plain
from heedful.data.report import ReadReport
from heedful.data.selection import Row, select
from heedful.data.tables import CsvConfig, TsvConfig, read_csv, read_tsv

ROW_READERS: dict[str, Callable[[Any, Path], Iterator[Row]]] = {
    "tsv": read_tsv,
    "csv": read_csv,
    "jsonl": read_json_lines,
    "parallel": read_parallel,
}
"""Formats with columns; `select` makes examples of their rows."""

FileConfig = Annotated[
    TsvConfig | CsvConfig | JsonLinesConfig | ParallelConfig | LinesConfig, Field(discriminator="kind")
]


class SeveralConfig(Config):
    """Several files, one after the other, each in its own format; all give the same of source, target and label.

    Attributes:
        sources: the files; none of them a stream.
    """

    kind: Literal["several"] = "several"
    sources: tuple[FileConfig, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _fits(self) -> "SeveralConfig":
        if any(map(is_stream, self.sources)):
            raise ValueError(
                "a stream is one file: several have no order in which one goes on with the other. Join them into one "
                'file, or take them by `unit = "line"`'
            )
        if [path for each in self.sources for path in data_paths(each)].count(STDIN) > 1:
            raise ValueError("standard input can be read only once. Save one of the texts as a file, and name that")
        return self


AnySourceConfig = Annotated[
    TsvConfig | CsvConfig | JsonLinesConfig | ParallelConfig | LinesConfig | SeveralConfig, Field(discriminator="kind")
]


def read_examples(config: AnySourceConfig, folder: Path, report: ReadReport) -> Iterator[Example]:
    """Yield the examples of a source, in order, as they are read.

    Args:
        config: of any kind.
        folder: where relative paths start.
        report: counts the rows.

    Raises:
        DataError: the source cannot be read as asked, or gives no example; names the file and line.
        ConfigError: a path names HEEDFUL_DATA, which is not set.
    """
    if isinstance(config, SeveralConfig):
        yield from _alike(example for each in config.sources for example in read_examples(each, folder, report))
    elif isinstance(config, LinesConfig):
        yield from read_plain(config, folder, report)
    else:
        yield from select(ROW_READERS[config.kind](config, folder), config, report)


def _alike(examples: Iterator[Example]) -> Iterator[Example]:
    """Yield the examples as long as they have what the first one has.

    Raises:
        DataError: one has more or less of source, target and label.
    """
    first: tuple[str, ...] | None = None
    for each in examples:
        sides = tuple(side for side in SIDES if getattr(each, side) is not None)
        first = first or sides
        if sides != first:
            raise DataError(
                f"here is {' and '.join(sides)}, but the first of `sources` gives {' and '.join(first)}. Name the same "
                "of `source`, `target` and `label` for all of them.",
                each.path,
                each.line,
            )
        yield each


def is_stream(config: AnySourceConfig) -> bool:
    """Say whether a source is one long text."""
    return isinstance(config, LinesConfig) and config.unit == "stream"


def sides_of(config: AnySourceConfig) -> tuple[str, ...]:
    """Return which of source, target and label the examples of a source have."""
    if isinstance(config, SeveralConfig):
        return sides_of(config.sources[0])
    if isinstance(config, LinesConfig):
        return ("target",)
    return tuple(side for side in SIDES if getattr(config, side) is not None)


def data_paths(config: AnySourceConfig) -> list[str]:
    """Return the paths that a source reads, as the config has them."""
    if isinstance(config, SeveralConfig):
        return [path for each in config.sources for path in data_paths(each)]
    if isinstance(config, ParallelConfig):
        return [config.source_path, config.target_path]
    return [config.path]
