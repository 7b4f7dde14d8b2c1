"""How far a figure would move with other sentences: percentile intervals of the bootstrap over sentences."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

RESAMPLES = 1000
COVERAGE = 0.95
SEED = 1
_COLUMNS = 2048


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % bootstrap interval over sentences."""

    value: float
    low: float
    high: float


def ratio_intervals(
    numerators: Float[np.ndarray, "N X"],
    denominators: Float[np.ndarray, "N X"],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Float[np.ndarray, " X"], Float[np.ndarray, " X"]]:
    """Return the ends of the 95 % interval of each ``sum of numerators / sum of denominators`` (Efron 1979).

    Whole sentences are drawn, for the words of one are alike: that is what makes such intervals wide enough. All ratios
    see the same draws. A ratio without any case gives NaN.

    Args:
        numerators: for each sentence and figure, e.g. hits.
        denominators: likewise, e.g. cases.
        resamples: how often as many sentences are drawn again, with replacement.
        seed: of the draws.
    """
    num_sentences, num_figures = numerators.shape
    low, high = np.full(num_figures, np.nan), np.full(num_figures, np.nan)
    if num_sentences == 0:
        return low, high
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(num_sentences, np.full(num_sentences, 1 / num_sentences), size=resamples)
    draws = drawn.astype(np.float32)
    tails = [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]
    for begin in range(0, num_figures, _COLUMNS):
        part = slice(begin, begin + _COLUMNS)
        below = draws @ denominators[:, part].astype(np.float32)
        above = draws @ numerators[:, part].astype(np.float32)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = above / below
        low[part], high[part] = _quantiles(ratios, tails)
    return low, high


def _quantiles(ratios: np.ndarray, tails: list[float]) -> np.ndarray:
    """Return quantiles of each column over the draws that had a case; NaN where none had."""
    has_case = np.isfinite(ratios).any(axis=0)
    found = np.full((len(tails), ratios.shape[1]), np.nan)
    if has_case.any():
        filled = ratios[:, has_case]
        quantile = np.quantile if np.isfinite(filled).all() else np.nanquantile
        found[:, has_case] = quantile(filled, tails, axis=0)
    return found
