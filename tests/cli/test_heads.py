"""``heedful heads`` as a user calls it."""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from heedful.cli.main import main


class Terminal:
    """Runs ``heedful heads`` in this process and remembers what it wrote."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys
        self.out = self.err = ""

    def __call__(self, *arguments: object) -> int:
        self.monkeypatch.setattr(sys, "argv", ["heedful", "heads", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        self.out, self.err = self.capsys.readouterr()
        assert "Traceback" not in self.err
        return code


class Outside(HTMLParser):
    """Collects every address that a page would fetch, and scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.identities: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.found += [f"{tag} {values[key]}" for key in ("src", "srcset") if key in values]
        if tag in ("script", "link"):
            self.found.append(tag)
        if "id" in values:
            self.identities.add(str(values["id"]))
        if tag == "a":
            self.links.add(str(values["href"]))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(monkeypatch, capsys)


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("abcd\nbad\ncab\nabba\n", "utf-8")
    return path


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, "utf-8")
    return folder / name


def row(place: int | str, form: str, head: int | str, misc: str = "_") -> str:
    return f"{place}\t{form}\t_\t_\t_\t_\t{head}\tnsubj\t_\t{misc}\n"


def test_cards_on_the_terminal_as_a_page_and_as_json(
    run: Terminal, reverser: Path, words: Path, tmp_path: Path
) -> None:
    page, table = tmp_path / "heads.html", tmp_path / "heads.json"
    assert run(reverser, "--text", words, "--html", page, "--json", table) == 0
    figure = r"\d\.\d\d"
    row_of_head = rf"^encoder\.0:0 +{figure} \({figure} to {figure}\) +{figure} +{figure}  "
    assert re.search(row_of_head, run.out, re.MULTILINE)
    assert "token frequencies: " in run.out and "lines of the training data" in run.out
    assert "targets: the model's own" in run.out
    values = json.loads(table.read_text())["bundles"][0]
    assert [each["name"] for each in values["heads"]] == [
        "encoder.0:0", "encoder.0:1", "decoder.0:0", "decoder.0:1", "cross.0:0", "cross.0:1"
    ]  # fmt: skip
    for head in values["heads"]:
        assert 0 <= head["confidence"]["low"] <= head["confidence"]["value"] <= head["confidence"]["high"] <= 1
        for score in head["scores"]:
            assert score["share"]["low"] <= score["share"]["value"] <= score["share"]["high"]
            assert 0 <= score["chance"] <= 1 and score["cases"] > 0
    outside = Outside()
    outside.feed(page.read_text("utf-8"))
    assert not outside.found
    assert {each.removeprefix("#") for each in outside.links} <= outside.identities


def test_targets_trees_and_gold(run: Terminal, reverser: Path, words: Path, tmp_path: Path) -> None:
    targets = write(tmp_path, "targets.txt", "dcba\ndab\nbac\nabba\n")
    trees = "".join(
        row(1, each[:-1], 2, "SpaceAfter=No") + row(2, each[-1], 0) + "\n" for each in words.read_text().split()
    )
    treebank = write(tmp_path, "trees.conllu", trees)
    gold = write(tmp_path, "gold.tsv", "src\ttgt\tsure\tpossible\nab c\tc ba\t0-1 1-0\t\n")
    assert run(reverser, "--text", words, "--target", targets, "--treebank", treebank, "--gold", gold) == 0
    assert "targets: given" in run.out and "note: alignment" not in run.out
    assert run(reverser, "--treebank", treebank, "--json", "-") == 0
    assert json.loads(run.out)["bundles"][0]["num_lines"] == 4
    assert run(reverser, "--gold", gold, "--json", "-") == 0
    names = {score["name"] for head in json.loads(run.out)["bundles"][0]["heads"] for score in head["scores"]}
    assert {"alignment", "alignment of the previous word"} <= names


def test_what_heads_are_worth(run: Terminal, reverser: Path, words: Path, tmp_path: Path) -> None:
    targets = write(tmp_path, "targets.txt", "dcba\ndab\nbac\nabba\n")
    page, table = tmp_path / "heads.html", tmp_path / "heads.json"
    assert run(reverser, "--text", words, "--target", targets, "--importance", "--html", page, "--json", table) == 0
    assert re.search(
        r"^head +confidence, 95 % +entropy, nats +evenness +loss \+ +score - +gradient +relevance +roles$",
        run.out,
        re.MULTILINE,
    )
    assert "what heads are worth: 4 lines; BLEU, greedy search: " in run.out
    for head in json.loads(table.read_text())["bundles"][0]["heads"]:
        assert head["importance"]["gradient"]["value"] >= 0
    assert page.read_text("utf-8").count("score lost without it") == 6


def test_several_bundles_are_compared(run: Terminal, reverser: Path, words: Path, tmp_path: Path) -> None:
    assert run(reverser, reverser / "bundle", "--text", words, "--html", tmp_path / "both.html") == 0
    assert f"encoder heads that look one back\n  {reverser}" in run.out
    assert (tmp_path / "both.html").read_text().count('<article class="card"') == 12


def test_a_line_that_is_cut_is_told(run: Terminal, reverser: Path, tmp_path: Path) -> None:
    text = write(tmp_path, "long.txt", "ab\n" + 20 * "a" + "\n")
    assert run(reverser, "--text", text) == 0
    assert "1 line was longer than 12 symbols and cut (line 2); the longest had 20. What was cut is not" in run.err


@pytest.mark.parametrize(
    ("files", "arguments", "code", "message"),
    [
        ({}, ["--html", "no/where.html"], 2, "there is no folder no"),
        ({}, ["--html", "out.json"], 2, "out.json: named twice"),
        ({}, ["--html", "/dev/null"], 2, "/dev/null: a pipe or a device, which would be replaced"),
        ({}, [], 2, "there is nothing to read"),
        ({}, ["--text", "-", "--target", "-"], 2, "Standard input can be read only once"),
        ({}, ["--text", "-", "--treebank", "-"], 2, "Standard input can be read only once"),
        ({}, ["--gold", "-"], 2, "Gold alignments are read twice, so not from standard input"),
        ({"c": row(1, "ba", "9" * 5000)}, ["--treebank", "c"], 1, "c:1: the head of word 1 is `"),
        ({"c": row("9" * 5000, "ba", 0)}, ["--treebank", "c"], 1, "` is no word's number."),
        ({"c": "1-" + "9" * 5000 + "\tba" + 8 * "\t_" + "\n"}, ["--treebank", "c"], 1, "` is no word's number."),
        ({"t": "ab\n"}, ["--text", "t", "--target", "t", "--target", "t"], 2, "2 `--target` files for 1 bundles"),
        ({"t": "ab\nba\n", "u": "ba\n"}, ["--text", "t", "--target", "u"], 1, "u: 1 lines, but the text has 2"),
        ({"t": "\n\n"}, ["--text", "t"], 1, "there is no text in it"),
        ({"t": "ab\n", "c": row(1, "ba", 0)}, ["--text", "t", "--treebank", "c"], 1,
         "c:1: the sentence is not line 1 of the text: `ba` against `ab`"),
        ({"g": "src\ttgt\tsure\na b\tc\t1-0 2-0\n"}, ["--gold", "g"], 1,
         "g:2: link 2-0 (counted from 0) lies outside the source, which has 2 words"),
        ({"g": "src\ttgt\tsure\na b\tc\tx\n"}, ["--gold", "g"], 1, "g:2: `x` is no link"),
        ({"g": "0-0\n"}, ["--gold", "g"], 2, "there is nothing to read"),
        ({"g": "0-0\n", "t": "ab\n"}, ["--gold", "g", "--text", "t"], 1, "links without their texts"),
        ({"g": "0-1\n", "t": "ab\n"}, ["--gold", "g", "--text", "t", "--target", "t"], 1,
         "g:1: link 0-1 (counted from 0) lies outside the target"),
    ],
)  # fmt: skip
def test_faults_are_told_and_nothing_is_written(
    run: Terminal,
    reverser: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        write(tmp_path, name, text)
    assert run(reverser, "--json", "out.json", *arguments) == code
    assert message in run.err, run.err
    assert not (tmp_path / "out.json").exists()
