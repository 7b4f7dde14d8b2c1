"""Two files whose lines belong together."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from heedful.core.errors import DataError
from heedful.data.opening import STDIN, locate, numbered_lines
from heedful.data.selection import Column, Row, SelectionConfig


class ParallelConfig(SelectionConfig):
    """Line n of one file is the source of line n of the other. The columns are called ``source`` and ``target``.

    Attributes:
        source_path: the file of sources, plain or gzip.
        target_path: the file of targets.
    """

    kind: Literal["parallel"] = "parallel"
    source_path: str
    target_path: str
    source: Column = "source"
    target: Column = "target"


def read_parallel(config: ParallelConfig, folder: Path) -> Iterator[Row]:
    """Yield the pairs of lines.

    Raises:
        DataError: one file has fewer lines than the other.
    """
    source_path, target_path = locate(config.source_path, folder), locate(config.target_path, folder)
    if source_path == target_path == STDIN:
        raise DataError("standard input cannot be both the source and the target.", STDIN)
    pairs = itertools.zip_longest(numbered_lines(source_path), numbered_lines(target_path))
    for number, (source, target) in enumerate(pairs, start=1):
        if source is None or target is None:
            shorter, longer = (source_path, target_path) if source is None else (target_path, source_path)
            raise DataError(
                f"the file ends before this line, but {longer} goes on. Line n of both must belong together.",
                shorter,
                number,
            )
        yield Row(source_path, number, {"source": source[1], "target": target[1]})
