"""Everything that is looked at in one table of positions."""

from dataclasses import asdict, dataclass
from typing import Any

from heedful.analysis.positions_counter import bit_shares, change_shares, pairs_like_bits, wavelengths
from heedful.analysis.positions_order import OrderEffect, order_effects
from heedful.analysis.positions_probe import Probe, ProbeScores, probe
from heedful.analysis.positions_rotation import StepCheck, check_step, pair_turn
from heedful.analysis.positions_similarity import DistanceSimilarity, by_distance
from heedful.analysis.positions_table import PositionTable
from heedful.core.errors import ConfigError

COUNTER_LENGTH = 32
"""The counter is drawn up to here."""


@dataclass(frozen=True)
class Turning:
    """The matrix that carries every position some steps on.

    Attributes:
        steps: for which M_k is shown.
        checks: for several steps, the largest error at any position.
    """

    steps: int
    checks: list[StepCheck]


@dataclass(frozen=True)
class Counter:
    """Dimensions beside bits.

    Attributes:
        pairs: for each bit, the pair of the nearest wavelength.
        pair_wavelengths: of every pair, in positions.
        pair_shares: of every pair in the squared change from one position to the next.
        bit_shares: of every bit in the changes of a counter.
    """

    pairs: list[int]
    pair_wavelengths: list[float]
    pair_shares: list[float]
    bit_shares: list[float]


@dataclass(frozen=True, eq=False)
class PositionsReport:
    """What was found.

    Attributes:
        table: what was looked at.
        similarity: by distance.
        turning: None for a learned table, which has no such matrix.
        counter: likewise.
        probe: None where there are too few positions.
        order: what an encoder makes of two sentences with the same words, by kind of positions.
    """

    table: PositionTable
    similarity: list[DistanceSimilarity]
    turning: Turning | None
    counter: Counter | None
    probe: Probe | None
    order: list[OrderEffect]

    def to_values(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        table = self.table
        values: dict[str, Any] = {
            "name": table.name,
            "kind": table.kind,
            "positions": table.rows.shape[0],
            "width": table.rows.shape[1],
            "frequencies": None if table.frequencies is None else table.frequencies.tolist(),
            "similarity": [asdict(each) for each in self.similarity],
            "turning": None,
            "counter": None if self.counter is None else asdict(self.counter),
            "probe": None,
            "order": [asdict(each) for each in self.order],
        }
        if self.turning is not None:
            blocks = [pair_turn(table, pair, self.turning.steps).tolist() for pair in range(table.rows.shape[1] // 2)]
            values["turning"] = {**asdict(self.turning), "blocks": blocks}
        if self.probe is not None:
            values["probe"] = {
                "table": _probe_values(self.probe.scores),
                "random": _probe_values(self.probe.random),
                "chance": {"position_error": self.probe.chance_error, "order_accuracy": self.probe.chance_accuracy},
            }
        return values


def _probe_values(scores: ProbeScores) -> dict[str, float | None]:
    return {
        "position_error": scores.position_error,
        "position_r2": scores.position_r2,
        "order_accuracy": scores.order_accuracy,
        "near_accuracy": scores.near_accuracy if scores.near_accuracy == scores.near_accuracy else None,
    }


def look_at(table: PositionTable, *, steps: int = 5, seed: int = 1) -> PositionsReport:
    """Look at a table of positions from all sides.

    Args:
        table: of two positions or more.
        steps: k of the matrix M_k that is shown; as many further ones are checked as fit.
        seed: of the probe's folds, the random table beside it and the encoder that reads two sentences.

    Raises:
        ConfigError: fewer than 2 positions, or no position has another that many steps on.
    """
    length = len(table.rows)
    if length < 2:
        raise ConfigError("One position alone shows nothing. Try `--length 2` or more.")
    if not 1 <= steps < length:
        raise ConfigError(f"`--step` must be from 1 to {length - 1}, for there are {length} positions, but is {steps}.")
    turning = counter = None
    if table.frequencies is not None:
        tried = sorted({1, steps, length // 2, length - 1})
        turning = Turning(steps, [check_step(table, each) for each in tried])
        num_bits = max(1, (min(length, COUNTER_LENGTH) - 1).bit_length())
        counter = Counter(
            pairs_like_bits(table, num_bits),
            wavelengths(table).tolist(),
            change_shares(table).tolist(),
            bit_shares(num_bits),
        )
    return PositionsReport(
        table, by_distance(table.rows), turning, counter, probe(table.rows, seed=seed), order_effects(seed=seed)
    )
