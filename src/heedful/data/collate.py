"""Rows of ids into the tensors of a batch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.core.symbols import PAD_ID
from heedful.core.types import Batch

Row = Sequence[int] | NDArray[Any]


def collate(
    *,
    lines: Sequence[int] | NDArray[Any],
    sources: Sequence[Row] | None = None,
    targets: Sequence[Row] | None = None,
    labels: Sequence[int] | NDArray[Any] | None = None,
) -> Batch:
    """Return a batch; shorter rows are padded at the right.

    Args:
        lines: number of each row's line, from 0.
        sources: ids of each source, EOS included.
        targets: ids of each target, BOS and EOS included.
        labels: class of each row.
    """
    source, source_lengths = (None, None) if sources is None else pad(sources)
    target, target_lengths = (None, None) if targets is None else pad(targets)
    return Batch(
        lines=torch.from_numpy(np.asarray(lines, dtype=np.int64)),
        source=source,
        source_lengths=source_lengths,
        target=target,
        target_lengths=target_lengths,
        labels=None if labels is None else torch.from_numpy(np.asarray(labels, dtype=np.int64)),
    )


def pad(rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
    """Return rows padded to the longest, and their lengths; no rows give tensors of shapes (0, 0) and (0,)."""
    lengths = np.fromiter((len(each) for each in rows), dtype=np.int64, count=len(rows))
    padded = np.full((len(rows), int(lengths.max(initial=0))), PAD_ID, dtype=np.int64)
    if len(rows):
        padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    return torch.from_numpy(padded), torch.from_numpy(lengths)
