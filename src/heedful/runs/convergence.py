"""Whether a bundle was trained to the end, as far as it and its run tell."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heedful.tasks import Task, amend_bundle, find_bundle, open_bundle
from heedful.tasks.bundle import METRICS
from heedful.training import RunFolder, read_history

STILL_RISING = 0.01
"""Relative gain over the last quarter of training from which on it was not at its end."""

LATE_GAINS = "late_gains"
"""In a bundle's ``metrics.json``: by which share each score changed over the last quarter of training."""


def doubt_convergence(path: Path, metric: str, loss: float, task: Task) -> str | None:
    """Return a sentence if the model could have learnt clearly more, else None.

    Args:
        path: of a run or bundle. The history of the bundle's run is read; of a bundle without its run, what was noted
            in it when training ended.
        metric: the score that counts.
        loss: held out, in nats per target.
        task: with the model.
    """
    num_choices = _num_choices(task)
    if num_choices > 1 and loss > 0.9 * math.log(num_choices):
        return (
            f"The model has hardly learnt anything: its held-out loss of {loss:.2f} nats is about that of guessing. "
            "What its heads are worth cannot be told. Train it first."
        )
    gain = _known_gains(path).get(metric)
    if gain is not None and gain > STILL_RISING:
        return (
            f"The model is not trained to the end: its {metric} still changed by {100 * gain:.1f} % over the last "
            "quarter of its training. Heads that look useless now may not be later: train it further first."
        )
    return None


def note_late_gains(run: RunFolder) -> None:
    """Note in a run's bundle by how much its scores changed at the end, so that a copy of it tells that too.

    Raises:
        BundleError: the bundle is damaged or cannot be written.
    """
    if not run.bundle.is_dir():
        return
    bundle = open_bundle(run.bundle)
    metrics = {**bundle.metrics(), LATE_GAINS: late_gains(read_history(run.history))}
    if metrics != bundle.metrics():
        amend_bundle(bundle, {METRICS: (json.dumps(metrics, indent=2, ensure_ascii=False) + "\n").encode()})


def late_gains(history: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return by which share each score changed over the last quarter of the updates.

    Empty where that cannot be told: of fewer than three validations, or where the last one was not the best, so that
    the model had stopped to improve.
    """
    validations = [each for each in history if each["kind"] == "validation"]
    if len(validations) < 3 or not validations[-1]["is_best"]:
        return {}
    last_step, last = validations[-1]["step"], validations[-1]["scores"]
    before = [each["scores"] for each in validations if each["step"] <= 0.75 * last_step]
    if not before:
        return {}
    return {
        name: abs(last[name] - before[-1][name]) / max(abs(last[name]), 1e-9) for name in last if name in before[-1]
    }


def _known_gains(path: Path) -> dict[str, float]:
    """Return the late gains of a run's bundle, by its history where that is there."""
    place = find_bundle(path).resolve()
    run = RunFolder(place.parent)
    if place == run.bundle and run.history.is_file():
        return late_gains(read_history(run.history))
    gains = open_bundle(place).metrics().get(LATE_GAINS)
    return gains if isinstance(gains, dict) else {}


def _num_choices(task: Task) -> int:
    if task.labels is not None:
        return len(task.labels)
    return task.codec.target_size or 0
