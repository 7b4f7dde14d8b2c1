"""TensorBoard events: the history's numbers as scalars."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from heedful.training.records import Record, RollbackRecord, TrainRecord, ValidationRecord


class Events:
    """Writes records for TensorBoard, which is imported only here and only when needed.

    Args:
        path: folder of the event files.
        next_step: points at or after this step, from an earlier part of the run, are purged.
    """

    def __init__(self, path: Path, next_step: int = 0) -> None:
        self.path = path
        self._next_step = next_step
        self._writer: Any = None

    def write(self, record: Record) -> None:
        """Write one record."""
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            _wait_for_a_later_name(self.path)
            self._writer = SummaryWriter(str(self.path), purge_step=self._next_step or None)
        for name, value in _scalars(record).items():
            self._writer.add_scalar(name, value, record.step)

    def cut(self, next_step: int) -> None:
        """Purge points at or after a step."""
        self.close()
        self._next_step = next_step

    def sync(self) -> None:
        """Write out what is held back."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Write out what is held back and close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _wait_for_a_later_name(path: Path) -> None:
    """Wait until no event file bears the second that a new one would bear.

    TensorBoard reads files in the order of their names. Those begin with the second, and what follows it (process,
    count of writers) has no fixed width: of two files of one second, the later could be read first and its purge be
    lost.
    """
    while any(path.glob(f"events.out.tfevents.{int(time.time()):010d}.*")):
        time.sleep(0.02)


def _scalars(record: Record) -> dict[str, float]:
    match record:
        case TrainRecord():
            numbers = asdict(record)
            return {f"train/{name}": numbers[name] for name in ("loss", "rate", "norm", "targets_per_s", "epoch")}
        case ValidationRecord():
            return {f"validation/{name}": value for name, value in record.scores.items()}
        case RollbackRecord():
            return {"train/rate_factor": record.rate_factor}
