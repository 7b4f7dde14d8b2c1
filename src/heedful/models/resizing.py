"""A model's configuration with other numbers of heads and inner units, layer by layer."""

from collections.abc import Mapping
from typing import Any, TypeVar

from heedful.core.errors import ConfigError
from heedful.models.catalogue import AnyModelConfig
from heedful.models.classifier import ClassifierConfig
from heedful.models.interfaces import Model
from heedful.models.text_encoders import TransformerTextConfig
from heedful.models.transformer_parts import PerSite, PerStack, TransformerPartsConfig

PartsConfig = TypeVar("PartsConfig", bound=TransformerPartsConfig)


def describe_shape(config: AnyModelConfig, model: Model) -> AnyModelConfig:
    """Return the configuration that a model as it now stands would be built from.

    Args:
        config: what it was built from, before heads and inner units were removed.
        model: as it is now.

    Raises:
        ConfigError: it is of a kind that has no heads to remove.
    """
    match config:
        case ClassifierConfig(encoder=TransformerTextConfig() as encoder):
            return config.model_copy(update={"encoder": _reshaped(encoder, model)})
        case TransformerPartsConfig():
            return _reshaped(config, model)
    raise ConfigError(f"`model.kind` is `{config.kind}`, whose attention has no heads that could be removed.")


def _reshaped(config: PartsConfig, model: Model) -> PartsConfig:
    numbers: dict[str, list[int]] = {}
    widths: dict[str, list[int]] = {}
    for site in model.attention_sites():
        numbers.setdefault(site.kind, []).append(site.num_heads)
        widths.setdefault(site.kind, []).append(site.head_dim)
    inner: dict[str, list[int]] = {}
    for path, block in model.blocks().items():
        inner.setdefault(path.partition(".")[0], []).append(block.feed_forward.inner_dim)
    is_even = len({width for each in inner.values() for width in each}) == 1
    shape = {
        "num_heads": PerSite(**_tuples(numbers)),
        "head_dim": PerSite(**_tuples(widths)),
        "inner_dim": next(iter(inner.values()))[0] if is_even else PerStack(**_tuples(inner)),
    }
    return config.model_copy(update=shape)


def _tuples(lists: Mapping[str, list[int]]) -> dict[str, Any]:
    """Return the lists of the kinds that a Transformer's configuration knows."""
    return {kind: tuple(each) for kind, each in lists.items() if kind in PerSite.model_fields}
