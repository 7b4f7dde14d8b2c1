"""What pruning a bundle takes, decided before anything is written: how many heads, which data, how the time is used."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heedful.core.config import apply_settings, read_toml
from heedful.core.errors import BundleError, ConfigError, did_you_mean
from heedful.data.prepare import file_digest, located_paths
from heedful.pruning import KINDS, METHODS, Candidate, Heads
from heedful.pruning.gated_fitting import NUM_HEADS
from heedful.runs.config import RunConfig, anchor_paths, parse_run
from heedful.runs.recipes import find_recipe
from heedful.tasks import Bundle, WritingTask, task_class
from heedful.training.config import TrainingConfig
from heedful.training.schedule import AnySchedule

SELECTION_SHARE = 0.3
"""Share of the time in which heads are chosen; the rest is fine-tuning."""

RATE_SHARE = 0.5
"""Of the highest learning rate that the bundle was trained with. What is left has to learn anew what the others did, so
that more is gained by a high rate than it undoes, unless the time is very short. A bundle that came from another was
already trained at such a rate, and goes on at it."""

TEACHER_SHARE = 0.7
"""Of the training loss that compares with the whole model, where that writes text."""

DROPOUT_SHARE = 0.5
"""Of the rates of dropout that the bundle was trained with: a smaller model fits the data less closely of itself, the
more so with a teacher. A bundle that came from another keeps its rates."""

DROPOUT = "dropout"
"""How the names of its rates end."""

WARMUP_STEPS = 30
NUM_CHECKS = 12
"""Validations while heads are removed until too much score is lost."""

MOST_TRIES = 3
"""How often is fine-tuned, with more heads each time, before a largest loss is given up."""

DEFAULT_MINUTES = 20.0


@dataclass(frozen=True)
class Wish:
    """What the user asked for; exactly one of the first three.

    Attributes:
        keep: heads that stay.
        keep_fraction: share of the heads that stay.
        max_loss: points of ``training.metric`` that may be lost for as few heads as possible.
        kinds: of attention whose heads are meant.
        method: how they are chosen.
        inner_fraction: share of the feed-forward layers' inner units that stays; None cuts none.
        max_minutes: of choosing heads and fine-tuning in all.
        max_steps: updates in all, instead of minutes.
    """

    keep: int | None = None
    keep_fraction: float | None = None
    max_loss: float | None = None
    kinds: tuple[str, ...] = KINDS
    method: str = "gates"
    inner_fraction: float | None = None
    max_minutes: float | None = None
    max_steps: int | None = None

    def check(self) -> None:
        """See that this can be asked of some model.

        Raises:
            ConfigError: it cannot.
        """
        if sum(each is not None for each in (self.keep, self.keep_fraction, self.max_loss)) != 1:
            raise ConfigError("Say how far to prune with exactly one of `--keep`, `--keep-fraction` and `--max-loss`.")
        for name, value in (("--keep", self.keep), ("--max-loss", self.max_loss)):
            if value is not None and not 0 <= value < math.inf:
                raise ConfigError(f"`{name}` must be at least 0 and finite, but is {value:g}.")
        if self.keep_fraction is not None and not 0 <= self.keep_fraction <= 1:
            raise ConfigError(f"`--keep-fraction` must be between 0 and 1, but is {self.keep_fraction:g}. Try 0.5.")
        if self.inner_fraction is not None and not 0 < self.inner_fraction <= 1:
            raise ConfigError(f"`--inner-fraction` must be above 0 and at most 1, but is {self.inner_fraction:g}.")
        if self.method not in METHODS:
            raise ConfigError(f"`--method` is `{self.method}`. {did_you_mean(self.method, METHODS)}")
        if not self.kinds:
            raise ConfigError(f"`--kinds` names none. {did_you_mean('', KINDS)}")
        for limit, number in (("--max-minutes", self.max_minutes), ("--max-steps", self.max_steps)):
            if number is not None and not 0 < number < math.inf:
                raise ConfigError(f"`{limit}` must be above 0 and finite, but is {number:g}.")
        if self.max_steps == 1:
            raise ConfigError("`--max-steps` must be at least 2: heads are chosen first, then what is left is tuned.")
        if self.max_minutes is not None and self.max_steps is not None:
            raise ConfigError("`--max-minutes` and `--max-steps` exclude each other. Give one of them.")

    def num_heads(self, heads: Heads) -> int | None:
        """Return how many heads stay; None where the score decides.

        Raises:
            ConfigError: more than there are, or there are none.
        """
        if not len(heads):
            raise ConfigError(f"The model has no heads of the kinds {', '.join(self.kinds)} left to remove.")
        if self.max_loss is not None:
            return None
        wanted = self.keep if self.keep is not None else round((self.keep_fraction or 0.0) * len(heads))
        if wanted > len(heads):
            raise ConfigError(
                f"`--keep` is {wanted}, but the model has {len(heads)} heads of the kinds {', '.join(self.kinds)}. "
                f"Try `--keep {len(heads) // 2}`."
            )
        return wanted

    def limits(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the limits of choosing heads and of fine-tuning; both together are what was asked for."""
        if self.max_steps is not None:
            steps = min(max(1, round(SELECTION_SHARE * self.max_steps)), self.max_steps - 1)
            return {"max_steps": steps}, {"max_steps": self.max_steps - steps}
        minutes = self.max_minutes or DEFAULT_MINUTES
        return {"max_minutes": SELECTION_SHARE * minutes}, {"max_minutes": (1 - SELECTION_SHARE) * minutes}


@dataclass(frozen=True)
class Plan:
    """How a bundle is pruned.

    Attributes:
        wish: what for.
        selection: configuration of the part of training in which heads are chosen.
        tuning: of the part after it, with all of its time; its model is still the whole one.
        scratch: of the run that trained the bundle, to be made again with the smaller model; None for a bundle that
            came from another, for it does not say how its first weights were trained.
        rate: highest learning rate of weights while heads are chosen.
        metric: the score that counts.
    """

    wish: Wish
    selection: RunConfig
    tuning: RunConfig
    scratch: RunConfig | None
    rate: float
    metric: str

    def check_metric(self, measured: Iterable[str]) -> None:
        """See that the score that counts is measured.

        Raises:
            ConfigError: it is not.
        """
        if self.metric not in measured:
            raise ConfigError(
                f"`training.metric` is `{self.metric}`, which is not measured. {did_you_mean(self.metric, measured)}"
            )


def make_plan(wish: Wish, bundle: Bundle, data: str | None, settings: tuple[str, ...]) -> Plan:
    """Return how a bundle is pruned.

    Args:
        wish: what for.
        bundle: verified.
        data: a recipe's name or a file whose table ``[data]`` is used instead of the bundle's.
        settings: ``key=value`` on top of the configuration of both parts of training.

    Raises:
        ConfigError: something does not fit.
        BundleError: the data are not those the bundle was trained on.
    """
    values = anchor_paths({**bundle.config(), "init_from": str(bundle.path)}, Path.cwd())
    if data is not None:
        values["data"] = read_data_table(data)
    own = parse_run(values)
    is_first = bundle.config().get("init_from") is None
    values["model"] = scale_dropout(values["model"], DROPOUT_SHARE if is_first else 1.0)
    values.pop("teacher", None)
    if issubclass(task_class(own.task), WritingTask):
        values["teacher"] = {"path": str(bundle.path.absolute()), "share": TEACHER_SHARE}
    metric = _with_settings(values, settings).training.metric
    if data is None:
        check_data(own, bundle)
    rate = highest_rate(own.training.schedule) * (RATE_SHARE if is_first else 1.0)
    warmup = {"warmup_steps": WARMUP_STEPS, "peak": rate}
    to_select, to_tune = wish.limits()
    selection = {
        **to_select,
        **(_pause(to_select, NUM_CHECKS) if wish.max_loss is not None else {"validate_every": 2**31}),
        "metric": metric,
        "schedule": {"kind": "constant", **warmup},
        "guard": {"explosion_factor": 1000.0},  # the loss is meant to rise while heads close
        "has_tensorboard": False,
    }
    tuning = {**to_tune, **_pause(to_tune, 4), "metric": metric, "schedule": {"kind": "cosine", **warmup}}
    first, second = (_with_training(values, own.training, changes, settings) for changes in (selection, tuning))
    if wish.max_loss is not None:  # whatever the score is called, the fewest heads that keep it are the best
        first = replace(first, training=first.training.model_copy(update={"metric": NUM_HEADS}))
    scratch = replace(own, init_from=None, runtime=second.runtime) if is_first else None
    return Plan(wish, first, second, scratch, highest_rate(first.training.schedule), metric)


def _with_training(
    values: dict[str, Any], training: TrainingConfig, changes: dict[str, Any], settings: tuple[str, ...]
) -> RunConfig:
    kept = ("optimizer", "accumulate", "update_tokens", "clip_norm", "log_every", "timeout_minutes")
    table = {**training.model_dump(mode="json", include=set(kept), exclude_none=True), **changes}
    return _with_settings({**values, "training": table}, settings)


def _with_settings(values: dict[str, Any], settings: tuple[str, ...]) -> RunConfig:
    """Return a configuration with the user's settings, of which one may take the place of another key."""
    table = dict(values.get("training", {}))
    for wanted, other in (("validate_every", "validate_minutes"), ("validate_minutes", "validate_every")):
        if any(each.startswith(f"training.{wanted}=") for each in settings):
            table.pop(other, None)
    return parse_run(apply_settings({**values, "training": table}, settings))


def scale_dropout(model: Any, factor: float) -> Any:
    """Return the values of a model, or of a part of one, with every rate of dropout multiplied by the factor."""
    if not isinstance(model, Mapping):
        return model
    return {
        key: each * factor if key.endswith(DROPOUT) and isinstance(each, int | float) else scale_dropout(each, factor)
        for key, each in model.items()
    }


def take_dropout(model: Any, other: Any) -> Any:
    """Return the values of a model, or of a part of one, with the rates of dropout of another."""
    if not isinstance(model, Mapping) or not isinstance(other, Mapping):
        return model
    return {
        key: other.get(key, each) if key.endswith(DROPOUT) else take_dropout(each, other.get(key))
        for key, each in model.items()
    }


def _pause(limits: dict[str, Any], number: int) -> dict[str, Any]:
    """Return how often is validated to make so many validations."""
    if "max_steps" in limits:
        return {"validate_every": max(1, limits["max_steps"] // number)}
    return {"validate_minutes": limits["max_minutes"] / number}


def share_tuning(tuning: RunConfig, candidates: Sequence[Candidate]) -> list[tuple[Candidate, RunConfig]]:
    """Return what is fine-tuned in turn until one is good enough, each with its part of the time.

    Where a largest loss decides, the smallest candidate may turn out to lose too much, and the time is to be left for
    others: each takes half of what is there, the last one all that is left, so that together they take no more than a
    single one would. The smallest is the first and has the most time, for that is what is wanted; the last one has the
    most heads of all, so that nothing that could be kept is given up untried; if there is a third, it lies in the
    middle. Time that is not needed is not used.

    Args:
        tuning: with all of the time.
        candidates: the one with the fewest heads first.
    """
    steps, minutes = tuning.training.max_steps, tuning.training.max_minutes
    number = min(MOST_TRIES, len(candidates), steps or MOST_TRIES)
    last = len(candidates) - 1
    places = [last] if number == 1 else [round(each * last / (number - 1)) for each in range(number)]
    shared = []
    for later, place in zip(reversed(range(number)), places, strict=True):
        part: dict[str, Any] = {}
        if steps is not None:
            part["max_steps"] = min(-(-steps // 2), steps - later) if later else steps
            steps -= part["max_steps"]
        if minutes is not None:
            part["max_minutes"] = minutes / 2 if later else minutes
            minutes -= part["max_minutes"]
        shared.append((candidates[place], replace(tuning, training=_within(tuning.training, part))))
    return shared


def _within(training: TrainingConfig, limits: dict[str, Any]) -> TrainingConfig:
    """Return the configuration with smaller limits, and validations that are as many."""
    changes = dict(limits)
    share = min((limit / getattr(training, name) for name, limit in limits.items()), default=1.0)
    if training.validate_every is not None:
        changes["validate_every"] = max(1, round(share * training.validate_every))
    if training.validate_minutes is not None:
        changes["validate_minutes"] = share * training.validate_minutes
    return training.model_copy(update=changes)


def highest_rate(schedule: AnySchedule) -> float:
    """Return the learning rate at the end of the warm-up, where every schedule has its highest."""
    return schedule.rate(max(schedule.warmup_steps, 1) - 1, 0.0)


def read_data_table(source: str) -> dict[str, Any]:
    """Return the table ``[data]`` of a recipe or file, with absolute paths.

    Raises:
        ConfigError: no such recipe or file, or it has no such table.
    """
    path = Path(source) if source.endswith(".toml") or Path(source).is_file() else find_recipe(source)
    values = anchor_paths(read_toml(path), path.parent)
    if not isinstance(values.get("data"), dict):
        raise ConfigError(f"{path}: the table `[data]` is missing, which `--data` is to give.")
    table: dict[str, Any] = values["data"]
    return table


def check_data(config: RunConfig, bundle: Bundle) -> None:
    """See that the data files are those that the bundle was trained on.

    Raises:
        BundleError: one of the same name as one of those is another.
        DataError: one cannot be read.
    """
    known: dict[str, set[str]] = {}
    for name, digest in map(_name_and_digest, bundle.metrics().get("data", [])):
        known.setdefault(name, set()).add(digest)
    for path in located_paths(config.task.data, Path.cwd()):
        digests = known.get(Path(path).name)
        if digests is not None and file_digest(path) not in digests:
            raise BundleError(
                f"{path}: not the file that the bundle was trained on (its sha256 is another). Bring that file back, "
                "or name other data with `--data RECIPE`."
            )


def _name_and_digest(text: str) -> tuple[str, str]:
    found = re.fullmatch(r"(.*) \(sha256 (\w+)\)", text)
    return (found[1], found[2]) if found else (text, "")
