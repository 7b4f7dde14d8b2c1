"""What a metric is: lines and their references in, one number with its signature out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

References = Sequence[Sequence[str]]
"""The references of each line, at least one; lines may have different numbers of them."""


@dataclass(frozen=True)
class MetricResult:
    """A score that says how it was computed.

    Attributes:
        name: of the metric.
        value: the score; shares and rates are in percent, so that every metric here runs on a scale of 0 to 100
            (error rates can exceed it).
        signature: all options that change the number, for a paper.
        is_higher_better: whether a greater value is the better one.
    """

    name: str
    value: float
    signature: str
    is_higher_better: bool


class Metric(ABC):
    """Compares lines with references. ``name`` is its name in a configuration."""

    name: str
    is_higher_better: bool

    @abstractmethod
    def score(self, hypotheses: Sequence[str], references: References) -> MetricResult:
        """Score all lines together.

        Raises:
            ValueError: there are not as many hypotheses as lists of references, or a list is empty.
        """


def check_pairs(hypotheses: Sequence[str], references: References) -> None:
    """Refuse lines that do not match their references one to one.

    Raises:
        ValueError: there are not as many hypotheses as lists of references, or a list is empty.
    """
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses cannot be compared with references of {len(references)} lines.")
    for line, each in enumerate(references, start=1):
        if not each:
            raise ValueError(f"Line {line} has no reference.")
