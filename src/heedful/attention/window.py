"""Windowed self-attention: each query sees only keys near it, at a cost linear in the length.

Beltagy et al. 2020, section 3.1 ("sliding window attention"). Queries are cut into blocks as long as the window
reaches; the keys that a block can see lie in it and its neighbours, so only those products are computed.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from heedful.attention.attend import attend
from heedful.attention.dropout import Dropout
from heedful.attention.masks import AttentionMask, window_keep
from heedful.attention.tap import ScopedTap


@dataclass(frozen=True, kw_only=True)
class Window:
    """The most that a position of self-attention sees.

    Attributes:
        before: how many positions before itself.
        after: how many after itself.
    """

    before: int
    after: int

    def attend(
        self,
        query: Float[Tensor, "B H Q E"],
        keys: Float[Tensor, "B H K E"],
        values: Float[Tensor, "B H K E"],
        *,
        mask: AttentionMask | None = None,
        dropout: Dropout | None = None,
        tap: ScopedTap | None = None,
    ) -> Float[Tensor, "B H Q E"]:
        """Do what ``attend`` does within the window; the last query stands at the last key.

        Long sequences go block by block, unless a tap listens, which is shown the weights of all keys.
        """
        num_queries, num_keys = query.shape[2], keys.shape[2]
        is_watched = tap is not None and (tap.wants("scores") or tap.wants("weights"))
        if num_queries == 1 and mask is None and not is_watched:
            first = max(0, num_keys - 1 - self.before)
            return attend(query, keys[:, :, first:], values[:, :, first:], dropout=dropout)
        is_long = num_queries == num_keys > 4 * (self.before + self.after + 1)
        if is_long and not is_watched and self._implies(mask):
            keep = None if mask is None or mask.is_causal else mask.keep[:, 0].expand(len(query), -1)
            return attend_in_window(
                query, keys, values, before=self.before, after=self.after, keep=keep, dropout=dropout
            )
        near = AttentionMask(
            keep=window_keep(
                num_queries,
                num_keys,
                before=self.before,
                after=self.after,
                offset=num_keys - num_queries,
                device=query.device,
            )[None]
        )
        return attend(query, keys, values, mask=near if mask is None else mask & near, dropout=dropout, tap=tap)

    def _implies(self, mask: AttentionMask | None) -> bool:
        """Say whether the mask is about keys alone once the window is applied."""
        return mask is None or mask.keep.shape[1] == 1 or (mask.is_causal and self.after == 0)


def attend_in_window(
    query: Float[Tensor, "B H T E"],
    keys: Float[Tensor, "B H T E"],
    values: Float[Tensor, "B H T E"],
    *,
    before: int,
    after: int,
    keep: Bool[Tensor, "B T"] | None = None,
    dropout: Dropout | None = None,
    tap: ScopedTap | None = None,
) -> Float[Tensor, "B H T E"]:
    """Return what ``attend`` gives with the mask ``window_keep(T, T, before, after)`` and the kept keys.

    Time and memory grow with ``T (before + after)``, not with ``T`` squared. A tap sees scores and weights block by
    block, ``(B blocks) H queries keys``, where block i of row b stands at ``b * blocks + i``, its queries begin at
    ``i * block`` and its keys at ``i * block - before``.

    Args:
        query: queries of all positions.
        keys: keys of all positions.
        values: values of all positions.
        before: how many positions before itself a query sees.
        after: how many after itself.
        keep: True at the real positions; None if all are.
        dropout: applied to the weights, when it is active.
        tap: scores and weights are shown to it, and may be replaced by it, when it wants them.
    """
    num_rows, num_heads, length, head_dim = query.shape
    block = max(1, min(length, before + after))
    num_blocks = -(-length // block)
    spare = num_blocks * block - length
    span = before + block + after

    def spans(sequence_BHTE: Tensor) -> Tensor:
        """Return for each block the positions that its queries can see, as rows of a batch."""
        padded = functional.pad(sequence_BHTE, (0, 0, before, after + spare))
        windows = padded.unfold(2, span, block)
        return windows.permute(0, 2, 1, 4, 3).reshape(num_rows * num_blocks, num_heads, span, head_dim)

    blocks = functional.pad(query, (0, 0, 0, spare)).unflatten(2, (num_blocks, block))  # type: ignore[no-untyped-call]
    blocks = blocks.transpose(1, 2).reshape(num_rows * num_blocks, num_heads, block, head_dim)
    real = torch.ones(num_rows, length, dtype=torch.bool, device=query.device) if keep is None else keep
    mask = AttentionMask(keep=_span_keep(real, block=block, before=before, after=after))
    context = attend(blocks, spans(keys), spans(values), mask=mask, dropout=dropout, tap=tap)
    context = context.view(num_rows, num_blocks, num_heads, block, head_dim).transpose(1, 2)
    return context.reshape(num_rows, num_heads, num_blocks * block, head_dim)[:, :, :length]


def _span_keep(keep: Bool[Tensor, "B T"], *, block: int, before: int, after: int) -> Bool[Tensor, "rows Q K"]:
    """Return True where a key of a block's span exists, is kept, and lies in the query's window."""
    padded = functional.pad(keep, (before, -keep.shape[1] % block + after))
    real_BWK = padded.unfold(1, before + block + after, block)
    # In a span the window of its query q begins at q: the span begins `before` positions early.
    keys, queries = (torch.arange(size, device=keep.device) for size in (before + block + after, block))
    distance = keys - queries[:, None]
    near_QK = (distance >= 0) & (distance <= before + after)
    return (real_BWK[:, :, None, :] & near_QK).flatten(0, 1)
