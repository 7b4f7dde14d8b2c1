"""What tasks have in common whose outputs are compared with what is right: the metrics of the configuration."""

import functools
from collections.abc import Mapping, Sequence

from pydantic import field_validator

from heedful.metrics import AnyMetricConfig, Metric, build_metric
from heedful.tasks.config import TaskConfig
from heedful.tasks.outcome import Measured
from heedful.tasks.task import Task


class ComparingConfig(TaskConfig):
    """Keys of a task whose outputs are compared with what is right.

    Attributes:
        metrics: what is measured, each metric once.
    """

    metrics: tuple[AnyMetricConfig, ...] = ()

    @field_validator("metrics")
    @classmethod
    def _are_distinct(cls, metrics: tuple[AnyMetricConfig, ...]) -> tuple[AnyMetricConfig, ...]:
        names = [each.name for each in metrics]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    f"`metrics` has `{name}` {names.count(name)} times, but scores are told apart by name. Leave one."
                )
        return metrics


class ComparingTask(Task):
    """Measures its outputs by the metrics of its configuration."""

    config: ComparingConfig

    @functools.cached_property
    def metrics(self) -> list[Metric]:
        """The metrics of the configuration."""
        return [build_metric(each) for each in self.config.metrics]

    @property
    def directions(self) -> Mapping[str, bool]:
        """``loss`` and the metrics."""
        return {"loss": False} | {each.name: each.is_higher_better for each in self.metrics}

    def measure(self, predictions: Sequence[str], references: Sequence[tuple[str, ...]]) -> list[Measured]:
        """Compute the metrics on outputs as the user reads them."""
        results = [each.score(list(predictions), list(references)) for each in self.metrics]
        return [Measured(each.name, each.value, each.signature) for each in results]
