"""How quickly models predict, side by side."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedful.search import AnySearchConfig
from heedful.tasks import Task

BATCH_SIZES = (1, 8, 64)
NUM_LINES = {1: 16, 8: 64, 64: 256}
NUM_ROUNDS = 3


@dataclass(frozen=True)
class Speed:
    """Lines a second of one model, by batch size."""

    lines_per_s: dict[int, float]


def measure_speed(tasks: Mapping[str, Task], lines: Sequence[str], num_symbols: int | None) -> dict[str, Speed]:
    """Let models predict the same lines in turn, and take the quickest of some rounds of each.

    Args:
        tasks: by name.
        lines: to be predicted, as many as `NUM_LINES` says or fewer.
        num_symbols: symbols that every output has, so that all models do the same work; None for tasks that write none.
    """
    found: dict[str, dict[int, float]] = {name: {} for name in tasks}
    for size in BATCH_SIZES:
        chosen = [line for line in lines if line.strip()][: NUM_LINES[size]]
        for number in range(NUM_ROUNDS + 1):
            for name, task in tasks.items():
                begun = time.perf_counter()
                for _ in task.predict(chosen, search=_search(task, num_symbols), max_rows=size):
                    pass
                rate = len(chosen) / (time.perf_counter() - begun)
                if number > 0:  # the first round is to warm up
                    found[name][size] = max(found[name].get(size, 0.0), rate)
    return {name: Speed(rates) for name, rates in found.items()}


def _search(task: Task, num_symbols: int | None) -> AnySearchConfig:
    if num_symbols is None:
        return task.search
    limits = {"min_length": num_symbols, "max_length": num_symbols, "max_length_ratio": 0}
    return task.search.model_copy(update=limits)
