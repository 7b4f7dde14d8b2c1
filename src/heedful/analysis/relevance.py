"""Layer-wise relevance propagation: how much each head gave to what the model would say.

Bach et al. (2015) hand an output's value back through the layers so that it is neither lost nor made. The rules here:

* sums and linear layers: each input gets its own product's share (the z-rule, LRP-0); biases keep theirs;
* attention: the weights are constants, so that relevance flows through the values alone, in proportion to weight times
  value (Ali et al. 2022, section 3, AH-rule; Voita et al. 2019, section 4, hand it through the weights too);
* layer normalisation: the deviation it divides by is a constant (LN-rule of the same paper);
* activations: the output's relevance goes to the input as it is; a gate is a constant.

With these rules a network is linear at each input, relevance is input times gradient, and all relevances of one layer
come out of one backward pass (Ancona et al. 2018, proposition 1).
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.tap import Tap
from heedful.layers.feed_forward import FeedForward
from heedful.models.interfaces import Model


@dataclass
class LinearAttention(Tap):
    """Holds attention weights constant, and keeps every head's context with its place in the graph of gradients.

    Attributes:
        contexts: by path of the attention.
    """

    contexts: dict[str, Tensor] = field(default_factory=dict)

    def wants(self, point: str) -> bool:
        return point.endswith((".weights", ".context"))

    def visit(self, point: str, value: Tensor) -> Tensor:
        path, _, what = point.rpartition(".")
        if what == "weights":
            return value.detach()
        self.contexts[path] = value
        return value


@contextlib.contextmanager
def linearised(model: Model) -> Iterator[None]:
    """Let layer norms and feed-forward layers follow the rules within the block; what they give stays the same."""
    handles = []
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            handles.append(module.register_forward_hook(_normalise))
        elif isinstance(module, FeedForward):
            handles.append(module.register_forward_hook(_transform))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _normalise(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
    assert isinstance(module, nn.LayerNorm)
    (hidden,) = inputs
    centred = hidden - hidden.mean(-1, keepdim=True)
    deviation = (hidden.var(-1, keepdim=True, unbiased=False) + module.eps).sqrt().detach()
    normed: Tensor = module.weight * (centred / deviation) + module.bias
    return normed


def _transform(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
    assert isinstance(module, FeedForward)
    (hidden,) = inputs
    inner = functional.linear(hidden, module.inner.weight, module.inner.bias)
    if module.is_gated:
        gate, value = inner.chunk(2, dim=-1)
        kept = module.activation(gate).detach() * value
    else:
        kept = inner * _slope(inner, module.activation(inner))
    return functional.linear(kept, module.outer.weight, module.outer.bias)


def _slope(before: Tensor, after: Tensor) -> Tensor:
    """Return what the activation multiplied by, 0 where there was nothing to multiply."""
    is_nothing = before == 0
    return torch.where(is_nothing, 0.0, after / torch.where(is_nothing, 1.0, before)).detach()
