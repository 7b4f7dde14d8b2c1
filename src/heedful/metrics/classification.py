"""Metrics of labels: accuracy and macro-averaged F1."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from heedful.core.config import Config
from heedful.metrics.metric import Metric, MetricResult, References, check_pairs


class AccuracyConfig(Config):
    """Share of right labels."""

    name: Literal["accuracy"] = "accuracy"


class MacroF1Config(Config):
    """Mean over the labels of each label's F1."""

    name: Literal["macro_f1"] = "macro_f1"


class Accuracy(Metric):
    """Lines whose label is among their references, in percent."""

    name = "accuracy"
    is_higher_better = True

    def __init__(self, config: AccuracyConfig) -> None:
        self.config = config

    def score(self, hypotheses: Sequence[str], references: References) -> MetricResult:
        """Score all lines together."""
        check_pairs(hypotheses, references)
        right = sum(label in known for label, known in zip(hypotheses, references, strict=True))
        return MetricResult(self.name, 100 * right / max(len(hypotheses), 1), "heedful|accuracy", self.is_higher_better)


class MacroF1(Metric):
    """F1 of each label that is said or meant anywhere, averaged without weights, in percent.

    A line with several references counts as meant the way it was said where that is among them, else as its first.
    """

    name = "macro_f1"
    is_higher_better = True

    def __init__(self, config: MacroF1Config) -> None:
        self.config = config

    def score(self, hypotheses: Sequence[str], references: References) -> MetricResult:
        """Score all lines together."""
        check_pairs(hypotheses, references)
        pairs = zip(hypotheses, references, strict=True)
        meant = [label if label in known else known[0] for label, known in pairs]
        right = Counter(said for said, true in zip(hypotheses, meant, strict=True) if said == true)
        total = Counter(hypotheses) + Counter(meant)
        scores = [2 * right[label] / total[label] for label in total]
        value = 100 * sum(scores) / max(len(scores), 1)
        return MetricResult(self.name, value, "heedful|macro_f1|labels:said_or_meant", self.is_higher_better)
