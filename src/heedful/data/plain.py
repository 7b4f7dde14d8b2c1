"""Plain text for language models: a text for each line, or one stream without borders."""

import codecs
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from heedful.core.config import Config
from heedful.core.errors import DataError
from heedful.data.example import Example
from heedful.data.opening import STDIN, broken, locate, numbered_lines, open_data
from heedful.data.report import ReadReport
from heedful.data.selection import Part

_PIECE_BYTES = 1 << 16
_LAST_SPACE = re.compile(r"\s\S*\Z")


class LinesConfig(Config):
    """Text that is all target.

    Attributes:
        path: the file, plain or gzip; ``-`` is standard input.
        unit: ``line`` makes an example of each line, ``stream`` one long text of the file, line breaks included.
        start: where the part begins, as a fraction of the characters (stream) or lines.
        end: where it ends: ``end = 0.9`` in train and ``start = 0.9`` in dev divide a file without overlap.
        part: lines to take, by hash; not for a stream.
        limit: lines to take at most; not for a stream.
    """

    kind: Literal["lines"] = "lines"
    path: str
    unit: Literal["line", "stream"] = "line"
    start: float = Field(default=0.0, ge=0, lt=1)
    end: float = Field(default=1.0, gt=0, le=1)
    part: Part | None = None
    limit: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _fits(self) -> "LinesConfig":
        if self.start >= self.end:
            raise ValueError(f"the part must start before it ends, but `start` is {self.start} and `end` is {self.end}")
        if self.unit == "stream" and (self.part or self.limit):
            raise ValueError("a stream has no `part` or `limit`; use `start` and `end`")
        if self.path == STDIN and (self.start, self.end) != (0.0, 1.0):
            raise ValueError("standard input is read once, so it has no `start` and `end`; use `part`")
        return self


def read_plain(config: LinesConfig, folder: Path, report: ReadReport) -> Iterator[Example]:
    """Yield the lines, or the stream line by line with its line breaks; each is the target of an example."""
    path = locate(config.path, folder)
    first, last = _span(config, path)
    position = num_kept = 0
    for line, text in _texts(config, path):
        report.num_read += 1
        size = _size(config, text)
        begin, end = max(first - position, 0), min(last - position, size)
        position += size
        if begin >= end or (config.part and not config.part.holds(text)):
            report.num_filtered += 1
            continue
        yield Example(target=text[begin:end] if config.unit == "stream" else text, line=line, path=path)
        num_kept += 1
        if num_kept == config.limit:
            return
    if not num_kept:
        raise DataError("nothing is left of the file by `start`, `end` and `part`.", path)


def _texts(config: LinesConfig, path: str) -> Iterator[tuple[int, str]]:
    return stream_pieces(path) if config.unit == "stream" else numbered_lines(path)


def _size(config: LinesConfig, text: str) -> int:
    """Return what a text counts for ``start`` and ``end``: its characters in a stream, else one line."""
    return len(text) if config.unit == "stream" else 1


def _span(config: LinesConfig, path: str) -> tuple[int, int]:
    """Return the first unit of the part and the one after its last; reads the file once if it is divided."""
    if (config.start, config.end) == (0.0, 1.0):
        return 0, sys.maxsize
    total = sum(_size(config, text) for _, text in _texts(config, path))
    return round(total * config.start), round(total * config.end)


def stream_pieces(path: str) -> Iterator[tuple[int, str]]:
    r"""Yield a text file line by line, each with its number and its ``\n``.

    A line may be of any length: a very long one comes in pieces that end after white space where there is any. ``\r\n``
    is read as ``\n``, and a byte order mark at the start is skipped.

    Raises:
        DataError: the file is missing, empty, broken gzip, no UTF-8, or holds a NUL character.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    rest, line = "", 1
    try:
        with open_data(path) as stream:
            while raw := stream.readline(_PIECE_BYTES):
                text = rest + decoder.decode(raw)
                if "\0" in text:
                    raise DataError(
                        "the file holds a NUL character: it is binary or UTF-16. Save it as UTF-8 text.", path, line
                    )
                if text.endswith("\n"):
                    yield line, text.removesuffix("\r\n") + "\n" if text.endswith("\r\n") else text
                    rest, line = "", line + 1
                    continue
                text, rest = _cut_after_space(text)
                if text:
                    yield line, text
            rest += decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise DataError(
            "not UTF-8. Save the file as UTF-8, for example with `iconv -f LATIN1 -t UTF-8`.", path, line
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise broken(path, line, error) from None
    if rest:
        yield line, rest


def _cut_after_space(text: str) -> tuple[str, str]:
    r"""Divide a piece of a long line after its last white space; a last ``\r`` waits, for ``\n`` may follow."""
    if text.endswith("\r"):
        return text[:-1], "\r"
    space = _LAST_SPACE.search(text)
    return (text[: space.start() + 1], text[space.start() + 1 :]) if space else (text, "")
