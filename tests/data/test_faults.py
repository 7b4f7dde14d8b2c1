"""Bad input ends in one `DataError` that names the file, the line where there is one, and a way out."""

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from heedful.core.config import Config, parse_config
from heedful.core.errors import ConfigError, DataError
from heedful.data import AnySourceConfig, ReadReport, read_examples

GOOD = b"split\tde\ten\n" + b"".join(b"train\tHaus %d\thouse\n" % n for n in range(2000))


class Holder(Config):
    data: AnySourceConfig


def fail(folder: Path, **values: Any) -> str:
    with pytest.raises(DataError) as caught:
        list(read_examples(parse_config(Holder, {"data": values}).data, folder, ReadReport()))
    return str(caught.value).removeprefix(f"{folder}/")


def tsv(folder: Path, raw: bytes, name: str = "a.tsv", **options: Any) -> str:
    (folder / name).write_bytes(raw)
    return fail(folder, **{"kind": "tsv", "path": name, "source": "de", "target": "en", **options})


def test_files_that_are_not_there(tmp_path: Path) -> None:
    assert "b.tsv: no such file" in fail(tmp_path, kind="tsv", path="b.tsv", source="a")
    (tmp_path / "folder").mkdir()
    assert "folder: this is a folder. Name a file in it." in fail(tmp_path, kind="lines", path="folder")


@pytest.mark.parametrize("config", [{"kind": "tsv"}, {"kind": "csv"}, {"kind": "jsonl"}])
def test_files_without_rows(tmp_path: Path, config: dict[str, Any]) -> None:
    for raw in (b"", gzip.compress(b"")):
        (tmp_path / "a").write_bytes(raw)
        assert fail(tmp_path, **config, path="a", source="de").startswith("a: the file is empty")
    (tmp_path / "a").write_bytes(b"de\n" if config["kind"] != "jsonl" else b"\n\n")
    assert fail(tmp_path, **config, path="a", source="de").startswith("a: the file has")


def test_streams_without_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    assert "a: the file is empty" in fail(tmp_path, kind="lines", path="a")
    assert "a: the file is empty" in fail(tmp_path, kind="lines", path="a", unit="stream")


def test_uneven_files(tmp_path: Path) -> None:
    (tmp_path / "a.de").write_bytes(b"eins\nzwei\ndrei\n")
    (tmp_path / "a.en").write_bytes(b"one\ntwo\n")
    for source, target in (("a.de", "a.en"), ("a.en", "a.de")):
        message = fail(tmp_path, kind="parallel", source_path=source, target_path=target)
        assert message.startswith("a.en:3: the file ends before this line, but") and "a.de goes on" in message


def test_wrong_columns(tmp_path: Path) -> None:
    assert "a.tsv:2: no column `fr`. Choose from: `de`, `en`, `split`" in tsv(tmp_path, GOOD, target="fr")
    assert "a.tsv:2: no column `spilt`. Did you mean `split`?" in tsv(tmp_path, GOOD, where={"spilt": "train"})
    assert "a.tsv:2: no column 3: there are 3, counted from 0." in tsv(tmp_path, GOOD, source=3)
    assert "a.tsv:2: no column `ed`" in tsv(tmp_path, GOOD, replace=[{"column": "ed", "pattern": "a", "with": ""}])
    assert "a.tsv:4: 2 columns where 3 are expected" in tsv(tmp_path, b"x\tde\ten\n1\t2\t3\n\n4\t5\n")
    assert "a.tsv:1: two columns have the same name" in tsv(tmp_path, b"de\ten\tde\n1\t2\t3\n")


def test_no_row_is_selected(tmp_path: Path) -> None:
    message = tsv(tmp_path, GOOD, where={"split": "dev"})
    assert message == "a.tsv: no row matches `where` and `part`. `split` has values such as train."


def test_text_that_is_none(tmp_path: Path) -> None:
    assert "a.tsv:3: not UTF-8 at byte 2 of the line" in tsv(tmp_path, b"de\ten\na\tb\nc\xe4\td\n")
    assert "a.tsv:3: the line holds a NUL character" in tsv(tmp_path, b"de\ten\na\tb\nc\0\td\n")
    assert "a.tsv:3: the line is longer than 500,000 bytes" in tsv(tmp_path, b"de\ten\na\tb\n" + b"x" * 1_000_000)


def test_streams_that_are_no_text(tmp_path: Path) -> None:
    cases = {b"a\nb\nc\xe4d\n": "a:3: not UTF-8", b"a\n\0": "a:2: the file holds a NUL", b"a\xc3": "a:1: not UTF-8"}
    for raw, message in cases.items():
        (tmp_path / "a").write_bytes(raw)
        assert fail(tmp_path, kind="lines", path="a", unit="stream").startswith(message)


def test_broken_gzip(tmp_path: Path) -> None:
    whole = gzip.compress(GOOD)
    assert "a.gz: named .gz, but not a gzip file" in tsv(tmp_path, GOOD, name="a.gz")
    message = tsv(tmp_path, whole[: len(whole) // 2], name="a.gz")
    assert "the gzip data end too early. Copy or download the file again" in message and message.startswith("a.gz:")
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 0xFF
    assert tsv(tmp_path, bytes(broken), name="a.gz").startswith("a.gz:")
    (tmp_path / "a.gz").write_bytes(whole[:-5])
    assert "the gzip data end too early" in fail(tmp_path, kind="lines", path="a.gz", unit="stream")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"de": "a"}\n{"de": "b"\n', "a:2: not valid JSON: Expecting ',' delimiter"),
        (b'{"de": "a"}\n["b"]\n', "a:2: not a JSON object"),
        (b'{"de": "a"}\n{"de": null}\n', "a:2: no column `de`"),
        (b'{"de": "a"}\n{"en": "b"}\n', "a:2: no column `de`"),
        (b"[" * 100_000, "a:1: not valid JSON: RecursionError"),
    ],
)
def test_json_that_is_none(tmp_path: Path, raw: bytes, message: str) -> None:
    (tmp_path / "a").write_bytes(raw)
    assert fail(tmp_path, kind="jsonl", path="a", source="de").startswith(message)


def test_csv_with_a_stray_quote(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b'de,en\na,b\n"c,d\ne,f\n')
    assert fail(tmp_path, kind="csv", path="a", source="de").startswith("a:3: not valid CSV: unexpected end of data")


def test_a_variable_that_is_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    config = parse_config(Holder, {"data": {"kind": "lines", "path": "${HEEDFUL_DATA}/a"}}).data
    with pytest.raises(ConfigError, match="HEEDFUL_DATA is not set"):
        list(read_examples(config, tmp_path, ReadReport()))


@pytest.mark.parametrize("text", [r"\ud800", r"\u0000"])
def test_json_strings_that_no_text_file_can_hold(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_text(f'{{"de": "a"}}\n{{"de": "b{text}"}}\n', "utf-8")
    message = fail(tmp_path, kind="jsonl", path="a", source="de")
    assert message.startswith(r"a:2: a string holds \u0000 or half a character")


def test_what_cannot_be_read_twice_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("pipe", "/dev/zero"):
        message = fail(tmp_path, kind="tsv", path=path, source="de")
        assert message.startswith(f"{path}: this is a pipe or a device")


def test_files_often_taken_for_text(tmp_path: Path) -> None:
    assert tsv(tmp_path, "de\ten\na\tb\n".encode("utf-16")).startswith("a.tsv: this is UTF-16 text. Save it as UTF-8")
    assert tsv(tmp_path, b"\n\n").startswith("a.tsv:1: the line is blank, but must name the columns")


def test_a_column_number_out_of_range(tmp_path: Path) -> None:
    for number in (-1, 3):
        message = tsv(tmp_path, GOOD, source=number)
        assert f"no column {number}: there are " in message and message.endswith(", counted from 0.")
