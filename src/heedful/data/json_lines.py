"""JSON lines: one object a line."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from heedful.core.errors import DataError
from heedful.data.opening import locate, numbered_lines
from heedful.data.selection import Row, SelectionConfig, as_text

_NO_TEXT = re.compile("[\0\ud800-\udfff]")


class JsonLinesConfig(SelectionConfig):
    """One JSON object a line; its string and number members are the columns.

    Attributes:
        path: the file, plain or gzip; ``-`` is standard input.
    """

    kind: Literal["jsonl"] = "jsonl"
    path: str


def read_json_lines(config: JsonLinesConfig, folder: Path) -> Iterator[Row]:
    """Yield the objects of a file; blank lines are passed over."""
    path = locate(config.path, folder)
    has_rows = False
    for number, line in numbered_lines(path):
        if line.strip():
            has_rows = True
            yield Row(path, number, _cells(line, path, number))
    if not has_rows:
        raise DataError("the file has blank lines only.", path)


def _cells(line: str, path: str, number: int) -> dict[str, str]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise DataError(f"not valid JSON: {reason}. Write one object a line.", path, number) from None
    if not isinstance(values, dict):
        raise DataError('not a JSON object. Write one object a line, such as {"source": ...}.', path, number)
    cells = {name: as_text(each) for name, each in values.items() if isinstance(each, str | int | float)}
    for name, text in cells.items():
        if _NO_TEXT.search(name + text):
            raise DataError(
                "a string holds \\u0000 or half a character (\\ud800 to \\udfff alone). Write it without.", path, number
            )
    return cells
