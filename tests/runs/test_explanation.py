"""The four checks and the agreement of accounts, from configuration to figures, by command and in Python."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.test_reading import spelled_otherwise
from tests.cli.test_commands import Terminal, run

from heedful import runs
from heedful.analysis.agreement import account, line_agreement
from heedful.analysis.reading import read_lines
from heedful.core.errors import BundleError, ConfigError, DataError
from heedful.runs.explanation import FINISHED
from heedful.training import SilentReporter

__all__ = ["run"]

WORDS = ["cat", "dog", "owl", "ant"], ["car", "jet", "bus", "van"]


def config(folder: Path) -> dict[str, Any]:
    """Return the configuration of a classifier that finds the one word that decides."""
    rows = ["text\tlabel"]
    for number in range(48):
        kind = number % 2
        rows.append(f"the {'very ' * (number % 3)}old {WORDS[kind][number % 4]} came\t{'thing' if kind else 'animal'}")
    (folder / "things.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    table = {"kind": "tsv", "path": str(folder / "things.tsv"), "source": "text", "label": "label"}
    encoder = {"kind": "recurrent", "embedding_dim": 6, "hidden_dim": 6, "dropout": 0.0}
    return {
        "task": "classification",
        "data": {"train": table, "dev": table, "test": table, "cleaning": {"drop_duplicates": False}},
        "text": {"source": {"kind": "word"}},
        "model": {"kind": "classifier", "pooling": "attention", "encoder": encoder, "dropout": 0.0},
        "training": {
            "max_steps": 8,
            "metric": "accuracy",
            "schedule": {"kind": "constant", "peak": 0.05},
            "averaging": {"kind": "none"},
            "has_tensorboard": False,
        },
        "runtime": {"threads": 1, "dtype": "float32", "device": "cpu"},
    }


def test_the_four_checks_once_and_again(tmp_path: Path) -> None:
    out = tmp_path / "checks"
    found = runs.explain(config(tmp_path), out, seeds=2, adversaries=[0.01])
    assert [each.name for each in found.trials] == [
        *(f"{kind}-{seed}" for seed in (1, 2) for kind in ("attention", "uniform", "words", "words-uniform",
                                                           "words-guided")),
        "adversary-0.01",
        "words-guided-by-adversary-0.01",
    ]  # fmt: skip
    by_name = {each.name: each for each in found.trials}
    assert by_name["attention-1"].weights_apart is None and by_name["uniform-2"].weights_apart is None
    assert 0 < (by_name["attention-2"].weights_apart or 0) < 0.7
    assert by_name["words-guided-1"].weights_apart is None and by_name["words-guided-1"].outputs_apart is not None
    assert json.loads((out / "explanation.json").read_text()) == json.loads(json.dumps(found.to_values()))
    times = {path: path.stat().st_mtime_ns for path in out.glob(f"*/{FINISHED}")}
    assert len(times) == 12
    (out / "attention-2" / FINISHED).unlink()  # as if it had been stopped before its end was noted
    assert runs.explain(config(tmp_path), out, seeds=2, adversaries=[0.01]) == found
    changed = [path.parent.name for path, time in times.items() if path.stat().st_mtime_ns != time]
    assert changed == ["attention-2"]
    with pytest.raises(BundleError, match="holds checks of another configuration"):
        runs.explain(config(tmp_path), out, settings=["model.encoder.hidden_dim=8"], seeds=2)
    # Another adversary has a guided model of its own, and the first one's is as it was.
    other = runs.explain(config(tmp_path), out, seeds=2, adversaries=[0.5])
    assert other.trials[-1].name == "words-guided-by-adversary-0.5"
    assert (out / "words-guided-by-adversary-0.5" / FINISHED).exists()
    assert runs.explain(config(tmp_path), out, seeds=2, adversaries=[0.01]) == found
    # The adversary is an ordinary model.
    assert next(iter(runs.load(out / "adversary-0.01").predict(["the old cat came"]))).text in ("animal", "thing")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("model.pooling=max", "whose one attention pools"),
        ('model.encoder={kind = "transformer", model_dim = 8, num_heads = 2, inner_dim = 8}', "whose one attention"),
        (
            'model.encoder={kind = "convolutional", embedding_dim = 6, num_filters = 6, filter_widths = [1]}',
            "whose one attention",
        ),
        ("data.test.path=nowhere.tsv", None),
    ],
)
def test_what_cannot_be_checked_leaves_nothing(tmp_path: Path, settings: str, message: str | None) -> None:
    values = config(tmp_path)
    if message is None:
        del values["data"]["test"]
        settings, message = "training.max_steps=8", "`data.test` is missing"
    with pytest.raises(ConfigError, match=message):
        runs.explain(values, tmp_path / "out", settings=[settings])
    with pytest.raises(ConfigError, match="`seeds` must be at least 2"):
        runs.explain(values, tmp_path / "out", seeds=1)
    with pytest.raises(ConfigError, match="`adversaries` must be"):
        runs.explain(values, tmp_path / "out", adversaries=[-1.0])
    with pytest.raises(ConfigError, match="`adversaries` must be finite"):
        runs.explain(values, tmp_path / "out", adversaries=[math.nan])
    assert not (tmp_path / "out").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(BundleError, match="already there"):
        runs.explain(config(tmp_path), tmp_path / "full")


def test_agreement_by_command(run: Terminal, reverser: Path) -> None:
    text = "abcd dca\nab\n\ncab\tbac\n"
    assert run("explain", reverser, text=text) == 0
    lines = run.out.splitlines()
    assert lines[0].split() == ["weights", "rollout", "norms", "gradient", "silencing"]
    assert [line.split()[0] for line in lines[1:6]] == ["rollout", "norms", "gradient", "silencing", "leave-one-out"]
    assert "mean over 3 lines, 1 of them too short to rank" in lines[6]
    assert run("explain", reverser, "--json", "--lines", "1", text=text) == 0
    values = json.loads(run.out)
    assert values["lines"] == 1 and len(values["pairs"]) == 15
    assert all(-1 <= each["tau"] <= 1 for each in values["pairs"])
    assert all(each["low"] == pytest.approx(each["tau"], abs=1e-6) for each in values["pairs"])  # of one line


def test_what_is_asked_wrongly(run: Terminal, reverser: Path, tmp_path: Path) -> None:
    for arguments, text, code, message in (
        (["explain", reverser], "a\nb\n", 1, "No line has three symbols to rank"),
        (["explain", reverser], "", 1, "No line has three symbols to rank"),
        (["explain", reverser, "--lines", "0"], "abc\n", 2, "`lines` must be at least 1"),
        (["explain", reverser, tmp_path / "none"], "", 1, "none: cannot be read"),
        (["explain", "question-type"], "", 2, "`--out` is missing"),
        (["explain", "no-recipe", "--out", tmp_path / "x"], "", 2, "neither a recipe nor a file"),
    ):
        assert run(*arguments, text=text) == code
        assert message in run.err and run.out == ""


def test_a_line_alone_and_in_company(reverser: Path) -> None:
    model = runs.load(reverser)
    (alone,) = (runs.agree(model, ["abcd\tdcba"]),)
    with pytest.raises(DataError):
        runs.agree(model, ["a"])
    twice = runs.agree(model, ["abcd\tdcba", "abcd\tdcba"])
    assert [each.tau for each in twice.pairs] == pytest.approx([each.tau for each in alone.pairs], abs=1e-6)


def test_what_means_nothing_for_the_one_or_the_other_is_refused(run: Terminal, reverser: Path, tmp_path: Path) -> None:
    assert run("explain", reverser, "--seeds", "3", "--out", tmp_path / "out", text="abc\n") == 2
    assert "--out and --seeds:" in run.err and "for the four checks" in run.err
    assert run("explain", "question-type", "--lines", "3") == 2
    assert "--lines: question-type is no run" in run.err
    assert run("explain", "qestion-type") == 2
    assert "Did you mean `question-type`?" in run.err
    assert not (tmp_path / "out").exists()


def test_an_answer_of_its_own_is_ranked_as_it_was_found(reverser: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = runs.load(reverser)
    ids = spelled_otherwise(model.task, monkeypatch)
    (reading,) = read_lines(model.task, [("abcd", None)], pattern="*.[vw]*")
    assert list(reading.target_output.ids) == [*ids, 3]
    with model.task.inference():
        expected = list(line_agreement(account(model.model, reading, model.task.stack([reading.encoded]))))
    found = runs.agree(model, ["abcd"])
    assert [each.tau for each in found.pairs] == pytest.approx([tau for _, _, tau in expected])


def test_a_line_is_told_by_its_number_in_the_file(run: Terminal, reverser: Path) -> None:
    assert run("explain", reverser, text="abcd\n\n" + 20 * "a" + "\n") == 0
    assert (
        "1 line was longer than 12 symbols and cut (line 3); the longest had 20. What was cut is not ranked" in run.err
    )
    assert "mean over 2 lines" in run.out


def test_blank_lines_are_passed_over_by_a_classifier_too(run: Terminal, tmp_path: Path) -> None:
    values = config(tmp_path)
    values["training"]["max_steps"] = 1
    runs.train(values, tmp_path / "judge", reporter=SilentReporter())
    assert run("explain", tmp_path / "judge", text="the old cat came\n\n \t \nthe old bus came\tthing\n") == 0
    assert "mean over 2 lines" in run.out
    (tmp_path / "lines.txt").write_text("the old cat came\n\nthe old bus came\n", "utf-8")
    assert run("heads", tmp_path / "judge", "--text", tmp_path / "lines.txt", "--importance") == 0
    assert "pooling.0:0" in run.out and "3 lines" in run.out
    assert run("heads", tmp_path / "judge", "--text", tmp_path / "lines.txt", "--target", tmp_path / "none.txt") == 1
    (tmp_path / "labels.txt").write_text("animal\n\nthing\n", "utf-8")
    labels = ["--target", tmp_path / "labels.txt"]
    assert run("heads", tmp_path / "judge", "--text", tmp_path / "lines.txt", "--importance", *labels) == 0
