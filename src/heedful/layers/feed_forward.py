"""The position-wise feed-forward layer (Vaswani et al. 2017, 3.3) and its gated variants (Shazeer 2020, 2)."""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.dropout import Dropout

Activation = Literal["relu", "gelu", "glu", "reglu", "geglu", "swiglu"]

_PLAIN: dict[str, Callable[[Tensor], Tensor]] = {"relu": functional.relu, "gelu": functional.gelu}
_GATES: dict[str, Callable[[Tensor], Tensor]] = {
    "glu": torch.sigmoid,
    "reglu": functional.relu,
    "geglu": functional.gelu,
    "swiglu": functional.silu,
}


class FeedForward(nn.Module):
    """``activation(x W1 + b1) W2 + b2``; with a gate ``(gate(x W) * x V) W2``.

    A gated layer has half as many weights again at the same inner width; Shazeer (2020) takes two thirds of the width
    to compare at an equal size.

    Args:
        model_dim: width of the positions.
        inner_dim: width between the two products.
        activation: ``relu``, ``gelu``, or a gated one.
        dropout: rate on the inner positions.
    """

    def __init__(
        self, model_dim: int, inner_dim: int, *, activation: Activation = "relu", dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.is_gated = activation in _GATES
        self.activation = _GATES[activation] if self.is_gated else _PLAIN[activation]
        self.inner = nn.Linear(model_dim, 2 * inner_dim if self.is_gated else inner_dim)
        self.outer = nn.Linear(inner_dim, model_dim)
        self.dropout = Dropout(dropout)
        self._initialize()

    def _initialize(self) -> None:
        # Glorot's bound depends on the fan-out, and a gated layer's gate and value are two matrices in one product.
        for weight in self.inner.weight.chunk(2 if self.is_gated else 1):
            nn.init.xavier_uniform_(weight)
        nn.init.xavier_uniform_(self.outer.weight)
        nn.init.zeros_(self.inner.bias)
        nn.init.zeros_(self.outer.bias)

    @property
    def inner_dim(self) -> int:
        """How many inner units it has now."""
        return self.outer.in_features

    def keep_units(self, units: Sequence[int]) -> None:
        """Remove all inner units but these; the parameters are new ones, so make optimisers afterwards.

        A unit is a row of the inner weight (of a gated layer two, gate and value) and a column of the outer.
        """
        index = torch.as_tensor(list(units), dtype=torch.long, device=self.outer.weight.device)
        rows = torch.cat([index, index + self.inner_dim]) if self.is_gated else index
        self.inner.weight = nn.Parameter(self.inner.weight.detach()[rows])
        self.inner.bias = nn.Parameter(self.inner.bias.detach()[rows])
        self.outer.weight = nn.Parameter(self.outer.weight.detach()[:, index].contiguous())
        self.inner.out_features, self.outer.in_features = len(rows), len(index)

    def forward(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Transform each position by itself."""
        inner = self.inner(hidden)
        if self.is_gated:
            gate, value = inner.chunk(2, dim=-1)
            inner = self.activation(gate) * value
        else:
            inner = self.activation(inner)
        transformed: Tensor = self.outer(self.dropout(inner))
        return transformed
