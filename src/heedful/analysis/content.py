"""Which positions of a batch are words rather than padding or the ends of a sequence."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.core.symbols import BOS_ID, EOS_ID, PAD_ID
from heedful.core.types import Batch


def is_content(ids: Int[Tensor, "B P"]) -> Bool[Tensor, "B P"]:
    """Return True at symbols that are no padding, BOS or EOS."""
    return ~torch.isin(ids, ids.new_tensor((PAD_ID, BOS_ID, EOS_ID)))


def content_places(batch: Batch, kind: str) -> tuple[Bool[Tensor, "B Q"], Bool[Tensor, "B K"]]:
    """Return which queries and which keys are content in attentions of a kind.

    Pooling has one query, which counts where there is anything to pool. A cross-attention's queries are named by what
    is predicted there, those of a decoder's self-attention by what is read.
    """
    if kind == "decoder":
        keys = is_content(batch.target_input)
        return keys, keys
    assert batch.source is not None
    keys = is_content(batch.source)
    if kind == "encoder":
        return keys, keys
    return (keys.any(1, keepdim=True) if kind == "pooling" else is_content(batch.target_output)), keys
