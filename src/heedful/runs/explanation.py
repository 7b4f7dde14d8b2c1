"""The four checks of whether attention explains a classifier: many small trainings, compared; resumable."""

import contextlib
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.analysis.explanation import NO_SINGLE_ATTENTION, Outputs, only_attention, read_outputs
from heedful.analysis.explanation_fitting import OBJECTIVE, AdversarialFitting, GuidedFitting, guided
from heedful.analysis.explanation_report import BY_ADVERSARY, Explanation, Trial, adversary_name
from heedful.core.config import apply_settings, read_toml
from heedful.core.errors import BundleError, ConfigError, TrainingError
from heedful.core.storage import write_whole
from heedful.data.prepare import read_split
from heedful.models.interfaces import Classifies
from heedful.runs.config import ConfigSource, RunConfig, parse_run, read_run
from heedful.runs.loaded import load
from heedful.runs.preparation import prepare_fitting
from heedful.runs.training_run import CONFIG, RUN_LOCK
from heedful.tasks import Fitting, Task
from heedful.training import RunFolder, SilentReporter
from heedful.training import resume as resume_training
from heedful.training import train as start_training
from heedful.training.checkpoint import Checkpoints

RESULT = "explanation.json"
FINISHED = "finished"
SEEDS = 5
ADVERSARIES = (0.0001, 0.001, 0.01, 0.1)
"""Weights of the difference between attentions in the adversary's loss (Wiegreffe and Pinter 2019, section 4.1)."""

Adapt = Callable[[Fitting], Fitting]


@dataclass(frozen=True)
class _Plan:
    """One training: its name, what it sets on top of the configuration, and whose weights guide it, if any."""

    name: str
    settings: tuple[str, ...]
    guide: str | None = None


def explain(
    source: ConfigSource,
    out: Path | str,
    *,
    settings: Iterable[str] = (),
    seeds: int = SEEDS,
    adversaries: Sequence[float] = ADVERSARIES,
) -> Explanation:
    """Carry out the four checks of Wiegreffe and Pinter (2019) on a classifier with one attention.

    Trained are: the classifier with several seeds; the same with uniform weights; a model without context (a word at a
    time) with weights of its own, uniform ones, those of the trained classifier and those of an adversary; adversaries
    that say what the classifier says and attend elsewhere. Called again, it goes on where it was stopped.

    Args:
        source: configuration of the classifier.
        out: folder for the runs and the result.
        settings: on top of the configuration.
        seeds: trainings of each kind but the adversaries.
        adversaries: a training for each, see `AdversarialFitting`.

    Raises:
        ConfigError: the configuration does not fit, or is of no classifier with one attention.
        BundleError: the folder holds something else.
        TrainingError: a training was stopped, or diverged.
    """
    if seeds < 2:
        raise ConfigError(f"`seeds` must be at least 2, for the spread between them is needed, but is {seeds}.")
    if not adversaries or not all(0 <= each < math.inf for each in adversaries):
        raise ConfigError("`adversaries` must be finite weights of 0 or more, one at least.")
    run = read_run(source, settings)
    out = Path(out)
    _check(run)
    _claim(out, run)
    for plan in _plans(run, seeds):
        _train(run, out, plan.name, plan.settings, _guiding(out, plan.guide))
    for weight in adversaries:
        _train(run, out, adversary_name(weight), (f"training.metric={OBJECTIVE}",), _opposing(out, weight))
    found = _compare(run, out, seeds, adversaries)
    furthest = found.furthest()
    name = f"{BY_ADVERSARY}-{furthest.weight}"
    _train(run, out, name, _without_context(run), _guiding(out, furthest.name))
    test = read_split(run.task.data, "test", Path.cwd())
    row = Trial(name, *_measure(out, name, furthest.name, test, None))
    found = found.with_trial(row)
    write_whole(out / RESULT, json.dumps(found.to_values(), indent=2).encode() + b"\n")
    return found


def _check(run: RunConfig) -> None:
    """See that the checks are meant for such a model, before anything is trained."""
    model: Any = run.task.model
    has_attention = model.kind == "classifier" and model.pooling == "attention"
    if not has_attention or model.encoder.kind != "recurrent":
        raise ConfigError(NO_SINGLE_ATTENTION)
    if run.task.data.test is None:
        raise ConfigError("`data.test` is missing: models are compared on it.")


def _claim(out: Path, run: RunConfig) -> None:
    """Make the folder, or go on in one of the same configuration."""
    text = run.toml()
    file = out / CONFIG
    if file.is_file():
        if parse_run(read_toml(file)) != run:
            raise BundleError(f"{out}: holds checks of another configuration. Choose another `--out`.")
        return
    if out.exists() and any(out.iterdir()):
        raise BundleError(f"{out}: already there. Choose another `--out`.")
    out.mkdir(parents=True, exist_ok=True)
    write_whole(file, text.encode())


def _without_context(run: RunConfig) -> tuple[str, ...]:
    """Return settings for a model that reads each word alone: convolutions one word wide, as wide as the classifier."""
    encoder: Any = run.task.model.encoder  # type: ignore[union-attr]
    table = (
        f'{{kind = "convolutional", filter_widths = [1], num_filters = {encoder.hidden_dim}, embedding_dim = '
        f"{encoder.embedding_dim}, dropout = {encoder.dropout}, word_dropout = {encoder.word_dropout}}}"
    )
    return (f"model.encoder={table}",)


def _plans(run: RunConfig, seeds: int) -> list[_Plan]:
    alone = _without_context(run)
    plans = []
    for seed in range(1, seeds + 1):
        own = (f"runtime.seed={seed}",)
        plans += [
            _Plan(f"attention-{seed}", own),
            _Plan(f"uniform-{seed}", (*own, "model.pooling=mean")),
            _Plan(f"words-{seed}", (*own, *alone)),
            _Plan(f"words-uniform-{seed}", (*own, *alone, "model.pooling=mean")),
            _Plan(f"words-guided-{seed}", (*own, *alone), guide=f"attention-{seed}"),
        ]
    return plans


def _classifier(folder: Path) -> Classifies:
    model = load(folder).model
    assert isinstance(model, Classifies)
    only_attention(model)
    return model


def _guiding(out: Path, guide: str | None) -> Adapt:
    return lambda fitting: fitting if guide is None else GuidedFitting(fitting, _classifier(out / guide))


def _opposing(out: Path, weight: float) -> Adapt:
    return lambda fitting: AdversarialFitting(fitting, _classifier(out / "attention-1"), weight)


def _train(run: RunConfig, out: Path, name: str, settings: Sequence[str], adapt: Adapt) -> None:
    """Train in a folder of its own, or go on there; what is finished stays as it is."""
    folder = RunFolder(out / name)
    if (folder.path / FINISHED).exists():
        return
    config = parse_run(apply_settings(run.values(), settings))
    print(f"heedful: {name}: training", file=sys.stderr, flush=True)
    reporter = SilentReporter()
    with folder.lock(RUN_LOCK):
        write_whole(folder.path / CONFIG, config.toml().encode())
        is_begun = Checkpoints(folder.checkpoints).last() is not None
        fitting = adapt(prepare_fitting(config, folder.path, reporter.note, is_begun=is_begun))
        action = resume_training if is_begun else start_training
        outcome = action(fitting, config.training, config.runtime, folder, reporter)
        if outcome.reason == "signal":
            raise TrainingError(f"{out}: stopped. The same command goes on.")
        write_whole(folder.path / FINISHED, b"")


def _measure(
    out: Path, name: str, guide: str | None, test: Sequence[Any], base: Outputs | None
) -> tuple[float, float | None, float | None]:
    """Return a model's score, and how far its outputs and weights are from those of the base."""
    outputs = _outputs(out, name, guide, test)
    return (outputs.score, None, None) if base is None else (outputs.score, *outputs.differ(base))


def _outputs(out: Path, name: str, guide: str | None, test: Sequence[Any]) -> Outputs:
    task: Task = load(out / name).task
    with guided(task, _classifier(out / guide)) if guide else contextlib.nullcontext():
        return read_outputs(task, test)


def _compare(run: RunConfig, out: Path, seeds: int, adversaries: Sequence[float]) -> Explanation:
    test = read_split(run.task.data, "test", Path.cwd())
    base = _outputs(out, "attention-1", None, test)
    trials = []
    for plan in _plans(run, seeds):
        is_base = plan.name == "attention-1"
        trials.append(Trial(plan.name, *_measure(out, plan.name, plan.guide, test, None if is_base else base)))
    for weight in adversaries:
        name = adversary_name(weight)
        trials.append(Trial(name, *_measure(out, name, None, test, base)))
    metric = load(out / "attention-1").task.measure([""], [("",)])[0].name
    return Explanation(metric, len(test), tuple(trials))
