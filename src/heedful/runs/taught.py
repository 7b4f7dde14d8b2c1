"""The teacher of a run: opened, seen to fit, and asked about the training data."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from heedful.core.errors import ConfigError
from heedful.core.runtime import choose_device, choose_dtype
from heedful.data.batches import Batches, LineBatches
from heedful.runs.config import RunConfig, own_values, parse_run
from heedful.tasks import Bundle, TaughtBatches, Teacher, TeacherConfig, WritingTask, open_bundle, restore_task
from heedful.text.codec import Codec


def teach(batches: Batches, config: RunConfig, codec: Codec, cache: Path, note: Callable[[str], None]) -> Batches:
    """Return batches with the word of the run's teacher on each target; as they are where it has none.

    Args:
        batches: of the training data.
        config: of the run.
        codec: of the run.
        cache: a folder in which the teacher's answers are kept.
        note: hears that the teacher is asked.

    Raises:
        ConfigError: the teacher writes no text, or its symbols are others.
        BundleError: it cannot be opened.
        DataError: the answers cannot be written.
    """
    wanted = config.teacher
    if wanted is None or not wanted.share:
        return batches
    bundle = open_bundle(Path(wanted.path))
    teacher = Teacher(_open(bundle, config, codec), wanted.num_symbols)
    if not isinstance(batches, LineBatches) or not batches.is_fixed:
        return TaughtBatches(batches, teacher, wanted.share, None)
    name = f"answers-{batches.store.folder.name}-{bundle.weights_sha256()[:16]}-{wanted.num_symbols}"
    if not (cache / name).exists():
        note(f"Asking the teacher about {len(batches.store):,} lines, once.")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("asking the teacher", total=len(batches.store))
        return TaughtBatches(batches, teacher, wanted.share, cache / name, partial(_advance, progress, bar))


def _advance(progress: Progress, bar: TaskID, num_answered: int) -> None:
    progress.update(bar, completed=num_answered)


def teacher_digests(teacher: TeacherConfig | None) -> dict[str, str]:
    """Return the sha256 of the teacher's weights, by their path, whatever its share; nothing where there is none.

    Raises:
        BundleError: it cannot be opened.
    """
    if teacher is None:
        return {}
    bundle = open_bundle(Path(teacher.path))
    return {str(bundle.weights): bundle.weights_sha256()}


def _open(bundle: Bundle, config: RunConfig, codec: Codec) -> WritingTask:
    """Return the teacher's task, on the run's device and in its type."""
    task = restore_task(parse_run(own_values(bundle)).task, bundle)
    if not isinstance(task, WritingTask):
        raise ConfigError("`teacher` is for tasks that write text; this one names classes. Leave it out.")
    if task.codec.fingerprint() != codec.fingerprint():
        raise ConfigError(
            "`teacher.path` has other tokenizers than the run, so that its symbols mean something else. Name a teacher "
            "with those of `init_from`."
        )
    device = choose_device(config.runtime.device)
    task.to(device, choose_dtype(config.runtime.dtype, device))
    return task
