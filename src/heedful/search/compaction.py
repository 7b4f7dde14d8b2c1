"""Which sentences stay in a batch once some are finished.

Copying memory and state costs about as much as a few wasted rows do. Also, a CPU's kernels are made for exact sizes,
and making one takes longer than a step of a small batch; so batches shrink through few sizes, which come again and
again.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

_SMALL_SIZES = (0, 1, 2, 4)
_STEP = 8


def size_for(num_open: int) -> int:
    """Return the least size of a batch that holds so many sentences: 0, 1, 2, 4, or a multiple of 8."""
    small = [size for size in _SMALL_SIZES if size >= num_open]
    return small[0] if small else -(-num_open // _STEP) * _STEP


def rows_to_keep(is_over: Bool[Tensor, " B"]) -> Int[Tensor, " _"] | None:
    """Return the rows to go on with: all that are not over, and some that are over to fill the size; None means all."""
    size = size_for(len(is_over) - int(is_over.sum()))
    if size >= len(is_over):
        return None
    return is_over.to(torch.int8).argsort(stable=True)[:size].sort().values
