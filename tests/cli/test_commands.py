"""Commands as a user calls them: results on stdout, the rest on stderr, exit codes, no traceback."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.cli.main import be_neighbourly, main
from heedful.runs import pruning_comparison, pruning_run


class Terminal:
    """Runs a command in this process and remembers what it wrote."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self.monkeypatch, self.capsys, self.folder = monkeypatch, capsys, folder
        self.out = self.err = ""

    def __call__(self, *arguments: object, text: str | bytes = "") -> int:
        data = text if isinstance(text, bytes) else text.encode()
        (self.folder / "stdin").write_bytes(data)
        self.monkeypatch.setattr(sys, "argv", ["heedful", *map(str, arguments)])
        with (self.folder / "stdin").open("rb") as stdin:
            self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stdin))
            try:
                main()
                code = 0
            except SystemExit as stop:
                code = int(stop.code or 0)
        self.out, self.err = self.capsys.readouterr()
        assert "Traceback" not in self.err
        return code


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> Terminal:
    return Terminal(monkeypatch, capsys, tmp_path_factory.mktemp("terminal"))


def test_predict_gives_a_line_for_a_line(run: Terminal, reverser: Path) -> None:
    assert run("predict", reverser, text="ab\n\ncab\u2028c\x85d\nba") == 0
    lines = run.out.split("\n")
    assert lines[0] == "ba" and lines[1] == "" and lines[3] == "ab" and lines[4:] == [""]
    assert len(run.out.splitlines()) == 4  # nothing that a reader could take for a line's end is left
    assert run("predict", reverser, text="") == 0
    assert run.out == ""


def test_predict_from_a_file_with_scores_and_candidates(run: Terminal, reverser: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("ab\r\nba\n", "utf-8")
    assert run("predict", reverser, tmp_path / "in.txt", "--n-best", "2", "--scores") == 0
    rows = [line.split("\t") for line in run.out.splitlines()]
    assert [len(row) for row in rows] == [4, 4] and [row[1] for row in rows] == ["ba", "ab"]
    assert float(rows[0][0]) >= float(rows[0][2])
    assert run("predict", reverser, tmp_path / "in.txt", "--n-best", "2", "--format", "tsv") == 0
    assert [line.split("\t")[:2] for line in run.out.splitlines()] == [["1", "1"], ["1", "2"], ["2", "1"], ["2", "2"]]
    assert run("predict", reverser, tmp_path / "in.txt", "--format", "jsonl", "--beam", "1") == 0
    assert [json.loads(line)["text"] for line in run.out.splitlines()] == ["ba", "ab"]


def test_score(run: Terminal, reverser: Path) -> None:
    assert run("score", reverser, text="ab\tba\nab\tab\n") == 0
    right, wrong = (line.split("\t") for line in run.out.splitlines())
    assert float(right[0]) > float(wrong[0]) + 1
    assert right[2].startswith("ba:-") and " </s>:-" in right[2]
    assert run("score", reverser, "--json", text="ab\tba\n") == 0
    assert json.loads(run.out)["num_tokens"] == 3
    assert run("score", reverser, "--header", text="source\ttarget\nab\tba\n") == 0
    assert run.out.count("\n") == 1 and " </s>:-" in run.out and run.out.split("\t")[2].startswith("ba:-")
    assert run("score", reverser, text="ab\tba\nab\n") == 1
    assert run.err.startswith("heedful: line 2: a source is missing")


def test_evaluate_and_info(run: Terminal, reverser: Path) -> None:
    assert run("evaluate", reverser, "--json") == 0
    values = json.loads(run.out)
    assert values["lines"] == 40 and set(values["metrics"]) == {"loss", "cer", "sequence_error"}
    assert all(each["signature"] for each in values["metrics"].values())
    assert run("evaluate", reverser, "--split", "train") == 2
    assert "`train` is no split of held-out data. Choose from: `dev`, `test`." in run.err
    assert run("info", reverser) == 0
    assert "words turned around" in run.out and "transformer" in run.out
    assert run("info", reverser / "bundle", "--json") == 0
    assert json.loads(run.out)["num_parameters"] > 1000


def test_recipes(run: Terminal) -> None:
    assert run("recipes") == 0
    assert {"pronounce", "multi30k-en-de", "characters"} <= {line.split()[0] for line in run.out.splitlines()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "pronounse", "--out", "x"], "`pronounse` is neither a recipe nor a file. Did you mean `pronounce`"),
        (["train", "missing.toml", "--out", "x"], "missing.toml: no such file."),
        (["train", "missing.toml"], "missing.toml: no such file."),
        (["train", "pronounce", "--out", "x", "--set", "model.dropuot=0.1"], "Did you mean `dropout` or"),
        (["train", "pronounce", "--out", "x", "--set", "trainning.max_steps=1"], "Did you mean `training`?"),
        (["train", "pronounce", "--out", "x", "--set", "task=translate"], "Did you mean `translation`?"),
        (["train", "pronounce", "--out", "x", "--set", "data.train.path=${HEEDFUL_DATA}/x"], "HEEDFUL_DATA is not set"),
        (["train", "pronounce", "--out", "x", "--set", "nonsense"], "`nonsense` is no setting"),
    ],
)
def test_what_is_asked_wrongly_exits_with_2(
    run: Terminal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    assert run(*arguments) == 2
    assert message in run.err
    assert run.out == "" and not (tmp_path / "x").exists()


def test_what_fails_exits_with_1(run: Terminal, tmp_path: Path, reverser: Path) -> None:
    assert run("predict", tmp_path / "nowhere") == 1
    assert "no such folder. Name a run folder or a bundle folder." in run.err
    assert run("predict", reverser, tmp_path / "in.txt") == 1
    assert "in.txt: cannot be read" in run.err
    assert run("predict", reverser, text=b"ab\n\xff\xfe\n") == 1
    assert "stdin:2: not UTF-8" in run.err
    assert run.out == "ba\n", "what came before the fault is answered"


def test_outputs_begin_as_asked(run: Terminal, tmp_path: Path, reverser: Path) -> None:
    prefixes = tmp_path / "prefixes.txt"
    prefixes.write_text("b\n\n", "utf-8")
    assert run("predict", reverser, "--prefixes", prefixes, text=b"abcd\nabcd\n") == 0
    first, second = run.out.splitlines()
    assert first.startswith("b") and second == "dcba"
    assert run("predict", reverser, "--prefixes", prefixes, text=b"abcd\n\nab\n") == 1
    assert "There is no prefix 3. Give a prefix for each line, blank for nothing." in run.err
    assert run("predict", reverser, "--prefixes", "-", text=b"b\n") == 2
    assert "Standard input can be read only once" in run.err


def test_a_reader_that_leaves_is_no_error(reverser: Path) -> None:
    command = f"yes ab | {sys.executable} -m heedful predict {reverser} | head -n 2"
    finished = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=True)
    assert finished.stdout == "ba\nba\n" and finished.stderr == ""


def test_a_command_that_computes_nothing_loads_no_torch() -> None:
    program = "import sys, heedful.cli.main; print('torch' in sys.modules)"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout == "False\n"


def test_a_message_does_nothing_to_the_terminal(run: Terminal) -> None:
    assert run("info", "\x1b[31mred") == 1
    assert run.err.startswith("heedful: \\u001b[31mred: no such folder.")


def test_words_of_scores_do_nothing_to_the_terminal(run: Terminal, reverser: Path) -> None:
    assert run("score", reverser, text="ab\tb\x1b\x07a\n") == 0
    assert "\x1b" not in run.out and "\x07" not in run.out


def test_waiting_threads_sleep_soon_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the library's own patience, a program on one of two cores made training many times slower."""
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    be_neighbourly()
    assert os.environ["GOMP_SPINCOUNT"] == "7"
    monkeypatch.delenv("GOMP_SPINCOUNT")
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    be_neighbourly()
    assert "GOMP_SPINCOUNT" not in os.environ
    monkeypatch.delenv("OMP_WAIT_POLICY")
    be_neighbourly()
    assert 0 < int(os.environ["GOMP_SPINCOUNT"]) < 100_000


def test_torch_is_not_loaded_before_threads_are_told_how_to_wait() -> None:
    code = "import sys, heedful.cli.main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.usefixtures("quick_measuring")
def test_prune(run: Terminal, reverser: Path, tmp_path: Path) -> None:
    words = ("--keep", 2, "--kinds", "encoder, cross", "--max-steps", 5, "--set", "validation.max_lines=3")
    assert run("prune", reverser, *words, "--out", tmp_path / "small", "--json") == 0
    assert json.loads(run.out)["method"] == "gates"
    assert run("evaluate", tmp_path / "small") == 0
    assert run("prune", reverser, "--out", tmp_path / "none") == 2
    assert run.err.startswith("heedful: Say how far to prune with exactly one of `--keep`")
    assert run("prune", reverser, "--keep", 2, "--kinds", "encodr", "--out", tmp_path / "none") == 2
    assert "Did you mean `encoder`" in run.err
    assert not (tmp_path / "none").exists()


@pytest.mark.usefixtures("quick_measuring")
def test_prune_fails_where_more_is_lost_than_was_allowed(
    run: Terminal, reverser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in (pruning_run, pruning_comparison):
        monkeypatch.setattr(room, "points_lost", lambda *facts: 60.5)
    words = ("--max-loss", 60, "--method", "random", "--max-steps", 20, "--set", "validation.max_lines=3")
    assert run("prune", reverser, *words, "--set", "training.metric=cer", "--out", tmp_path / "small") == 1
    assert "\ngoal not met: 60.5 points of cer lost on dev, at most 60 allowed\n" in run.out
    assert "The goal is not met. Try more `--max-minutes`, or a larger `--max-loss`." in run.err
    assert run("info", tmp_path / "small") == 0
