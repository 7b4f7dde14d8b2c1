"""Who is told how training goes: nobody, or a person at stderr."""

from abc import ABC, abstractmethod

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from heedful.training.records import Record, RollbackRecord, TrainRecord, UpdateRecord, ValidationRecord


class Reporter(ABC):
    """Is told what happens in the first process."""

    @abstractmethod
    def note(self, text: str) -> None:
        """Hear a sentence for the user: a warning, a resumption, the end."""

    def updated(self, update: UpdateRecord) -> None:  # noqa: B027 - most listeners wait for a record
        """Hear of each update; must be quick."""

    @abstractmethod
    def recorded(self, record: Record) -> None:
        """Hear of each record of the history."""

    def close(self) -> None:  # noqa: B027
        """Hear that nothing more will come."""


class SilentReporter(Reporter):
    """Tells nobody."""

    def note(self, text: str) -> None:
        """See `Reporter.note`."""

    def recorded(self, record: Record) -> None:
        """See `Reporter.recorded`."""


class ConsoleReporter(Reporter):
    """Writes to stderr: a moving bar at a terminal, plain lines elsewhere."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self._held_out = ""
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def note(self, text: str) -> None:
        """See `Reporter.note`."""
        self.console.print(text, markup=False, soft_wrap=True)

    def updated(self, update: UpdateRecord) -> None:
        """See `Reporter.updated`."""
        if not self.console.is_terminal:
            return
        if self._bar is None:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False), BarColumn(), console=self.console, refresh_per_second=4
            )
            self._task = self._bar.add_task("", total=1.0)
            self._bar.start()
        speed = update.targets / max(update.seconds, 1e-9)
        words = f"step {update.step:,}  loss {update.loss:.3f}  rate {update.rate:.2g}  {speed:,.0f} targets/s"
        words += self._held_out + describe_rest(update.elapsed_s, update.fraction)
        self._bar.update(self._task, description=words, completed=update.fraction)

    def recorded(self, record: Record) -> None:
        """See `Reporter.recorded`."""
        match record:
            case TrainRecord():
                if not self.console.is_terminal:
                    self.note(describe_training(record))
            case ValidationRecord():
                self._held_out = "  held-out " + describe_scores(record.scores)
                self.note(describe_validation(record))
            case RollbackRecord():
                self.note(describe_rollback(record))

    def close(self) -> None:
        """See `Reporter.close`."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def describe_training(record: TrainRecord) -> str:
    """Return a training record as a line."""
    return (
        f"step {record.step:,}  epoch {record.epoch + 1}  loss {record.loss:.4f}  rate {record.rate:.3g}  "
        f"{record.targets_per_s:,.0f} targets/s  {describe_time(record.elapsed_s)}"
    )


def describe_validation(record: ValidationRecord) -> str:
    """Return a validation as a line."""
    best = "  (best so far)" if record.is_best else ""
    took = describe_time(record.seconds)
    return f"step {record.step:,}  held-out {describe_scores(record.scores)}{best}  (measured in {took})"


def describe_rollback(record: RollbackRecord) -> str:
    """Return a rollback as a sentence."""
    return (
        f"Training went wrong at step {record.broken_step:,}: {record.fault}. It goes on from the checkpoint of step "
        f"{record.step:,} with {record.rate_factor:g} times the learning rate."
    )


def describe_scores(scores: dict[str, float]) -> str:
    """Return scores as ``name value`` pairs."""
    return "  ".join(f"{name} {value:.4g}" for name, value in scores.items())


def describe_rest(elapsed_s: float, fraction: float) -> str:
    """Return how much time is left, or nothing while that cannot be known."""
    return f"  {describe_time(elapsed_s * (1 - fraction) / fraction)} left" if fraction > 0.001 else ""


def describe_time(seconds: float) -> str:
    """Return a duration, e.g. ``8.4 s``, ``12:05`` or ``3:07:00``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
