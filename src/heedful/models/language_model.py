"""What language models have in common: there is no source, so that their memory holds the number of rows alone."""

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from heedful.attention.tap import Gates, Tap
from heedful.core.errors import ConfigError
from heedful.core.types import Batch
from heedful.layers.embedding import TokenEmbedding
from heedful.models.interfaces import Generates, Memory, StateType, VocabularySizes


@dataclass(frozen=True, kw_only=True)
class RowsMemory(Memory):
    """No source at all.

    Attributes:
        rows: any number for each row; what counts is how many there are.
    """

    rows: Int[Tensor, " B"]


class LanguageModel(Generates[RowsMemory, StateType]):
    """A model that reads and continues one text."""

    def encode(self, batch: Batch, *, tap: Tap | None = None, gates: Gates | None = None) -> RowsMemory:
        """Count the rows."""
        return RowsMemory(rows=batch.lines)


def build_tokens(kind: str, sizes: VocabularySizes, dim: int) -> TokenEmbedding:
    """Return a fresh embedding of width ``dim`` for the text's symbols.

    Raises:
        ConfigError: there is no target vocabulary; the message names the model's kind.
    """
    if sizes.target is None:
        raise ConfigError(f"`model.kind` is `{kind}`, which needs a target vocabulary.")
    return TokenEmbedding(sizes.target, dim)
