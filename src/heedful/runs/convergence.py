"""Whether a bundle was trained to the end, as far as it and its run tell."""

import math
from pathlib import Path
from typing import Any

from heedful.tasks import Task
from heedful.training import read_history

STILL_RISING = 0.01
"""Relative gain over the last quarter of training from which on it was not at its end."""


def doubt_convergence(path: Path, metric: str, loss: float, task: Task) -> str | None:
    """Return a sentence if the model could have learnt clearly more, else None.

    Args:
        path: of a run, whose history is read, or of a bundle.
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
    validations = [each for each in read_history(path / "history.jsonl") if each["kind"] == "validation"]
    gain = _late_gain(validations, metric)
    if gain is not None and gain > STILL_RISING:
        return (
            f"The model is not trained to the end: its {metric} still changed by {100 * gain:.1f} % over the last "
            "quarter of its training. Heads that look useless now may not be later: train it further first."
        )
    return None


def _late_gain(validations: list[dict[str, Any]], metric: str) -> float | None:
    """Return by which share the score of the last quarter of the updates improved, None where that cannot be told."""
    scored = [(each["step"], each["scores"][metric]) for each in validations if metric in each["scores"]]
    if len(scored) < 3 or not validations[-1]["is_best"]:
        return None
    last_step, last = scored[-1]
    before = [score for step, score in scored if step <= 0.75 * last_step]
    return abs(last - before[-1]) / max(abs(last), 1e-9) if before else None


def _num_choices(task: Task) -> int:
    if task.labels is not None:
        return len(task.labels)
    return task.codec.target_size or 0
