"""Finding the output: greedy, beam and sampling over a step function. This room knows no model."""

from heedful.search.config import (
    AnySearchConfig,
    BeamConfig,
    GreedyConfig,
    LimitsConfig,
    SamplingConfig,
)
from heedful.search.dispatch import search, stream
from heedful.search.hypothesis import Hypothesis
from heedful.search.walk import Symbols

__all__ = [
    "AnySearchConfig",
    "BeamConfig",
    "GreedyConfig",
    "Hypothesis",
    "LimitsConfig",
    "SamplingConfig",
    "Symbols",
    "search",
    "stream",
]
