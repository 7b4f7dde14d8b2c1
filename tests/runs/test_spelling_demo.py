"""The demo, on a dictionary of a few words and for a few updates."""

import json
from pathlib import Path

import pytest

from heedful import runs
from heedful.core.errors import BundleError, ConfigError
from heedful.runs import spelling_demo
from heedful.runs.spelling_demo import as_table, read_dictionary, split_of

SHORT = [
    "training.max_steps=2",
    "training.has_tensorboard=false",
    "model.model_dim=16",
    "model.inner_dim=16",
    "validation={max_lines = 5, num_samples = 1}",
    "search={kind = 'greedy', max_length = 4}",
]


def write_dictionary(path: Path) -> Path:
    words = [f"w{number:03}" for number in range(60)]
    lines = [f"{word} W AH{index % 3} T" for index, word in enumerate(words)]
    path.write_text("\n".join([*lines, "w000(2) W IY1 # a comment", "w001(2) W AH2 T", ""]), "utf-8")
    return path


def test_the_dictionary_loses_stress_and_numbers(tmp_path: Path) -> None:
    entries = list(read_dictionary(write_dictionary(tmp_path / "d")))
    assert entries[0] == ("w000", "W AH T") and ("w000", "W IY") in entries
    rows = list(as_table(entries))
    assert len(rows) == 1 + 61  # the header, and w001's second pronunciation is its first without stress


def test_words_are_split_by_hash() -> None:
    # The SHA-1 sums begin with 80655da8 (0 modulo 20), e7e694c5 (1) and e4951252 (2).
    assert [split_of(word) for word in ("tree", "book", "dog")] == ["test", "dev", "train"]


def test_the_demo_runs_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_dictionary(tmp_path / "d")
    monkeypatch.setattr(spelling_demo, "find_dictionary", lambda: path)
    for _ in range(2):
        runs.demo(tmp_path / "demo", settings=SHORT)
    out = capsys.readouterr().out
    assert "Yolchuyeva" in out and "heedfulness" in out and "▏" in out
    assert "held-out words" in (tmp_path / "demo" / "report.html").read_text("utf-8")
    assert json.loads((tmp_path / "demo" / "history.jsonl").read_text("utf-8").splitlines()[-1])["step"] == 2


def test_the_demo_removes_nothing_but_a_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_dictionary(tmp_path / "d")
    monkeypatch.setattr(spelling_demo, "find_dictionary", lambda: path)
    with pytest.raises(BundleError, match="not from an earlier demo"):
        runs.demo(tmp_path)
    assert path.is_file()


def test_without_the_dictionary_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'heedful\[demo\]'"):
        runs.demo()


def test_the_command_to_go_on_with_is_one_that_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [".venv/bin/heedful", "demo"])
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert spelling_demo._command() == ".venv/bin/heedful"
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/heedful")
    assert spelling_demo._command() == "heedful"
