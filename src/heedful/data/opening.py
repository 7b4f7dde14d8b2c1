"""Opening data files: plain or gzip (told by content), or standard input; every failure is a `DataError`."""

import contextlib
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from heedful.core.config import resolve_path
from heedful.core.errors import DataError
from heedful.text.lines import ByteStream, read_lines

STDIN = "-"
MAX_LINE_BYTES = 500_000
"""A longer line in a file of examples is taken for a mistake (a file without line breaks)."""

_GZIP_MAGIC = b"\x1f\x8b"


def locate(path: str, folder: Path) -> str:
    """Return the full path of a data file as the config names it; ``-`` is standard input.

    Raises:
        ConfigError: the path names HEEDFUL_DATA, which is not set.
    """
    return STDIN if path == STDIN else str(resolve_path(path, folder))


@contextlib.contextmanager
def open_data(path: str) -> Iterator[ByteStream]:
    """Open a located file for bytes, unpacked if it is gzip.

    Raises:
        DataError: it is missing, empty, a folder or a pipe, or cannot be opened.
    """
    check_plain(path)
    with contextlib.ExitStack() as stack:
        try:
            raw = stdin_bytes() if path == STDIN else stack.enter_context(open(path, "rb"))
            magic = cast(io.BufferedReader, raw).peek(2)[:2]
        except FileNotFoundError:
            raise missing(path) from None
        except OSError as error:
            raise unreadable(path, error) from None
        if not magic:
            raise DataError("the file is empty.", path)
        if magic == _GZIP_MAGIC:
            yield stack.enter_context(gzip.open(cast(BinaryIO, raw)))
        elif path.endswith(".gz"):
            raise DataError("named .gz, but not a gzip file. Rename it, or pack it with gzip.", path)
        else:
            yield raw


def numbered_lines(path: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a located file with their numbers, from 1.

    Raises:
        DataError: the file is missing, empty, broken gzip or no UTF-8, or a line is too long.
    """
    number = 0
    try:
        with open_data(path) as stream:
            for number, line in enumerate(read_lines(stream, path, max_bytes=MAX_LINE_BYTES), start=1):
                yield number, line
    except (OSError, EOFError, zlib.error) as error:
        raise broken(path, number + 1, error) from None
    if not number:
        raise DataError("the file is empty.", path)


def stdin_bytes() -> ByteStream:
    """Return standard input for bytes; a closed one is empty."""
    return io.BytesIO() if sys.stdin is None else sys.stdin.buffer


def check_plain(path: str) -> None:
    """See that a located file can be read again and again, and ends.

    Raises:
        DataError: it is missing, a folder, a pipe or a device.
    """
    if path == STDIN:
        return
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise missing(path) from None
    except OSError as error:
        raise unreadable(path, error) from None
    if stat.S_ISDIR(mode):
        raise DataError("this is a folder. Name a file in it.", path)
    if not stat.S_ISREG(mode):
        raise DataError(
            "this is a pipe or a device, but data are read more than once. Save them as a file, or pipe them into "
            "the command and name `-`.",
            path,
        )


def unreadable(path: str, error: OSError) -> DataError:
    """Return the error for a file that cannot be opened."""
    return DataError(f"cannot be read: {error.strerror}.", path)


def missing(path: str) -> DataError:
    """Return the error for a file that is not there."""
    return DataError(
        "no such file. Check the path; a relative one in a configuration starts at that file's folder, another where "
        "the command runs.",
        path,
    )


def broken(path: str, line: int, error: Exception) -> DataError:
    """Return the error for a file that could not be read to its end."""
    reason = "the gzip data end too early" if isinstance(error, EOFError) else f"cannot be read further ({error})"
    return DataError(f"{reason}. Copy or download the file again.", path, line)
