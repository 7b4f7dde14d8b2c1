"""From a vector for each position to one for the whole row."""

from abc import ABC, abstractmethod
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention.masks import AttentionMask
from heedful.attention.tap import Gates, ScopedTap
from heedful.attention.weights import masked_softmax


class Pooling(nn.Module, ABC):
    """Makes one vector of a row's real positions; zeros where there are none.

    Attributes:
        num_heads: 1 where it attends, so that taps and gates find it, else 0.
    """

    num_heads = 0

    @abstractmethod
    def forward(
        self,
        values_BSD: Float[Tensor, "B S D"],
        keep_BS: Bool[Tensor, "B S"],
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B D"]:
        """Return one vector for each row."""


class MeanPooling(Pooling):
    """The mean over the real positions."""

    def forward(
        self,
        values_BSD: Float[Tensor, "B S D"],
        keep_BS: Bool[Tensor, "B S"],
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B D"]:
        share_BS = keep_BS / keep_BS.sum(dim=1, keepdim=True).clamp(min=1)
        return (share_BS.to(values_BSD.dtype)[:, None] @ values_BSD).squeeze(1)


class MaxPooling(Pooling):
    """The largest value of each feature over the real positions ("max-over-time", Collobert et al. 2011)."""

    def forward(
        self,
        values_BSD: Float[Tensor, "B S D"],
        keep_BS: Bool[Tensor, "B S"],
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B D"]:
        lowest = torch.finfo(values_BSD.dtype).min
        highest_BD = values_BSD.masked_fill(~keep_BS[:, :, None], lowest).amax(dim=1)
        return highest_BD.masked_fill(~keep_BS.any(dim=1, keepdim=True), 0.0)


class FirstPooling(Pooling):
    """What stands at the first position."""

    def forward(
        self,
        values_BSD: Float[Tensor, "B S D"],
        keep_BS: Bool[Tensor, "B S"],
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B D"]:
        return values_BSD[:, 0] * keep_BS[:, :1]


class AttentionPooling(Pooling):
    """A mean whose weights are learned: ``softmax(v . tanh(W h + b))`` (Yang et al. 2016, equations 5 to 7).

    Taps see ``value`` (``B 1 S D``), ``scores`` and ``weights`` (``B 1 1 S``) and ``context`` (``B 1 1 D``).

    Args:
        dim: width of the vectors.
    """

    num_heads = 1

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.inner = nn.Linear(dim, dim)
        self.vector = nn.Parameter(torch.empty(dim).normal_(std=dim**-0.5))

    def forward(
        self,
        values_BSD: Float[Tensor, "B S D"],
        keep_BS: Bool[Tensor, "B S"],
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B D"]:
        scores_B11S = (torch.tanh(self.inner(values_BSD)) @ self.vector)[:, None, None]
        scores_B11S = scores_B11S if tap is None else tap.visit("scores", scores_B11S)
        weights_B11S = masked_softmax(scores_B11S, AttentionMask.padding(keep_BS))
        weights_B11S = weights_B11S if tap is None else tap.visit("weights", weights_B11S)
        values_B1SD = values_BSD[:, None] if tap is None else tap.visit("value", values_BSD[:, None])
        context_B11D = weights_B11S @ values_B1SD
        context_B11D = context_B11D if tap is None else tap.visit("context", context_B11D)
        gate = None if gates is None else gates.here()
        return context_B11D[:, 0, 0] if gate is None else context_B11D[:, 0, 0] * gate.to(context_B11D)


PoolingName = Literal["mean", "max", "first", "attention"]


def build_pooling(name: PoolingName, dim: int) -> Pooling:
    """Return the pooling by that name, for vectors of that width."""
    plain: dict[str, type[MeanPooling] | type[MaxPooling] | type[FirstPooling]] = {
        "mean": MeanPooling,
        "max": MaxPooling,
        "first": FirstPooling,
    }
    return plain[name]() if name in plain else AttentionPooling(dim)
