"""All metrics by name, and how a configuration lists them, as in ``["bleu", {name = "chrf", lowercase = true}]``."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from heedful.core.config import Config
from heedful.metrics.classification import Accuracy, AccuracyConfig, MacroF1, MacroF1Config
from heedful.metrics.error_rate import ErrorRate, ErrorRateConfig, SequenceError, SequenceErrorConfig
from heedful.metrics.metric import Metric
from heedful.metrics.overlap import Bleu, BleuConfig, Chrf, ChrfConfig, Ter, TerConfig
from heedful.metrics.rouge import Rouge, RougeConfig

METRICS: dict[str, tuple[type[Config], Callable[[Any], Metric]]] = {
    "bleu": (BleuConfig, Bleu),
    "chrf": (ChrfConfig, Chrf),
    "ter": (TerConfig, Ter),
    "rouge1": (RougeConfig, Rouge),
    "rouge2": (RougeConfig, Rouge),
    "rougeL": (RougeConfig, Rouge),
    "wer": (ErrorRateConfig, ErrorRate),
    "cer": (ErrorRateConfig, ErrorRate),
    "per": (ErrorRateConfig, ErrorRate),
    "sequence_error": (SequenceErrorConfig, SequenceError),
    "accuracy": (AccuracyConfig, Accuracy),
    "macro_f1": (MacroF1Config, MacroF1),
}
"""Configuration and class of each metric."""


def _table_of(value: Any) -> Any:
    """Let a plain name stand for the metric with its defaults."""
    return {"name": value} if isinstance(value, str) else value


AnyMetricConfig = Annotated[
    Annotated[
        BleuConfig
        | ChrfConfig
        | TerConfig
        | RougeConfig
        | ErrorRateConfig
        | SequenceErrorConfig
        | AccuracyConfig
        | MacroF1Config,
        Field(discriminator="name"),
    ],
    BeforeValidator(_table_of),
]
"""A metric in a configuration: its name, or a table of its options."""


def build_metric(config: AnyMetricConfig) -> Metric:
    """Return the metric that a configuration describes."""
    return METRICS[config.name][1](config)
