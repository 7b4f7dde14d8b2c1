"""From token ids to the first hidden states: embedding, scale, positions, dropout (Vaswani et al. 2017, 3.4, 3.5)."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.dropout import Dropout
from heedful.core.symbols import NUM_RESERVED, UNK_ID
from heedful.layers.positions import Positions


class TokenEmbedding(nn.Module):
    """A vector for each symbol.

    Args:
        vocabulary: number of symbols.
        model_dim: width.
        weight: the parameter to share with another embedding or output layer, or None for one of its own.
    """

    def __init__(self, vocabulary: int, model_dim: int, *, weight: nn.Parameter | None = None) -> None:
        super().__init__()
        if weight is None:
            # Standard deviation D^-0.5 gives rows of norm 1, so that a tied output layer starts with logits of order 1;
            # multiplied by sqrt(D) on the way in, the rows have the same size as the positions added to them.
            weight = nn.Parameter(torch.empty(vocabulary, model_dim).normal_(std=model_dim**-0.5))
        self.weight = weight

    def forward(self, ids: Int[Tensor, "*B"]) -> Float[Tensor, "*B D"]:
        """Look the symbols up."""
        return functional.embedding(ids, self.weight)


class InputEmbedding(nn.Module):
    """Scaled token embeddings, with positions added or concatenated, then dropout.

    Concatenated positions are projected back to the model's width together with the tokens, so that the token
    embedding keeps the width that tying it to the output asks for.

    Args:
        tokens: the token embedding.
        positions: vectors as wide as the tokens', or None (no positions, or rotary ones, which live in the attention).
        is_concatenated: concatenate the positions rather than add them.
        dropout: rate on the sum.
        word_dropout: rate at which whole words are read as unknown in training (Bowman et al. 2016, 3.1).
    """

    def __init__(
        self,
        tokens: TokenEmbedding,
        positions: Positions | None,
        *,
        is_concatenated: bool = False,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        model_dim = tokens.weight.shape[1]
        self.tokens = tokens
        self.positions = positions
        self.scale = math.sqrt(model_dim)
        self.projection = None
        if positions is not None and is_concatenated:
            self.projection = nn.Linear(2 * model_dim, model_dim, bias=False)
            nn.init.xavier_uniform_(self.projection.weight)
        self.dropout = Dropout(dropout)
        self.word_dropout = word_dropout

    def forward(self, ids: Int[Tensor, "B T"], *, offset: int = 0) -> Float[Tensor, "B T D"]:
        """Return the first hidden states of symbols whose places count from ``offset``."""
        tokens = self.tokens(self._drop_words(ids))
        places = None if self.positions is None else self.positions(tokens, offset)
        if places is None:
            hidden = tokens * self.scale
        elif self.projection is None:
            hidden = torch.add(places, tokens, alpha=self.scale)
        else:
            hidden = self.projection(torch.cat([tokens * self.scale, places.expand(len(ids), -1, -1)], dim=-1))
        dropped: Tensor = self.dropout(hidden)
        return dropped

    def _drop_words(self, ids: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
        """Replace words by the unknown symbol; reserved symbols carry the row's structure and stay."""
        if not self.training or self.word_dropout == 0.0:
            return ids
        is_dropped = (torch.rand(ids.shape, device=ids.device) < self.word_dropout) & (ids >= NUM_RESERVED)
        return ids.masked_fill(is_dropped, UNK_ID)
