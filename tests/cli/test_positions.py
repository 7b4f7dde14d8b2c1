"""``heedful positions``: from formulas, files and bundles, into a terminal, a page, a picture, JSON."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from heedful.cli.main import main

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def positions(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["heedful", "positions", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


def test_rotary_in_all_forms(positions: Command, tmp_path: Path) -> None:
    page, bitmap = tmp_path / "a.html", tmp_path / "a.png"
    code, out, _ = positions("--kind", "rotary", "--length", 11, "--dim", 6, "--html", page, "--png", bitmap)
    assert code == 0
    assert "rotary positions, 11 x 6" in out and "largest error" in out and "Without positions" in out
    html = page.read_text("utf-8")
    assert html.count("<svg") == 9 and "currentColor" in html and "<script" not in html
    addresses = set(re.findall(r"https?://[^\"' <]+", html))
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names of formats, not loaded
    assert bitmap.read_bytes()[:4] == b"\x89PNG"


def test_json_holds_what_was_found(positions: Command) -> None:
    code, out, _ = positions("--length", 12, "--dim", 4, "--step", 3, "--json")
    values = json.loads(out)
    assert code == 0 and values["kind"] == "sinusoidal" and values["turning"]["steps"] == 3
    assert len(values["turning"]["blocks"]) == 2 and len(values["similarity"]) == 12
    assert all(check["largest_error"] < 1e-6 for check in values["turning"]["checks"])


def test_a_bundle_and_a_file(positions: Command, reverser: Path, tmp_path: Path) -> None:
    code, out, _ = positions(reverser, "--length", 16)
    assert code == 0 and out.startswith("source_embedding.positions: sinusoidal positions, 16 x 32")
    code, out, err = positions(reverser, "--kind", "rotary")
    assert code == 2 and out == "" and "no such positions, but `source_embedding.positions` (sinusoidal)" in err
    save_file({"wpe.weight": torch.randn(20, 5)}, tmp_path / "gpt.safetensors")
    code, out, _ = positions("--table", tmp_path / "gpt.safetensors", "--length", 15)
    assert code == 0 and "gpt.safetensors: wpe.weight: learned positions, 15 x 5" in out and "A step is" not in out


def test_a_long_table_is_cut_and_that_is_told(
    positions: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.runs.position_tables.MOST_POSITIONS", 12)
    save_file({"wpe\x1b[31m": torch.randn(20, 3)}, tmp_path / "long.safetensors")
    code, out, err = positions("--table", tmp_path / "long.safetensors")
    assert code == 0 and "learned positions, 12 x 3" in out and "\x1b" not in out
    assert err == "heedful: looking at the first 12 of 20 positions; `--length` chooses fewer\n"


def test_a_name_that_could_do_harm_is_text_in_page_and_picture(positions: Command, tmp_path: Path) -> None:
    save_file({r"<b>\g<0>\x&" + "\x1b": torch.randn(9, 3)}, tmp_path / "odd.safetensors")
    page, picture = tmp_path / "a.html", tmp_path / "a.svg"
    assert positions("--table", tmp_path / "odd.safetensors", "--html", page, "--svg", picture)[0] == 0
    for path in (page, picture):
        text = path.read_text("utf-8")
        assert r"&lt;b&gt;\g&lt;0&gt;\x&amp;" in text and "<b>" not in text and "\x1b" not in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--kind", "learned"], 2, "name a bundle that has some, or a file with `--table`"),
        (["--kind", "relative"], 2, "`--kind` is `relative`. Choose from"),
        (["--length", "1"], 2, "`--length` must be from 2 to 2048, but is 1"),
        (["--step", "200"], 2, "`--step` must be from 1 to 127"),
        (["--kind", "rotary", "--dim", "5"], 2, "must be even for rotary positions"),
        (["--kind", "rotary", "--period", "1"], 2, "`--period` must be above 1"),
        (["--kind", "rotary", "--period", "inf"], 2, "`--period` must be above 1 and at most 1e+12, but is inf"),
        (["--period", "5"], 2, "`--period` is for the formula of rotary positions"),
        (["--tensor", "x"], 2, "`--tensor` is for a bundle or a file"),
        (["--seed", str(2**64)], 2, "`--seed` must be at least 0 and below 2 to the 63"),
        (["--png", "no/where.png"], 2, "no/where.png: there is no folder no. Make it first."),
        (["--svg", "page.html"], 2, "page.html: named twice"),
        (["--dim", "0"], 2, "`--dim` must be from 2 to 4096, but is 0"),
        (["--table", "nowhere.safetensors"], 1, "nowhere.safetensors: no such file"),
        (["nowhere"], 1, "nowhere: no such folder"),
        (["nowhere", "--table", "x"], 2, "Name a bundle or `--table`, not both"),
    ],
)
def test_bad_input_writes_nothing(
    positions: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    found, out, err = positions(*arguments, "--html", "page.html")
    assert found == code and out == "" and message in err
    assert not list(tmp_path.iterdir())
