"""The longest path, found by following gradients from the last position back to the first.

Layers that see all positions at once are stacked until the last output depends on the first input: as many layer steps
as that takes are the path. A recurrent layer depends on the first input at once, through its own steps, which are
counted by the states that the gradient passes. All weights are positive, so that nothing cancels or is cut off by an
activation.
"""

from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.analysis.cost_layers import DilatedConvolutionCost, LayerCost
from heedful.layers.recurrent import RecurrentLayer

_WIDTH = 4


def longest_path(cost: LayerCost, length: int) -> int:
    """Return how many layer steps the gradient of the last position takes to reach the first.

    Args:
        cost: the kind of layer.
        length: of the sequence, at least 2; much more than 500 leaves the range of numbers.
    """
    layer = _positive(cost.build(_WIDTH))
    if isinstance(layer, RecurrentLayer):
        return _passed_states(layer, length)
    layers: list[nn.Module] = []
    while True:
        depth = len(layers)
        layers.append(_positive(cost.build_at(_WIDTH, depth)) if isinstance(cost, DilatedConvolutionCost) else layer)
        if _reaches(cost, layers, length):
            return len(layers)
        assert depth < length, "each layer reaches further than the one before it"


def _inputs(length: int) -> Float[Tensor, "1 T D"]:
    generator = torch.Generator().manual_seed(1)
    return torch.rand(1, length, _WIDTH, generator=generator, dtype=torch.float64) + 0.5


def _positive(layer: nn.Module) -> nn.Module:
    """Make all weights positive, and so large that sums over a window keep their size."""
    layer = layer.double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(parameter.abs() * 0.5 + 1 / parameter.shape[-1])
    return layer


def _reaches(cost: LayerCost, layers: list[nn.Module], length: int) -> bool:
    inputs = _inputs(length).requires_grad_()
    hidden: Tensor = inputs
    for layer in layers:
        hidden = cost.apply(layer, hidden)
        hidden = hidden / hidden.detach().mean()
    (gradient,) = torch.autograd.grad(hidden[0, -1].sum(), inputs)
    return bool((gradient[0, 0] != 0).any())


def _passed_states(layer: RecurrentLayer, length: int) -> int:
    """Run one position at a time; count the states whose gradient is not zero, from the first to the last."""
    state, hidden = layer.initial(1), []
    inputs = _inputs(length)
    for position in range(length):
        after = layer.run(layer.project(inputs[:, position : position + 1]), state)
        state = tuple(part[:, -1] for part in after)
        hidden.append(state[0])
    gradients = torch.autograd.grad(hidden[-1].sum(), hidden)
    passed = [bool((each != 0).any()) for each in gradients]
    assert all(later or not earlier for earlier, later in pairwise(passed)), "a gradient passes every state in turn"
    return sum(passed)
