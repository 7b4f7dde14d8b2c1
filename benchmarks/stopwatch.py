"""Time alternatives side by side."""

import time
from collections.abc import Callable


def best_ms(
    alternatives: dict[str, Callable[[], object]], *, rounds: int = 15, budget_s: float = 4.0
) -> dict[str, float]:
    """Return the shortest time of each, in milliseconds.

    They take turns, so that what else the machine does meets all of them; the shortest time is the least disturbed.
    """
    for work in alternatives.values():
        work()
    best = dict.fromkeys(alternatives, float("inf"))
    stop = time.perf_counter() + budget_s
    for done in range(rounds):
        if done >= 3 and time.perf_counter() > stop:
            break
        for name, work in alternatives.items():
            begin = time.perf_counter()
            work()
            best[name] = min(best[name], 1e3 * (time.perf_counter() - begin))
    return best
