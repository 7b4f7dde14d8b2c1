"""Every format gives the same examples; rows and columns are selected by config alone."""

import contextlib
import csv
import gzip
import hashlib
import io
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.core.config import Config, parse_config, write_toml
from heedful.core.errors import ConfigError, DataError
from heedful.data import AnySourceConfig, Example, ReadReport, group_references, read_examples
from heedful.data.readers import data_paths
from heedful.data.tables import unescape

CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n\t"), max_size=13)
STREAM = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), min_size=1)
PAIRS = [("ein Haus", "a house"), ("", "blank"), ("zwei\u2028Häuser", 'two "houses", \\n')]


class Holder(Config):
    data: AnySourceConfig


def parse(**values: Any) -> AnySourceConfig:
    return parse_config(Holder, {"data": values}).data


def read(folder: Path, report: ReadReport | None = None, **values: Any) -> list[Example]:
    return list(read_examples(parse(**values), folder, report or ReadReport()))


def sides(examples: list[Example]) -> list[tuple[str | None, str | None]]:
    return [(each.source, each.target) for each in examples]


def write_all(folder: Path, pairs: list[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """Write the pairs in every format that has columns; return the configs that read them."""
    names = {"source": "de", "target": "en"}
    rows = io.StringIO()
    csv.writer(rows).writerows([("de", "en"), *pairs])
    contents = {
        "x.tsv": "".join(f"{a}\t{b}\n" for a, b in [("de", "en"), *pairs]),
        "x.csv": rows.getvalue(),
        "x.jsonl": "".join(json.dumps({"id": 7, "de": a, "en": b, "no": None}) + "\n" for a, b in pairs),
        "x.de": "".join(f"{a}\n" for a, _ in pairs),
        "x.en": "".join(f"{b}\n" for _, b in pairs),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content.encode())
        (folder / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    return {
        "tsv": {"kind": "tsv", "path": "x.tsv", **names},
        "csv": {"kind": "csv", "path": "x.csv", **names},
        "jsonl": {"kind": "jsonl", "path": "x.jsonl", **names},
        "parallel": {"kind": "parallel", "source_path": "x.de", "target_path": "x.en"},
    }


def packed(config: dict[str, Any]) -> dict[str, Any]:
    return {key: f"{each}.gz" if key.endswith("path") else each for key, each in config.items()}


def test_every_format_plain_and_packed(tmp_path: Path) -> None:
    for config in write_all(tmp_path, PAIRS).values():
        examples = read(tmp_path, **config)
        assert sides(examples) == PAIRS
        assert sides(read(tmp_path, **packed(config))) == PAIRS
        first = 2 if config["kind"] in ("tsv", "csv") else 1
        assert [each.line for each in examples] == [first, first + 1, first + 2]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=11))
def test_every_format_gives_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("formats")
    for config in write_all(folder, pairs).values():
        assert sides(read(folder, **config)) == pairs


@settings(deadline=None)
@given(st.text())
def test_unescaping_undoes_escaping(text: str) -> None:
    assert unescape(text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")) == text


def test_cells_may_hold_breaks(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\nx\\ny\t\\\\n\\q\n\n", encoding="utf-8")
    (tmp_path / "a.csv").write_text('a;b\r\n"x\ny";"\\n ""q"""\r\nz;\r\n', encoding="utf-8", newline="")
    columns = {"source": "a", "target": "b"}
    assert sides(read(tmp_path, kind="tsv", path="a.tsv", is_escaped=True, **columns)) == [("x\ny", "\\n\\q")]
    examples = read(tmp_path, kind="csv", path="a.csv", delimiter=";", **columns)
    assert sides(examples) == [("x\ny", '\\n "q"'), ("z", "")] and [each.line for each in examples] == [2, 4]


def test_columns_by_number(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\ty\tz\n1\t2\t3\n", encoding="utf-8")
    assert sides(read(tmp_path, kind="tsv", path="a.tsv", source=2, target=0)) == [("3", "1")]
    headless = read(tmp_path, kind="tsv", path="a.tsv", source=2, has_header=False)
    assert sides(headless) == [("z", None), ("3", None)] and headless[0].line == 1


def test_rows_are_selected_and_counted(tmp_path: Path) -> None:
    rows = [("train", "1", "a"), ("dev", "2", "b"), ("train", "3", "c"), ("train", "2", "d")]
    (tmp_path / "a.tsv").write_text("split\tfold\ttext\n" + "".join("\t".join(row) + "\n" for row in rows), "utf-8")
    report = ReadReport()
    config = {"kind": "tsv", "path": "a.tsv", "source": "text", "where": {"split": "train", "fold": [1, "2"]}}
    assert [each.source for each in read(tmp_path, report, **config)] == ["a", "d"]
    assert (report.num_read, report.num_filtered) == (4, 2)
    assert [each.source for each in read(tmp_path, **config, limit=1)] == ["a"]


def test_parts_divide_a_file_by_hash(tmp_path: Path) -> None:
    words = [f"word{n % 53}" for n in range(97)]
    (tmp_path / "a.tsv").write_text("text\n" + "".join(f"{word}\n" for word in words), encoding="utf-8")
    config = {"kind": "tsv", "path": "a.tsv", "source": "text"}
    kept = [each.source for each in read(tmp_path, **config, part={"of": 7, "keep": [2, 3]})]
    rest = [each.source for each in read(tmp_path, **config, part={"of": 7, "drop": [2, 3], "by": "text"})]
    assert len(kept) > 5 and sorted(map(str, kept + rest)) == sorted(words) and not set(kept) & set(rest)
    assert kept == [word for word in words if int(hashlib.sha1(word.encode()).hexdigest()[:8], 16) % 7 in (2, 3)]


def test_replacing_then_grouping(tmp_path: Path) -> None:
    text = "word\tphones\nread\tR EH1 D\nred\tR EH1 D\nread\tR IY1 D\nread\tR EH0 D\n"
    (tmp_path / "a.tsv").write_text(text, encoding="utf-8")
    replace = [{"column": "phones", "pattern": r"([A-Z]+)\d", "with": r"\1"}]
    examples = read(tmp_path, kind="tsv", path="a.tsv", source="word", target="phones", replace=replace)
    grouped = group_references(examples)
    assert [(each.source, each.references, each.line) for each in grouped] == [
        ("read", ("R EH D", "R IY D"), 2),
        ("red", ("R EH D",), 3),
    ]
    assert group_references(grouped) == grouped


def test_several_files_follow_one_another(tmp_path: Path) -> None:
    configs = write_all(tmp_path, PAIRS)
    both = {"kind": "several", "sources": [configs["tsv"], {**configs["jsonl"], "limit": 1}]}
    examples = read(tmp_path, **both)
    assert sides(examples) == [*PAIRS, PAIRS[0]]
    assert [Path(each.path).name for each in examples] == ["x.tsv"] * 3 + ["x.jsonl"]
    assert data_paths(parse(**both)) == ["x.tsv", "x.jsonl"]


def test_several_files_must_give_the_same_sides(tmp_path: Path) -> None:
    configs = write_all(tmp_path, PAIRS)
    (tmp_path / "x.txt").write_text("one\ntwo\n", "utf-8")
    (tmp_path / "l.tsv").write_text("de\tlabel\na\tx\n", "utf-8")
    lines = {"kind": "lines", "path": "x.txt"}
    labelled = {"kind": "tsv", "path": "l.tsv", "source": "de", "label": "label"}
    unlabelled = {"kind": "tsv", "path": "l.tsv", "source": "de"}
    for sources, message in (
        ([configs["tsv"], lines], r"x\.txt:1: here is target, but the first of `sources` gives source and target"),
        ([lines, configs["csv"]], r"x\.csv:2: here is source and target, but .* gives target"),
        ([labelled, unlabelled], r"l\.tsv:2: here is source, but .* gives source and label"),
    ):
        with pytest.raises(DataError, match=message):
            read(tmp_path, kind="several", sources=sources)


def test_values_of_rows_are_compared_as_json_writes_them(tmp_path: Path) -> None:
    rows = [{"de": "a", "ok": True, "score": 0.5}, {"de": "b", "ok": False, "score": 2}, {"de": "c", "ok": True}]
    (tmp_path / "a").write_text("".join(json.dumps({"score": 1e-7, **row}) + "\n" for row in rows), "utf-8")
    for where, found in (
        ({"ok": True}, ["a", "c"]),
        ({"ok": [False]}, ["b"]),
        ({"score": 0.5}, ["a"]),
        ({"score": [2, 1e-7]}, ["b", "c"]),
    ):
        config = {"kind": "jsonl", "path": "a", "source": "de", "where": where}
        assert [each.source for each in read(tmp_path, **config)] == found
        assert parse(**tomllib.loads(write_toml(parse(**config).model_dump(mode="json")))) == parse(**config)


def test_lines_and_streams(tmp_path: Path) -> None:
    text = "\ufeffone\r\ntwo ü\n\nfour"
    (tmp_path / "a.txt").write_bytes(text.encode())
    lines = read(tmp_path, kind="lines", path="a.txt")
    assert [each.target for each in lines] == ["one", "two ü", "", "four"] and lines[3].line == 4
    stream = read(tmp_path, kind="lines", path="a.txt", unit="stream")
    assert "".join(each.target or "" for each in stream) == "one\ntwo ü\n\nfour"


@settings(deadline=None, max_examples=60)
@given(STREAM, st.floats(0.05, 0.95))
def test_a_stream_is_divided_without_gap_or_overlap(
    tmp_path_factory: pytest.TempPathFactory, text: str, fraction: float
) -> None:
    path = tmp_path_factory.mktemp("stream") / "a.txt"
    path.write_bytes(text.encode())
    config = {"kind": "lines", "path": path.name, "unit": "stream"}
    parts = ""
    for span in ({"end": fraction}, {"start": fraction}):
        with contextlib.suppress(DataError):  # nothing may be left of a short text
            parts += "".join(each.target or "" for each in read(path.parent, **config, **span))
    assert parts == text.replace("\r\n", "\n")


def test_a_long_line_streams_in_pieces(tmp_path: Path) -> None:
    text = "ein Wörtchen " * 17_000 + "x" * 70_000 + "é" * 70_001
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(text.encode()))
    pieces = [each.target or "" for each in read(tmp_path, kind="lines", path="a.txt.gz", unit="stream")]
    assert "".join(pieces) == text and max(map(len, pieces)) < 140_000 and len(pieces) > 3
    assert pieces[0].endswith(" ")


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BufferedReader(io.BytesIO(gzip.compress(b"a\tb\n1\t2\n")))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    assert sides(read(tmp_path, kind="tsv", path="-", source="a", target="b")) == [("1", "2")]


def test_configs_survive_toml(tmp_path: Path) -> None:
    replace = [{"column": "b", "pattern": "x", "with": ""}]
    rows = {"where": {"fold": [1, 2]}, "part": {"of": 3, "keep": [0]}}
    config = parse(kind="tsv", path="a.tsv", source="a", replace=replace, **rows)
    assert parse(**tomllib.loads(write_toml(config.model_dump(mode="json")))) == config


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "tsv", "path": "a"}, r"`data`: name the columns"),
        ({"kind": "tsv", "path": "a", "source": 0, "part": {"of": 5}}, r"`data\.part`: give either `keep` or `drop`"),
        ({"kind": "tsv", "path": "a", "source": 0, "part": {"of": 5, "keep": [5]}}, r"the buckets are 0 to 4, not 5"),
        (
            {"kind": "tsv", "path": "a", "source": 0, "replace": [{"column": 0, "pattern": "(", "with": ""}]},
            r"`data\.replace\.0`: not a regular expression",
        ),
        (
            {"kind": "tsv", "path": "a", "source": 0, "replace": [{"column": 0, "pattern": "a", "with": r"\3"}]},
            r"`data\.replace\.0`: not a regular expression: .*invalid group reference",
        ),
        ({"kind": "lines", "path": "a", "start": 0.5, "end": 0.25}, r"`data`: the part must start before it ends"),
        ({"kind": "lines", "path": "-", "start": 0.5}, r"standard input is read once"),
        ({"kind": "lines", "path": "a", "unit": "stream", "limit": 3}, r"a stream has no `part` or `limit`"),
        (
            {"kind": "several", "sources": [{"kind": "lines", "path": "a", "unit": "stream"}]},
            r'`data`: a stream is one file.* take them by `unit = "line"`',
        ),
        (
            {"kind": "several", "sources": [{"kind": "lines", "path": "-"}] * 2},
            r"`data`: standard input can be read only once",
        ),
    ],
)
def test_wrong_configs_are_explained(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(**values)
