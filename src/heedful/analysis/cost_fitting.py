"""Exponents out of measurements: a straight line through logarithms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PowerFit:
    """``y = factor * x ** exponent``, by least squares on the logarithms.

    Attributes:
        exponent: the slope.
        error: standard error of the slope, from how far the points lie off the line; None below three points.
        factor: y at x = 1.
    """

    exponent: float
    error: float | None
    factor: float

    def show(self) -> str:
        """Return the exponent with its error."""
        return f"{self.exponent:.2f}" if self.error is None else f"{self.exponent:.2f} ± {self.error:.2f}"


def fit_power(xs: Sequence[float | int], ys: Sequence[float | int]) -> PowerFit:
    """Fit a power.

    Raises:
        ValueError: fewer than two different x, or a number that is not positive.
    """
    if len(set(xs)) < 2 or min(*xs, *ys) <= 0:
        raise ValueError("A power needs positive numbers at two places or more.")
    across, upward = [math.log(x) for x in xs], [math.log(y) for y in ys]
    middle, level = sum(across) / len(across), sum(upward) / len(upward)
    spread = sum((x - middle) ** 2 for x in across)
    slope = sum((x - middle) * (y - level) for x, y in zip(across, upward, strict=True)) / spread
    missed = sum((y - level - slope * (x - middle)) ** 2 for x, y in zip(across, upward, strict=True))
    error = math.sqrt(missed / (len(xs) - 2) / spread) if len(xs) > 2 else None
    return PowerFit(slope, error, math.exp(level - slope * middle))
