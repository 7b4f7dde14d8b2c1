"""From a configuration to what the training loop turns: data read and kept, the model built, the bundle's writer."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from heedful.core.errors import BundleError, ConfigError
from heedful.core.runtime import set_seed
from heedful.core.storage import whole_folder, write_whole
from heedful.data.batches import Batches, LineBatches, StreamBatches
from heedful.data.prepare import TrainingData, prepare, read_split
from heedful.runs.config import RunConfig
from heedful.runs.keeping import BundleWriter
from heedful.runs.taught import teach, teacher_digests
from heedful.tasks import Fitting, LanguageModellingConfig, open_bundle, task_class
from heedful.tasks.places import check_places
from heedful.tasks.weights import load_weights
from heedful.text.codec import Codec
from heedful.text.labels import LabelSet

Note = Callable[[str], None]

DIGESTS = "data.json"
GIVEN_TEXT = "given-text"
LABELS = "labels.json"


def prepare_fitting(config: RunConfig, folder: Path, note: Note, *, is_begun: bool) -> Fitting:
    """Read the data, make the tokenizers and the model; what is kept in the run's folder is taken from there.

    Args:
        config: of the run.
        folder: of the run.
        note: hears what a user should know of the data and the model.
        is_begun: the weights will come from a checkpoint.

    Raises:
        DataError: the data cannot be read as asked.
        ConfigError: something does not fit together.
        BundleError: what `init_from` or `teacher.path` names cannot be used.
    """
    here = Path.cwd()
    check_places(config.task)
    codec, labels = _given_text(config, folder / GIVEN_TEXT)
    data = prepare(config.task.data, config.task.text, here, folder / "data", codec=codec, labels=labels)
    _check_digests(folder / DIGESTS, data.digests | teacher_digests(config.teacher))
    note(data.report.summary())
    set_seed(config.runtime.seed)
    task = task_class(config.task)(config.task, data.codec, data.labels)
    task.seed = config.runtime.seed
    if config.init_from is not None and not is_begun:
        load_weights(task.model, open_bundle(Path(config.init_from)).weights)
    note(f"{data.codec.summary()}; {config.task.model.kind} with {task.num_parameters:,} parameters")
    batches = _batches(config, data)
    if isinstance(batches, LineBatches):
        note(batches.waste().summary())
    batches = teach(batches, config, data.codec, folder / "data", note)
    writer = BundleWriter(config, data)
    return Fitting(task, batches, read_split(config.task.data, "dev", here), writer.write)


def _batches(config: RunConfig, data: TrainingData) -> Batches:
    batching, seed = config.task.data.batching, config.runtime.seed
    if data.stream is not None:
        if not isinstance(config.task, LanguageModellingConfig):
            raise ConfigError('`data.train.unit` is `stream`, which is for `task = "language_modelling"` alone.')
        return StreamBatches(data.stream, config.task.context, batching, seed)
    assert data.store is not None
    return LineBatches(data.store, batching, seed, data.codec)


def _given_text(config: RunConfig, kept: Path) -> tuple[Codec | None, LabelSet | None]:
    """Return tokenizer and labels of the bundle that the run goes on from, if any, from a copy that the run keeps."""
    if config.text_from is None:
        return None, None
    if not kept.is_dir():
        bundle = open_bundle(Path(config.text_from))
        with whole_folder(kept) as folder:
            for name in bundle.text_files():
                shutil.copyfile(bundle.path / name, folder / name)
    has_labels = (kept / LABELS).is_file()
    return Codec.load(kept), LabelSet.load(kept) if has_labels else None


def _check_digests(path: Path, digests: dict[str, str]) -> None:
    """Keep the checksums of the data files; a resumed run must find the same.

    Raises:
        BundleError: a file has changed since the run began.
    """
    if not path.is_file():
        write_whole(path, (json.dumps(digests, indent=1) + "\n").encode())
        return
    try:
        known = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        known = None
    if not isinstance(known, dict):
        raise BundleError(
            f"{path}: damaged, so that it cannot tell whether the data are as they were. If they are, remove this file "
            "and resume."
        )
    for name in known.keys() | digests.keys():
        if known.get(name) != digests.get(name):
            raise BundleError(
                f"{path.parent}: the data file {name} is not what it was when the run began, so it cannot go on "
                "exactly. Bring the file back, or start anew with `heedful train` and `init_from`."
            )
