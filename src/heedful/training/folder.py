"""The folder of a run: where its parts lie, and the lock that keeps a second trainer out."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heedful.core.errors import BundleError


@dataclass(frozen=True)
class RunFolder:
    """``runs/NAME/``. Each part is written by its own room; training writes all but ``report.html`` and the bundle's
    content.
    """

    path: Path

    @property
    def checkpoints(self) -> Path:
        """The last, the best and a few more states to go on from."""
        return self.path / "checkpoints"

    @property
    def history(self) -> Path:
        """What happened, one JSON object a line."""
        return self.path / "history.jsonl"

    @property
    def events(self) -> Path:
        """The same for TensorBoard."""
        return self.path / "tensorboard"

    @property
    def bundle(self) -> Path:
        """What a user keeps: the best model so far."""
        return self.path / "bundle"

    @property
    def report(self) -> Path:
        """One page that shows the run."""
        return self.path / "report.html"

    @contextlib.contextmanager
    def lock(self, name: str = ".lock") -> Iterator[None]:
        """Keep other trainers out for as long as the block lasts. The system drops the lock of a process that dies.

        Args:
            name: of the file; who does more than train with the folder holds a lock of its own around that.

        Raises:
            BundleError: another process trains in this folder.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / name, "a+", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "unknown"
                raise BundleError(
                    f"{self.path}: another process (number {holder}) is training here. "
                    "Wait for it to end, or train into another folder."
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield
