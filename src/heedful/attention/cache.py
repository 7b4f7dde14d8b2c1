"""Keys and values kept from step to step: of a source, projected once, and of what was generated so far."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.types import Selectable

_FIRST_CAPACITY = 16


@dataclass(frozen=True, kw_only=True)
class KeyValues(Selectable):
    """The keys and values of a memory, for each head."""

    keys: Float[Tensor, "B H K E"]
    values: Float[Tensor, "B H K E"]


@dataclass
class _Frontier:
    """How far a buffer is written, by whichever of the caches that share it went farthest."""

    length: int


@dataclass(frozen=True, kw_only=True)
class KeyValueCache(Selectable):
    """Keys and values of the positions read so far, in a buffer with room to spare.

    ``append`` writes into the spare room, so n steps cost n writes and about log n copies. A cache is still a value:
    two continuations of one cache do not disturb each other, for the second to write finds the room taken and copies.

    Attributes:
        pairs: keys (at 0 of the third axis) and values (at 1); only the first ``length`` positions mean anything.
        length: positions read.
    """

    pairs: Float[Tensor, "R H 2 capacity E"]
    length: int = 0
    frontier: _Frontier = field(default_factory=lambda: _Frontier(0), repr=False)

    @classmethod
    def empty(
        cls, num_rows: int, num_heads: int, head_dim: int, *, dtype: torch.dtype, device: torch.device
    ) -> "KeyValueCache":
        """Return a cache that has read nothing."""
        return cls(pairs=torch.zeros(num_rows, num_heads, 2, _FIRST_CAPACITY, head_dim, dtype=dtype, device=device))

    @property
    def keys(self) -> Float[Tensor, "R H K E"]:
        """The keys read so far."""
        return self.pairs[:, :, 0, : self.length]

    @property
    def values(self) -> Float[Tensor, "R H K E"]:
        """The values read so far."""
        return self.pairs[:, :, 1, : self.length]

    def map(self, function: Callable[[Tensor], Tensor]) -> "KeyValueCache":
        """Return a copy with the function applied to the buffer; the copy has spare room of its own.

        Where the function gives the buffer back (``to`` the device it is on), the copy shares the room as well.
        """
        pairs = function(self.pairs)
        return replace(self, pairs=pairs, frontier=self.frontier if pairs is self.pairs else _Frontier(self.length))

    def append(self, pairs: Float[Tensor, "R H 2 T E"]) -> "KeyValueCache":
        """Return the cache with further positions at its end."""
        length = self.length + pairs.shape[3]
        buffer, frontier = self.pairs, self.frontier
        if length > buffer.shape[3] or frontier.length != self.length:
            rows, heads, two, _, width = buffer.shape
            buffer = buffer.new_zeros(rows, heads, two, max(_FIRST_CAPACITY, length + length // 2), width)
            buffer[:, :, :, : self.length] = self.pairs[:, :, :, : self.length]
            frontier = _Frontier(self.length)
        buffer[:, :, :, self.length : length] = pairs
        frontier.length = length
        return KeyValueCache(pairs=buffer, length=length, frontier=frontier)
