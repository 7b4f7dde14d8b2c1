"""Short prunings of small models."""

from pathlib import Path
from typing import Any

from tests.runs.samples import words

from heedful import runs
from heedful.training import Reporter, SilentReporter
from heedful.training.records import Record


class Listener(Reporter):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def recorded(self, record: Record) -> None:
        pass


def prune(run: Path, out: Path, **wish: Any) -> runs.Pruning:
    settings = ["validation.max_lines=5", *wish.pop("settings", [])]
    return runs.prune(run, out, **{"reporter": SilentReporter(), "max_steps": 10, "settings": settings, **wish})


def texts(path: Path) -> list[str]:
    return [each.text for each in runs.load(path).predict(words()[:17])]
