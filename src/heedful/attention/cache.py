"""Keys and values kept from step to step: of a source, projected once, and of what was generated so far."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attention.masks import AttentionMask
from heedful.core.types import Selectable

_ROOM = 16
"""Buffers hold a multiple of so many positions: the width of a vector register in float32."""


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
    """Keys and values of the positions read so far, in buffers with room to spare.

    ``append`` writes into the spare room, so most steps copy nothing. A cache is still a value: two continuations of
    one cache do not disturb each other, for the second to write finds the room taken and copies.

    Attributes:
        key_room: keys; only the first ``length`` positions mean anything, the others are finite.
        value_room: values, likewise.
        length: positions read.
    """

    key_room: Float[Tensor, "R H capacity E"]
    value_room: Float[Tensor, "R H capacity E"]
    length: int = 0
    frontier: _Frontier = field(default_factory=lambda: _Frontier(0), repr=False)

    @classmethod
    def empty(
        cls, num_rows: int, num_heads: int, head_dim: int, *, dtype: torch.dtype, device: torch.device
    ) -> "KeyValueCache":
        """Return a cache that has read nothing."""
        shape = (num_rows, num_heads, _ROOM, head_dim)
        keys, values = (torch.zeros(shape, dtype=dtype, device=device) for _ in range(2))
        return cls(key_room=keys, value_room=values)

    @property
    def keys(self) -> Float[Tensor, "R H K E"]:
        """The keys read so far."""
        return self.key_room[:, :, : self.length]

    @property
    def values(self) -> Float[Tensor, "R H K E"]:
        """The values read so far."""
        return self.value_room[:, :, : self.length]

    @property
    def mask(self) -> AttentionMask | None:
        """What hides the spare room from a query that may see all that was read; None where there is none to spare.

        Attending to the whole buffers with this mask saves copying them into exact size, and lets kernels that are made
        for a size be made once in ``_ROOM`` steps.
        """
        capacity = self.key_room.shape[2]
        return None if capacity == self.length else _spare_mask(self.length, capacity, self.key_room.device)

    def map(self, function: Callable[[Tensor], Tensor]) -> "KeyValueCache":
        """Return a copy with the function applied to the buffers; the copy has spare room of its own.

        Where the function gives a buffer back (``to`` the device it is on), the copy shares the room as well.
        """
        keys, values = function(self.key_room), function(self.value_room)
        frontier = self.frontier if keys is self.key_room else _Frontier(self.length)
        return replace(self, key_room=keys, value_room=values, frontier=frontier)

    def append(self, keys: Float[Tensor, "R H T E"], values: Float[Tensor, "R H T E"]) -> "KeyValueCache":
        """Return the cache with further positions at its end."""
        length = self.length + keys.shape[2]
        key_room, value_room, frontier = self.key_room, self.value_room, self.frontier
        if length > key_room.shape[2] or frontier.length != self.length:
            key_room, value_room = (self._moved(room, length) for room in (key_room, value_room))
            frontier = _Frontier(self.length)
        key_room[:, :, self.length : length] = keys
        value_room[:, :, self.length : length] = values
        frontier.length = length
        return KeyValueCache(key_room=key_room, value_room=value_room, length=length, frontier=frontier)

    def _moved(self, room: Float[Tensor, "R H _ E"], length: int) -> Float[Tensor, "R H capacity E"]:
        """Return a buffer for so many positions and some more, with what was read so far."""
        capacity = -(-(length + length // 8) // _ROOM) * _ROOM
        larger = room.new_zeros(*room.shape[:2], capacity, room.shape[3])
        larger[:, :, : self.length] = room[:, :, : self.length]
        return larger


@lru_cache(maxsize=1024)
def _spare_mask(length: int, capacity: int, device: torch.device) -> AttentionMask:
    return AttentionMask(keep=(torch.arange(capacity, device=device) < length)[None, None])
