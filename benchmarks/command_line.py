"""Heedful's own command line, as the benchmarks use it: the same commands that a user types."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from record import CACHE, shorten

RUNS = CACHE / "runs"
PROGRAM = [sys.executable, "-c", "from heedful.cli.main import main; main()"]


def heedful(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command; end with its message when it fails. Options go to ``subprocess.run``."""
    print("$ " + spell(words), file=sys.stderr, flush=True)
    finished = subprocess.run([*PROGRAM, *words], text=True, **options)
    if finished.returncode:
        sys.exit(f"`{spell(words)}` failed with exit code {finished.returncode}.\n{finished.stderr or ''}")
    return finished


def spell(words: Sequence[str]) -> str:
    """Return a command as a user types it."""
    return " ".join(["heedful", *map(_quote, words)])


def _quote(word: str) -> str:
    short = shorten(word)
    return f'"{short}"' if short.startswith("$HEEDFUL_DATA/") else shlex.quote(short)


def train(config: str, name: str, settings: Sequence[str] = ()) -> tuple[Path, str]:
    """Train a recipe or file into the run of that name, or go on with it where it stopped.

    A run that was finished is left as it is.

    Returns:
        Its folder, and the command that makes it.
    """
    folder = RUNS / name
    flags = [word for setting in settings for word in ("--set", setting)]
    command = ["train", config, "--out", str(folder), *flags]
    finished = folder.with_suffix(".done")
    if not finished.exists():
        RUNS.mkdir(parents=True, exist_ok=True)
        heedful(*(["resume", str(folder)] if folder.exists() else command))
        finished.touch()
    return folder, spell(command)


def forget(name: str) -> None:
    """Remove a run, so that it is trained anew."""
    subprocess.run(["rm", "-rf", str(RUNS / name)], check=True)
    (RUNS / name).with_suffix(".done").unlink(missing_ok=True)


def evaluate(folder: Path, split: str, settings: Sequence[str] = ()) -> dict[str, Any]:
    """Return what ``heedful evaluate --json`` says of a run."""
    flags = [word for setting in settings for word in ("--set", setting)]
    answer = heedful("evaluate", str(folder), "--split", split, "--json", *flags, stdout=subprocess.PIPE)
    return json.loads(answer.stdout)


def default_threads() -> int:
    """Return how many threads a run takes when its configuration names none."""
    return int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))


def facts(folder: Path) -> dict[str, Any]:
    """Return a run's number of parameters, updates, minutes of training and speed, as its own files have them."""
    info = json.loads(heedful("info", str(folder), "--json", stdout=subprocess.PIPE).stdout)
    records = [json.loads(line) for line in (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()]
    trained = [record for record in records if record["kind"] == "train"]
    return {
        "parameters": info["num_parameters"],
        "updates": records[-1]["step"],
        "minutes": records[-1]["elapsed_s"] / 60,
        "tokens_per_s": sum(record["targets_per_s"] for record in trained) / max(len(trained), 1),
        "threads": info["config"].get("runtime", {}).get("threads") or default_threads(),
    }
