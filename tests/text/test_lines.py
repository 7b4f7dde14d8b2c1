"""Lines: where they end, and that one line of output stays one."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.core.errors import DataError
from heedful.text import escape_line, normalize, read_lines


def read(raw: bytes, **options: int) -> list[str]:
    return list(read_lines(io.BytesIO(raw), "some.txt", **options))


def test_only_a_line_feed_ends_a_line() -> None:
    assert read("a\u2028b\x85c\rd\x0be\n\nf\r\n g ".encode()) == ["a\u2028b\x85c\rd\x0be", "", "f", " g "]
    assert read(b"") == [] and read(b"\n") == [""] and read(b"\xef\xbb\xbfa\n\xef\xbb\xbfb") == ["a", "\ufeffb"]


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\r\ufeff"))))
def test_as_many_lines_as_were_written(lines: list[str]) -> None:
    raw = "".join(f"{line}\n" for line in lines).encode()
    assert read(raw) == lines
    assert read(raw.replace(b"\n", b"\r\n")) == lines


@settings(deadline=None)
@given(st.text())
def test_an_escaped_text_is_one_line_of_utf8(text: str) -> None:
    line = escape_line(text)
    assert len(line.splitlines()) <= 1
    assert read(line.encode("utf-8") + b"\n") == [line]


def test_escapes_by_hand() -> None:
    assert escape_line("a\tb\\n ü") == "a\tb\\n ü"
    assert escape_line("a\nb\r\u2028\x85\x00\ud800") == "a\\nb\\r\\u2028\\u0085\\u0000\\ud800"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"good\nb\xe4d\n", r"some\.txt:2: not UTF-8 at byte 2 of the line.*iconv"),
        (b"good\n\nb\0d\n", r"some\.txt:3: the line holds a NUL character"),
        ("good".encode("utf-16"), r"some\.txt: this is UTF-16 text"),
        (b"\x1f\x8b\x08\xff\n", r"some\.txt: this is a gzip file, not text"),
        (b"good\n" + b"x" * 102, r"some\.txt:2: the line is longer than 101 bytes"),
    ],
)
def test_bad_lines_are_named(raw: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(raw, max_bytes=101)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_the_longest_line_allowed(end: bytes) -> None:
    assert read(b"y\n" + b"x" * 101 + end, max_bytes=101) == ["y", "x" * 101]


@settings(deadline=None)
@given(st.text(), st.sampled_from(["NFC", "NFKC", "none"]), st.booleans(), st.booleans())
def test_normalising_twice_changes_nothing_more(text: str, form: str, lowercase: bool, collapse_spaces: bool) -> None:
    def once(text: str) -> str:
        return normalize(text, form=form, lowercase=lowercase, collapse_spaces=collapse_spaces)

    assert once(once(text)) == once(text)
    assert once(text).encode("utf-8").decode("utf-8") == once(text)
