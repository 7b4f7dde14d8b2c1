"""Models: what they can do (`interfaces`), what there is (`catalogue`), and how a search steps them (`stepping`)."""

from heedful.models.catalogue import MODELS, AnyModelConfig, build_model
from heedful.models.interfaces import (
    AttentionSite,
    Classifies,
    Generates,
    Memory,
    Model,
    State,
    VocabularySizes,
)
from heedful.models.stepping import make_step_fn

__all__ = [
    "MODELS",
    "AnyModelConfig",
    "AttentionSite",
    "Classifies",
    "Generates",
    "Memory",
    "Model",
    "State",
    "VocabularySizes",
    "build_model",
    "make_step_fn",
]
