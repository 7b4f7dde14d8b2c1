"""Training, and going on with it."""

import contextlib
import itertools
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from heedful.core.config import apply_settings, read_toml
from heedful.core.errors import BundleError, ConfigError, TrainingError
from heedful.core.runtime import choose_device
from heedful.core.storage import remove_abandoned, write_whole
from heedful.runs.config import ConfigSource, RunConfig, parse_run, read_run
from heedful.runs.convergence import note_late_gains
from heedful.runs.loaded import LoadedModel, load
from heedful.runs.preparation import DIGESTS, prepare_fitting
from heedful.runs.pruning_report import pruning_sections
from heedful.runs.report import report_run
from heedful.tasks.bundle import MANIFEST
from heedful.training import ConsoleReporter, Reporter, RunFolder, SilentReporter, is_first_process
from heedful.training import resume as resume_training
from heedful.training import train as start_training
from heedful.training.checkpoint import Checkpoints
from heedful.training.processes import num_processes

CONFIG = "config.toml"
RUNS = "runs"
"""Where a run goes that is given no folder."""
PREPARED = ".prepared"
RUN_LOCK = ".run-lock"
"""Held from the first look at the folder to the last line of the report; training holds one of its own within."""


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended.

    Attributes:
        path: the run's folder.
        reason: the limit that was reached, or ``signal``.
        num_steps: updates made.
        best: scores of the best validation, whose model is in the bundle; empty if there was none.
    """

    path: Path
    reason: str
    num_steps: int
    best: dict[str, float]

    def summary(self) -> str:
        """Return what the user should know."""
        scores = ", ".join(f"{name} {value:.4g}" for name, value in self.best.items())
        if self.reason == "signal":
            return f"{self.path}: stopped after {self.num_steps:,} updates. `heedful resume {self.path}` goes on."
        return f"{self.path}: {self.num_steps:,} updates; best on dev: {scores or 'none'}"

    def load(self) -> LoadedModel:
        """Open the bundle."""
        return load(self.path)


def train(
    config: ConfigSource,
    out: Path | str | None = None,
    *,
    settings: Iterable[str] = (),
    reporter: Reporter | None = None,
) -> RunOutcome:
    """Train a model.

    Args:
        config: nested values, the path of a TOML file, or a recipe's name.
        out: folder of the new run; it must not exist. Absent means ``runs/NAME`` where the caller is, by the name of
            the file or recipe (nested values go by their task's), and ``runs/NAME-2`` and so on where that is there.
        settings: ``key=value`` on top of the configuration.
        reporter: is told how it goes; absent means stderr.

    Raises:
        ConfigError: the configuration does not fit.
        DataError: the data cannot be read as asked.
        BundleError: the folder exists.
        TrainingError: training diverged for good, or the disk is full.
    """
    run = read_run(config, settings)
    reporter = reporter or ConsoleReporter()
    if out is None and num_processes() > 1:
        raise ConfigError("`--out` is missing: several processes must be told where to meet. Name the run's folder.")
    if out is not None and not is_first_process():
        folder = RunFolder(Path(out))
        await_preparation(folder.path, run.training.timeout_minutes)
        return _run(run, folder, SilentReporter())
    if out is not None:
        path = Path(out)
        if not _make(path):
            raise BundleError(f"{path}: already there. Choose another `--out`, or go on with `heedful resume`.")
    else:
        name = run.values()["task"] if isinstance(config, Mapping) else Path(config).stem
        path = next(filter(_make, _numbered(Path(RUNS) / name)))
        reporter.note(f"The run goes to {path}")
    return begin(run, RunFolder(path), reporter)


def _numbered(path: Path) -> Iterator[Path]:
    """Yield the path, then others that end in ``-2``, ``-3`` and so on."""
    yield path
    for number in itertools.count(2):
        yield path.with_name(f"{path.name}-{number}")


def _make(path: Path) -> bool:
    """Make a run's folder; False where something of the name is there already.

    Raises:
        BundleError: no folder can be made there.
    """
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        return False
    except OSError as error:
        raise BundleError(f"{path}: cannot be made: {error.strerror}. Choose another `--out`.") from None
    return True


def begin(run: RunConfig, folder: RunFolder, reporter: Reporter) -> RunOutcome:
    """Train in a folder that has no run yet; if nothing comes of it, and nothing else was there, it is removed."""
    with folder.lock(RUN_LOCK):
        was_empty = not any(each.name != RUN_LOCK for each in folder.path.iterdir())
        try:
            write_whole(folder.path / CONFIG, run.toml().encode())
            return _run(run, folder, reporter)
        except BaseException:
            if was_empty and Checkpoints(folder.checkpoints).last() is None and not folder.bundle.exists():
                shutil.rmtree(folder.path, ignore_errors=True)  # nothing was learnt: leave the name free
            raise


def resume(path: Path | str, *, settings: Iterable[str] = (), reporter: Reporter | None = None) -> RunOutcome:
    """Go on with a run exactly where its last checkpoint stands; without one, begin it.

    Args:
        path: the run's folder.
        settings: ``key=value`` on top of its configuration, for example a longer limit; they are kept.
        reporter: is told how it goes; absent means stderr.

    Raises:
        BundleError: no run there, a damaged checkpoint, changed data, or another trainer at work.
        ConfigError: a setting that does not fit.
        TrainingError: training diverged for good, or the disk is full.
    """
    folder = RunFolder(Path(path))
    if not (folder.path / CONFIG).is_file():
        raise BundleError(f"{folder.path}: no run to resume. Begin one with `heedful train`.")
    if (folder.path / MANIFEST).exists():
        raise BundleError(
            f"{folder.path}: a bundle, which does not say where its training stood. Resume the run that it is of, or "
            f'train on from its weights with `init_from = "{folder.path}"`.'
        )
    run = parse_run(apply_settings(read_toml(folder.path / CONFIG), settings))
    if not is_first_process():
        return _run(run, folder, SilentReporter())
    with folder.lock(RUN_LOCK):
        return _run(run, folder, reporter or ConsoleReporter(), is_resumed=True)


def _run(run: RunConfig, folder: RunFolder, reporter: Reporter, *, is_resumed: bool = False) -> RunOutcome:
    if is_first_process():
        for place in (folder.path / CONFIG, folder.path / DIGESTS, folder.bundle, folder.report):
            remove_abandoned(place)
    choose_device(run.runtime.device)  # one that is not there shows before the data are read
    is_begun = Checkpoints(folder.checkpoints).last() is not None
    fitting = prepare_fitting(run, folder.path, reporter.note, is_begun=is_begun)
    fitting.is_better(run.training.metric, 0.0, 0.0)  # a name that is not measured shows now, not after an hour
    if is_first_process():
        (folder.path / PREPARED).touch()
    action = resume_training if is_begun else start_training
    with _kept(run, folder) if is_resumed else contextlib.nullcontext():
        outcome = action(fitting, run.training, run.runtime, folder, reporter)
    if is_first_process():
        note_late_gains(folder)
        report_run(folder, pruning_sections(folder))
    best = outcome.best.scores if outcome.best else {}
    return RunOutcome(folder.path, outcome.reason, outcome.state.step, best)


@contextlib.contextmanager
def _kept(run: RunConfig, folder: RunFolder) -> Iterator[None]:
    """Keep the settings of a resumed run, unless no checkpoint goes with them: the run must be as good as before."""
    before = (folder.path / CONFIG).read_bytes()
    last = Checkpoints(folder.checkpoints).last()
    write_whole(folder.path / CONFIG, run.toml().encode())
    try:
        yield
    except (BundleError, ConfigError):
        if Checkpoints(folder.checkpoints).last() == last:
            write_whole(folder.path / CONFIG, before)
        raise


def await_preparation(folder: Path, timeout_minutes: float) -> None:
    """Wait until the first process has prepared the run's folder.

    Raises:
        TrainingError: it took too long.
    """
    end_s = time.monotonic() + 60 * timeout_minutes
    while not (folder / PREPARED).exists():
        if time.monotonic() > end_s:
            raise TrainingError(f"{folder}: the first process has not prepared the data in time. See its own message.")
        time.sleep(0.1)
