"""A trained model as a user holds it: predict, score, evaluate."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from heedful.core.config import apply_settings
from heedful.core.errors import ConfigError
from heedful.core.runtime import choose_device, choose_dtype
from heedful.data.prepare import read_split
from heedful.models.interfaces import Model
from heedful.runs.config import RunConfig, own_values, parse_run
from heedful.runs.facts import RunFacts, info
from heedful.search.config import AnySearchConfig, BeamConfig, GreedyConfig, LimitsConfig
from heedful.tasks import Evaluation, Prediction, TargetScore, Task, open_bundle, restore_task
from heedful.text.unread import Unread
from heedful.training import load_averaged, run_of_checkpoint

if TYPE_CHECKING:
    from heedful.runs.inspection import Inspection

CHUNK_LINES = 1024


class LoadedModel:
    """A model out of a run or bundle, with its text processing.

    Args:
        path: where it came from.
        config: of its run, with the caller's settings.
        task: the model with its tokenizers.
        weights_sha256: of the bundle's weights; None where they are not those of a bundle.
    """

    def __init__(self, path: Path, config: RunConfig, task: Task, weights_sha256: str | None = None) -> None:
        self.path = path
        self.weights_sha256 = weights_sha256
        self.config = config
        self.task = task

    @property
    def model(self) -> Model:
        """The model itself, a ``torch.nn.Module``."""
        return self.task.model

    def predict(
        self,
        lines: Iterable[str],
        *,
        beam_size: int | None = None,
        num_best: int | None = None,
        prefixes: Iterable[str] | None = None,
        max_rows: int = 64,
        chunk_lines: int = CHUNK_LINES,
    ) -> Iterator[Prediction]:
        """Yield a prediction for each line, in order; a blank line gives a blank text.

        Args:
            lines: read a chunk at a time, so that they may be many.
            beam_size: hypotheses kept at each step, 1 is greedy; absent means as configured.
            num_best: candidates for each line.
            prefixes: what the output of each line must begin with, blank for nothing; absent means nothing.
            max_rows: lines in a batch at most; it changes speed alone.
            chunk_lines: lines read before the first prediction is given.
        """
        unread = Unread()
        search = adjust_search(self.task.search, beam_size, num_best)
        yield from self.task.predict(
            lines,
            search=search,
            prefixes=prefixes,
            max_rows=max_rows,
            chunk_lines=chunk_lines,
            unread=unread,
        )
        _report(unread)

    def stream(self, line: str) -> Iterator[str]:
        """Yield the output for a line in pieces, each as soon as it is certain.

        The words of a beam are certain only at its end; where one is configured, the search is greedy instead.
        """
        search = self.task.search
        is_beam = isinstance(search, BeamConfig)
        yield from self.task.stream(line, search=adjust_search(search, 1, 1) if is_beam else search)

    def score(self, pairs: Iterable[tuple[str | None, str]]) -> Iterator[TargetScore]:
        """Yield the log-probability of each given target, whole and by word.

        Args:
            pairs: source and target (or label); a language model takes None as source.
        """
        unread = Unread()
        yield from self.task.score(pairs, unread=unread)
        _report(unread)

    def evaluate(self, split: str = "test") -> Evaluation:
        """Measure the model on a split of the data that its configuration names.

        Raises:
            ConfigError: there is no such split.
            DataError: the data cannot be read.
        """
        unread = Unread()
        examples = read_split(self.config.task.data, split, Path.cwd())
        evaluation = self.task.evaluate(examples, split, unread=unread)
        _report(unread)
        return evaluation

    def inspect(self, source: str, target: str | None = None, **options: Any) -> "Inspection":
        """Look inside while the model answers a line; arguments are those of `heedful.runs.inspect`."""
        from heedful.runs.inspection import inspect

        return inspect(self, source, target, **options)

    def info(self) -> RunFacts:
        """Tell what this model is and how it was made."""
        return info(self.path)


def load(path: Path | str, *, settings: Iterable[str] = ()) -> LoadedModel:
    """Open a run or bundle, ready to predict; or a run as one of its checkpoints has it.

    Args:
        path: a run folder, a bundle folder, or a checkpoint, ``RUN/checkpoints/step-00001000``: its weights (averaged
            where the run averages) in the model of the run's bundle, with the bundle's tokenizers and configuration.
        settings: ``key=value`` on top of its configuration, such as ``search.beam_size=8``. Arithmetic is float32
            unless ``runtime.dtype`` is set here: then the same line gives the same text in any company.

    Raises:
        BundleError: nothing there, or a file is missing or damaged.
        ConfigError: a setting that does not fit.
    """
    run = run_of_checkpoint(Path(path))
    bundle = open_bundle(run or Path(path))
    values = own_values(bundle)
    values["runtime"] = {"dtype": "float32", "seed": values.get("runtime", {}).get("seed", 1)}
    config = parse_run(apply_settings(values, settings))
    if config.runtime.threads is not None:
        torch.set_num_threads(config.runtime.threads)
    device = choose_device(config.runtime.device)
    task = restore_task(config.task, bundle)
    if run is not None:
        load_averaged(task.model, Path(path), config.training.averaging)
    task.model.eval()
    task.to(device, choose_dtype(config.runtime.dtype, device), config.runtime.seed)
    return LoadedModel(Path(path), config, task, bundle.weights_sha256() if run is None else None)


def adjust_search(search: AnySearchConfig, beam_size: int | None, num_best: int | None) -> AnySearchConfig:
    """Return the search with another beam or number of candidates.

    Raises:
        ConfigError: a number below 1.
    """
    for name, value in (("beam_size", beam_size), ("num_best", num_best)):
        if value is not None and value < 1:
            raise ConfigError(f"`{name}` must be at least 1, but is {value}.")
    if beam_size is None and num_best is None:
        return search
    limits = {key: getattr(search, key) for key in LimitsConfig.model_fields}
    if beam_size == 1 and num_best in (None, 1):
        return GreedyConfig(**limits)
    values: dict[str, Any] = search.model_dump(exclude={"kind"})
    if beam_size is None and not isinstance(search, BeamConfig | GreedyConfig):
        return type(search)(**{**values, "num_best": num_best})
    if not isinstance(search, BeamConfig):
        values = limits
    size = beam_size or (search.beam_size if isinstance(search, BeamConfig) else 1)
    wanted = num_best or 1
    return BeamConfig(**{**values, "beam_size": max(size, wanted), "num_best": wanted})


def _report(unread: Unread) -> None:
    if told := unread.summary():
        print(f"heedful: {told}", file=sys.stderr)
