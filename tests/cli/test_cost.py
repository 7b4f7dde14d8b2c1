"""``heedful cost``: a small measurement in all forms, and numbers that are too small."""

import json
from pathlib import Path

import pytest

from heedful.cli.main import main


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr("sys.argv", ["heedful", "cost", *map(str, arguments)])
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_a_small_measurement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "cost.html"
    small = ("--quick", "--length", 32, "--width", 8, "--window", 2)
    assert run(monkeypatch, *small, "--html", page, "--json") == 0
    out, err = capsys.readouterr()
    values = json.loads(out)
    assert values["plan"]["lengths"] == [8, 16, 32] and len(values["rows"]) == 7
    attention = values["rows"][0]
    assert attention["over_length"][-1]["operations"] == 8 * 32 * 8**2 + 4 * 32**2 * 8
    assert 1 < attention["fits"]["operations over length"]["exponent"] < 2
    assert values["crossings"][0]["by_operations"] == 16
    assert "measuring length 32 at width 8" in err
    html = page.read_text("utf-8")
    assert html.count("<svg") == 7 and "<script" not in html
    assert "Self-attention is dearer than recurrent (GRU) at width 8" in html
    assert ("This machine was busy" in html) == (values["cpu_share"] < 0.85)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--length", "4"], "`--length` must be at least 16, but is 4."),
        (["--kernel", "2"], "`--kernel` must be at least 3, but is 2."),
        (["--window", "0"], "`--window` must be at least 1, but is 0."),
        (["--threads", "100000"], "`--threads` must be at most 1024, but is 100000."),
        (["--html", "no/where.html"], "no/where.html: there is no folder no. Make it first."),
        (["--threads", "0"], "`--threads` must be at least 1, but is 0."),
    ],
)
def test_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(monkeypatch, *arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and "Traceback" not in err
