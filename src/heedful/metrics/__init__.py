"""Strings (or summed log-likelihoods) in, numbers out, each with a signature. Loads no torch."""

from heedful.metrics.catalogue import METRICS, AnyMetricConfig, build_metric
from heedful.metrics.edit_distance import edit_distance
from heedful.metrics.metric import Metric, MetricResult
from heedful.metrics.perplexity import Perplexity, perplexity

__all__ = [
    "METRICS",
    "AnyMetricConfig",
    "Metric",
    "MetricResult",
    "Perplexity",
    "build_metric",
    "edit_distance",
    "perplexity",
]
