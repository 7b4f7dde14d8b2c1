"""Whether a model has a place for every symbol that its task lets it read and write."""

from collections.abc import Iterator
from typing import Any

from heedful.attention.scores import LocationScoreConfig
from heedful.core.errors import ConfigError
from heedful.layers.positions import LearnedPositionsConfig
from heedful.tasks.config import TaskConfig
from heedful.tasks.language_modelling import LanguageModellingConfig


def check_places(config: TaskConfig) -> None:
    """See, before anything is trained, that learned positions reach as far as the longest texts.

    Raises:
        ConfigError: they do not.
    """
    for key, room in _rooms(config.model):
        for limit, needed in _lengths(config, is_source_alone=key != "model.positions"):
            if needed > room:
                raise ConfigError(
                    f"`{key}.max_positions` is {room}, but with `{limit}` a text may have {needed} positions. Set it "
                    f"to {needed}, or lower `{limit}`."
                )


def _rooms(model: Any) -> Iterator[tuple[str, int]]:
    """Yield the tables of a model that have room for so many positions."""
    encoder = getattr(model, "encoder", None)
    for key, part, kind in (
        ("model.positions", getattr(model, "positions", None), LearnedPositionsConfig),
        ("model.encoder.positions", getattr(encoder, "positions", None), LearnedPositionsConfig),
        ("model.attention", getattr(model, "attention", None), LocationScoreConfig),
    ):
        if isinstance(part, kind):
            yield key, part.max_positions


def _lengths(config: TaskConfig, *, is_source_alone: bool) -> Iterator[tuple[str, int]]:
    """Yield what lets texts be long, with the positions of the longest, EOS or BOS included."""
    if not isinstance(config, LanguageModellingConfig):
        yield "text.max_source_length", config.text.max_source_length + 1
    if is_source_alone:
        return
    if isinstance(config, LanguageModellingConfig) and config.is_stream:
        yield "context", config.context
    else:
        yield "text.max_target_length", config.text.max_target_length + 1
    for place, search in (("search", getattr(config, "search", None)), ("validation.search", config.validation.search)):
        if search is not None:
            yield f"{place}.max_length", search.max_length + 1
