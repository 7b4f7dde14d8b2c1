"""Attention rolled out over the layers: which input positions each position is made of (Abnar and Zuidema 2020).

A layer's weights, their mean over the heads, are taken half and half with the identity, which stands for the residual
connection: ``A' = (A + I) / 2`` (section 3), rows brought to a sum of 1. The rollout of layer l is ``A'_l`` times that
of the layer below.

The paper has encoders alone. In a decoder each state is a mixture of two kinds of input, the target's symbols so far
and the source's, so two matrices are carried: U (``T T``) and V (``T S``), at first the identity and zeros.

- Self-attention: ``U <- A' U``, ``V <- A' V``.
- Cross-attention with weights C: ``U <- U / 2``, ``V <- V / 2 + C R / 2``, R being the encoder's last rollout: half
  of the sum is the residual stream, half comes from the source as the encoder has mixed it.

So each row of ``[U V]`` sums to 1, and the sum of a row of V is the share that comes from the source. A
self-attention of the decoder shows U, a cross-attention V.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.record import AttentionMap


def roll_out(maps: Sequence[AttentionMap]) -> dict[str, Float[Tensor, "Q K"]]:
    """Return the rollout up to each attention, by its path.

    Args:
        maps: the weights of every attention of a model whose states mix positions by attention alone, from its input
            to its output.
    """
    found: dict[str, Tensor] = {}
    source: Tensor | None = None
    target: Tensor | None = None
    across: Tensor | None = None
    for each in maps:
        weights, path = _mean(each.weights), each.site.path
        if each.site.kind == "encoder":
            source = _mix(weights, torch.eye(len(weights)) if source is None else source)
            found[path] = source
        elif each.site.kind == "decoder":
            target = _mix(weights, torch.eye(len(weights)) if target is None else target)
            across = None if across is None else _mix(weights, across)
            found[path] = target
        elif each.site.kind == "cross":
            target = torch.eye(len(weights)) if target is None else target
            source = torch.eye(weights.shape[1]) if source is None else source
            across = torch.zeros_like(weights) if across is None else across
            taken = weights.sum(-1, keepdim=True).clamp(max=1)
            target = target * (1 - taken / 2)
            across = across * (1 - taken / 2) + weights @ source / 2
            found[path] = across
        else:
            found[path] = weights if source is None else weights @ source
    return found


def _mean(weights: Float[Tensor, "H Q K"]) -> Float[Tensor, "Q K"]:
    """Return the mean over the heads; zeros where there are none."""
    return weights.mean(0) if len(weights) else weights.sum(0)


def _mix(weights: Float[Tensor, "Q P"], below: Float[Tensor, "P K"]) -> Float[Tensor, "Q K"]:
    """Let each position be half of itself and half of what it attends to; one that attends to nothing stays itself."""
    mixed = weights + torch.eye(len(weights))
    return mixed / mixed.sum(-1, keepdim=True) @ below
