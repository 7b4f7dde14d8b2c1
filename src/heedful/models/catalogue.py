"""All models by kind. A new model is one line here."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from heedful.core.config import Config
from heedful.models.classifier import Classifier, ClassifierConfig
from heedful.models.interfaces import Model, VocabularySizes
from heedful.models.recurrent import RecurrentConfig, RecurrentModel
from heedful.models.recurrent_language_model import RecurrentLanguageModel, RecurrentLanguageModelConfig
from heedful.models.transformer import Transformer, TransformerConfig
from heedful.models.transformer_language_model import TransformerLanguageModel, TransformerLanguageModelConfig

MODELS: dict[str, tuple[type[Config], Callable[[Any, VocabularySizes], Model]]] = {
    "transformer": (TransformerConfig, Transformer),
    "transformer_language_model": (TransformerLanguageModelConfig, TransformerLanguageModel),
    "recurrent": (RecurrentConfig, RecurrentModel),
    "recurrent_language_model": (RecurrentLanguageModelConfig, RecurrentLanguageModel),
    "classifier": (ClassifierConfig, Classifier),
}

AnyModelConfig = Annotated[
    TransformerConfig
    | TransformerLanguageModelConfig
    | RecurrentConfig
    | RecurrentLanguageModelConfig
    | ClassifierConfig,
    Field(discriminator="kind"),
]


def build_model(config: AnyModelConfig, sizes: VocabularySizes) -> Model:
    """Return a fresh model with weights drawn from torch's generator.

    Raises:
        ConfigError: the sizes or the configuration do not fit the kind.
    """
    return MODELS[config.kind][1](config, sizes)
