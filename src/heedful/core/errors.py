"""What can go wrong, as one tree. A message says what is wrong, where, and what to try."""

import difflib
from collections.abc import Iterable
from pathlib import Path


class HeedfulError(Exception):
    """Anything Heedful refuses to do, in words meant for its user. The command line prints it and exits with 1."""


class ConfigError(HeedfulError):
    """A key, value or command that cannot be used. The command line exits with 2."""


class DataError(HeedfulError):
    """A data file that cannot be read as asked.

    Args:
        message: what is wrong and what to try.
        path: the file; None or nothing for text that came from no file.
        line: the line's number, counted from 1, or None when the whole file is meant.
    """

    def __init__(self, message: str, path: Path | str | None = None, line: int | None = None) -> None:
        self.path = None if path is None else str(path)
        self.line = line
        text = "" if line is None else f"line {line}: "
        place = text if not path else f"{path}:{line}: " if line is not None else f"{path}: "
        super().__init__(place + message)


class BundleError(HeedfulError):
    """A run or bundle folder that is missing, incomplete, damaged, locked or already there."""


class TrainingError(HeedfulError):
    """Training that cannot go on: it diverged for good, or a process of the group was lost."""


class RequestError(HeedfulError):
    """A request for a prediction that cannot be answered as asked."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence that names the nearest known names, else all of them.

    Args:
        name: what the user wrote.
        known: what would have been accepted.

    Returns:
        For example ``"Did you mean `additive`?"``, or ``"Choose from: `a`, `b`."``.
    """
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return "Did you mean " + " or ".join(f"`{each}`" for each in near) + "?"
    return "Choose from: " + ", ".join(f"`{each}`" for each in known) + "."
