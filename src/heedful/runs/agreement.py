"""How far attention and other accounts of a trained model agree on which symbols mattered, over some lines."""

import itertools
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.analysis.agreement import METHODS, account, explaining_site, line_agreement
from heedful.analysis.answered import Pair
from heedful.analysis.bootstrap import ratio_intervals
from heedful.analysis.reading import read_lines
from heedful.core.errors import ConfigError, DataError
from heedful.runs.loaded import LoadedModel
from heedful.tasks import LanguageModelling, Task
from heedful.text.unread import Unread

POINTS = "*.[vw]*"
"""Weights and values of every attention."""
MAX_LINES = 100


@dataclass(frozen=True)
class Agreed:
    """Kendall's tau of two methods, mean over lines, with its 95 % bootstrap interval over lines."""

    one: str
    other: str
    tau: float
    low: float
    high: float


@dataclass(frozen=True)
class Agreement:
    """How far the methods agree.

    Attributes:
        attention: path of the attention that is compared.
        num_lines: lines that were read.
        num_short: of these, lines that have fewer than three symbols to rank.
        pairs: every two methods.
    """

    attention: str
    num_lines: int
    num_short: int
    pairs: tuple[Agreed, ...]

    def to_values(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values = {"attention": self.attention, "lines": self.num_lines, "short_lines": self.num_short}
        return values | {"pairs": [vars(each) for each in self.pairs]}

    def to_text(self) -> str:
        """Return a triangle of coefficients with their intervals."""
        by_pair = {(each.one, each.other): each for each in self.pairs}
        width = 22
        lines = ["".join(f"{name:>{width}}" for name in ("", *METHODS[:-1]))]
        for place, name in enumerate(METHODS[1:], start=1):
            cells = [by_pair[other, name] for other in METHODS[:place]]
            drawn = (f"{each.tau:.2f} [{each.low:.2f}, {each.high:.2f}]" for each in cells)
            lines.append(f"{name:>{width}}" + "".join(f"{cell:>{width}}" for cell in drawn))
        short = f", {self.num_short} of them too short to rank" if self.num_short else ""
        lines.append(
            f"Kendall's tau-b (1: same order, 0: unrelated), mean over {self.num_lines:,} lines{short}, with 95 % "
            f"intervals; attention: {self.attention}"
        )
        return "\n".join(lines)


def agree(model: LoadedModel, lines: Iterable[str], *, max_lines: int = MAX_LINES) -> Agreement:
    """Rank the symbols of some lines by each method, for every output, and compare.

    Args:
        model: any that attends to what it reads.
        lines: what it reads, or source, tab, target; a target that is not given is the model's own answer.
        max_lines: so many lines that are not blank are read.

    Raises:
        RequestError: the model has no attention from its output to what it reads.
        DataError: no line has three symbols to rank.
        ConfigError: fewer than one line is wished.
    """
    if max_lines < 1:
        raise ConfigError(f"`lines` must be at least 1, but is {max_lines}.")
    task = model.task
    site = explaining_site(task.model)
    pairs = list(_pairs(task, lines, max_lines))
    places = {pair: place for place, pair in enumerate(itertools.combinations(METHODS, 2))}
    unread = Unread()
    found = np.full((len(pairs), len(places)), np.nan)
    is_filled = np.zeros(len(pairs), dtype=bool)
    for reading in read_lines(task, pairs, pattern=POINTS, unread=unread):
        if not ((reading.source_text or "") + reading.target_text).strip():
            continue
        is_filled[reading.line] = True
        with task.inference():
            accounts = account(task.model, reading, task.stack([reading.encoded]))
        for one, other, tau in line_agreement(accounts):
            found[reading.line, places[one, other]] = tau
    found = found[is_filled]
    if told := unread.summary("What was cut is not ranked."):
        print(f"heedful: {told}", file=sys.stderr)
    has_case = ~np.isnan(found)
    if not has_case.any():
        raise DataError("No line has three symbols to rank. Give longer lines.")
    values, counts = np.where(has_case, found, 0.0), has_case.astype(float)
    low, high = ratio_intervals(values, counts)
    means = values.sum(0) / np.maximum(counts.sum(0), 1)
    agreed = (
        Agreed(*pair, float(means[place]), float(low[place]), float(high[place])) for pair, place in places.items()
    )
    return Agreement(site.path, len(found), int((~has_case.any(1)).sum()), tuple(agreed))


def _pairs(task: Task, lines: Iterable[str], max_lines: int) -> Iterator[Pair]:
    """Yield lines until so many are not blank; blank ones too, for lines are told by their numbers."""
    left = max_lines
    for line in lines:
        left -= bool(line.strip())
        source, tab, target = line.partition("\t")
        yield (None, line) if isinstance(task, LanguageModelling) else (source, target if tab else None)
        if not left:
            return
