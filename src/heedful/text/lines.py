"""What a line is: text up to a line feed. Reading lines, and writing text so that it stays one line."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from heedful.core.errors import DataError

_BREAKING = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NAMED = {"\n": "\\n", "\r": "\\r"}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF_16 = "this is UTF-16 text. Save it as UTF-8, for example with `iconv -f UTF-16 -t UTF-8`."
_OTHER_FILES = {
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
    b"\x1f\x8b": "this is a gzip file, not text. Unpack it first, for example with `gunzip -c`.",
}
"""How files begin that are often taken for UTF-8 text, with what to say."""


@runtime_checkable
class ByteStream(Protocol):
    """What can be read line by line as bytes: a file, standard input, an unpacker, bytes in memory."""

    def readline(self, size: int = -1, /) -> bytes:
        """Return the next line with its end, at most ``size`` bytes of it; nothing at the end."""
        ...


def read_lines(stream: ByteStream, path: Path | str, *, max_bytes: int | None = None) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 stream, without their ends.

    A line ends at ``\n`` and nowhere else; one ``\r`` before it (Windows) is dropped. A blank line is a line. What
    follows the last ``\n`` is a line if it is not empty. A byte order mark at the start is skipped.

    Args:
        stream: opened for bytes.
        path: its name, for messages.
        max_bytes: a longer line is an error; None for no limit.

    Raises:
        DataError: a line is not UTF-8, holds a NUL character, or is too long.
    """
    number = 0
    while raw := stream.readline(-1 if max_bytes is None else max_bytes + 2):
        number += 1
        if number == 1:
            raw = raw.removeprefix(_BYTE_ORDER_MARK)
        line = raw.removesuffix(b"\n")
        line = line.removesuffix(b"\r")
        if max_bytes is not None and len(line) > max_bytes:
            raise DataError(
                f"the line is longer than {max_bytes:,} bytes. Is this a text file with one example a line? "
                "Cut the line, or remove it.",
                path,
                number,
            )
        yield decode_line(line, path, number)


def decode_line(line: bytes, path: Path | str, number: int) -> str:
    """Return the text of a line.

    Raises:
        DataError: it is not UTF-8, or holds a NUL character.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        for start, remedy in _OTHER_FILES.items():
            if number == 1 and line.startswith(start):
                raise DataError(remedy, path) from None
        raise DataError(
            f"not UTF-8 at byte {error.start + 1} of the line. Save the file as UTF-8, "
            "for example with `iconv -f LATIN1 -t UTF-8`.",
            path,
            number,
        ) from None
    if "\0" in text:
        raise DataError(
            "the line holds a NUL character: this is a binary or UTF-16 file. Save it as UTF-8 text.", path, number
        )
    return text


def escape_line(text: str) -> str:
    r"""Return the text as one line for any reader.

    Line feed and carriage return are written ``\n`` and ``\r``; other control characters (a tab excepted), U+0085,
    U+2028 and U+2029, at which some programs break lines, and lone surrogates, which are no UTF-8, as ``\uXXXX``. All
    else stays, the backslash included, so that text without such characters is not touched.
    """
    return _BREAKING.sub(lambda match: _NAMED.get(match[0], f"\\u{ord(match[0]):04x}"), text)
