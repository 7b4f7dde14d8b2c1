"""Which keys a query may see. ``keep`` is True where a position may be attended."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.types import Selectable


def padding_keep(lengths: Int[Tensor, " B"], size: int) -> Bool[Tensor, "B K"]:
    """Return True at the first ``lengths`` positions of each row of ``size``."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def causal_keep(
    num_queries: int, num_keys: int, offset: int = 0, *, device: torch.device | None = None
) -> Bool[Tensor, "Q K"]:
    """Return True where the key is not after the query; query q stands at position ``offset + q``."""
    return torch.ones(num_queries, num_keys, dtype=torch.bool, device=device).tril(offset)


def window_keep(
    num_queries: int, num_keys: int, *, before: int, after: int, offset: int = 0, device: torch.device | None = None
) -> Bool[Tensor, "Q K"]:
    """Return True from ``before`` positions before the query (at ``offset + q``) to ``after`` positions after it."""
    distance = (
        torch.arange(num_keys, device=device) - torch.arange(offset, offset + num_queries, device=device)[:, None]
    )
    return (distance >= -before) & (distance <= after)


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionMask(Selectable):
    """A mask made once for a batch and used by every layer: its additive form is computed once and remembered.

    Attributes:
        keep: True where a position may be attended; an axis of size 1 stands for all rows, or all queries.
        is_causal: the mask is exactly the causal one, so a kernel that knows that pattern need not read it.
    """

    keep: Bool[Tensor, "B Q K"]
    is_causal: bool = False

    @classmethod
    def padding(cls, keep: Bool[Tensor, "B K"]) -> "AttentionMask":
        """Let every query see the kept positions of its row, for example ``batch.source_keep``."""
        return cls(keep=keep[:, None, :])

    @classmethod
    def causal(cls, size: int, device: torch.device | None = None) -> "AttentionMask":
        """Let each position see itself and those before it.

        Where rows are padded at the right this mask is enough: no real position comes after padding.
        """
        return cls(keep=causal_keep(size, size, device=device)[None], is_causal=True)

    def __and__(self, other: "AttentionMask") -> "AttentionMask":
        """Keep what both keep."""
        return AttentionMask(keep=self.keep & other.keep)

    @cached_property
    def _biases(self) -> dict[torch.dtype, Tensor]:
        return {}

    def bias(self, dtype: torch.dtype) -> Float[Tensor, "B Q K"]:
        """Return 0 where kept and a number below any score elsewhere, to be added to scores.

        The number is finite, so that a row with nothing kept has no NaN, in the forward pass or in gradients.
        """
        if dtype not in self._biases:
            low = torch.full(self.keep.shape, torch.finfo(dtype).min / 2, dtype=dtype, device=self.keep.device)
            self._biases[dtype] = low.masked_fill_(self.keep, 0.0)
        return self._biases[dtype]

    @cached_property
    def has_empty_rows(self) -> bool:
        """True when some query may see nothing at all."""
        return not bool(self.keep.any(-1).all())

    @cached_property
    def is_nonempty(self) -> Bool[Tensor, "B Q 1"]:
        """True for the queries that may see something."""
        return self.keep.any(-1, keepdim=True)
