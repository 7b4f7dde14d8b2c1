"""Which of a model's tables of symbols are one: source embedding, target embedding, output (Press and Wolf 2017)."""

from typing import Literal, NamedTuple

from torch import nn

from heedful.core.errors import ConfigError
from heedful.layers.embedding import TokenEmbedding
from heedful.models.interfaces import VocabularySizes

Tying = Literal["none", "target", "all"]
"""``all``: the three are one matrix, for which the vocabularies must be joint. ``target``: target embedding and output
are one. ``none``: each is its own."""


class SymbolTables(NamedTuple):
    """The embeddings of an encoder-decoder.

    Attributes:
        source: embedding of source symbols.
        target: embedding of target symbols.
        output_weight: what the output layer shares, or None.
    """

    source: TokenEmbedding
    target: TokenEmbedding
    output_weight: nn.Parameter | None


def build_symbol_tables(kind: str, tying: Tying, sizes: VocabularySizes, dim: int) -> SymbolTables:
    """Return fresh embeddings of width ``dim`` for both sides.

    Args:
        kind: of the model, for messages.
        tying: what is shared.
        sizes: of the vocabularies.
        dim: width of the embeddings.

    Raises:
        ConfigError: a side is missing, or all are to be one although the vocabularies are not.
    """
    if sizes.source is None or sizes.target is None:
        raise ConfigError(f"`model.kind` is `{kind}`, which needs a source and a target vocabulary.")
    if tying == "all" and not sizes.is_shared:
        raise ConfigError(
            "`model.tied_embeddings` is `all`, but source and target have vocabularies of their own. "
            "Try `text.is_joint=true`, or `model.tied_embeddings=target`."
        )
    target = TokenEmbedding(sizes.target, dim)
    source = TokenEmbedding(sizes.source, dim, weight=target.weight if tying == "all" else None)
    return SymbolTables(source, target, None if tying == "none" else target.weight)
