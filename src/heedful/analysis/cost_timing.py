"""Times that can be believed: warmed up, taken in turns, the median of several."""

import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)

LEAST_ROUNDS = 3


@dataclass(frozen=True)
class Timing:
    """How long something takes.

    Attributes:
        median_s: of all rounds.
        least_s: the least disturbed round.
        largest_s: the most disturbed.
        rounds: how many.
    """

    median_s: float
    least_s: float
    largest_s: float
    rounds: int


def time_in_turns(
    works: Mapping[Name, Callable[[], object]], *, budget_s: float, most_rounds: int = 15
) -> dict[Name, Timing]:
    """Time each work, all once to warm up and then in turns, so that a busy minute of the machine falls on all alike.

    Args:
        works: by name.
        budget_s: no new round begins later, but three are always made.
        most_rounds: that are made.
    """
    stop = time.perf_counter() + budget_s
    for work in works.values():
        work()
    found: dict[Name, list[float]] = {name: [] for name in works}
    for done in range(most_rounds):
        if done >= LEAST_ROUNDS and time.perf_counter() > stop:
            break
        for name, work in works.items():
            begin = time.perf_counter()
            work()
            found[name].append(time.perf_counter() - begin)
    return {name: Timing(statistics.median(times), min(times), max(times), len(times)) for name, times in found.items()}
