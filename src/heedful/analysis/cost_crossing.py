"""From which length on self-attention is dearer than recurrence: by the formulas, with projections, and in seconds.

By the orders of the classic table, ``n² d`` against ``n d²``, it is n = d. With the projections counted both have a
term ``n d²`` of their own: an LSTM's eight products of that size (in multiply-adds) against attention's four and
``2 n² d`` cross at n = 2 d, a GRU's six at n = d.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from heedful.analysis.cost_fitting import fit_power
from heedful.analysis.cost_layers import LayerCost, RecurrentCost, SelfAttentionCost
from heedful.analysis.cost_timing import time_in_turns


@dataclass(frozen=True)
class Crossing:
    """Where self-attention becomes dearer than a recurrent layer.

    Attributes:
        recurrent: name of the layer.
        width: of both.
        by_orders: length at which ``n² d`` is ``n d²``.
        by_operations: length at which the operations are equal, projections included.
        in_seconds: length at which the measured times are equal, interpolated; None when attention was the quicker up
            to the longest tried.
        longest_tried: by the clock.
        times_s: what was measured: length, attention, recurrent.
    """

    recurrent: str
    width: int
    by_orders: int
    by_operations: int
    in_seconds: float | None
    longest_tried: int
    times_s: list[tuple[int, float, float]]


def equal_operations(width: int, recurrent: RecurrentCost) -> int:
    """Return the first length whose operations are at least as many for attention: by search, not by algebra."""
    attention = SelfAttentionCost()
    return _first(lambda length: attention.operations(length, width) >= recurrent.operations(length, width))


def _first(holds: Callable[[int], bool]) -> int:
    """Return the least number from 1 on for which something holds that holds for all greater ones."""
    high = 1
    while not holds(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def find_crossing(
    recurrent: RecurrentCost, width: int, *, rows: int, first: int, longest: int, budget_s: float
) -> Crossing:
    """Measure both at doubling lengths until attention is the dearer, forward alone.

    Args:
        recurrent: the layer to compare with.
        width: of both layers.
        rows: sequences at a time.
        first: length to begin with.
        longest: length to end with at the latest.
        budget_s: for each length.
    """
    attention = SelfAttentionCost()
    times: list[tuple[int, float, float]] = []
    length = first
    while length <= longest:
        found = time_in_turns(
            {cost.name: forward(cost, length, width, rows) for cost in (attention, recurrent)}, budget_s=budget_s
        )
        times.append((length, found[attention.name].median_s, found[recurrent.name].median_s))
        if times[-1][1] > times[-1][2]:
            break
        length *= 2
    return Crossing(
        recurrent.name, width, width, equal_operations(width, recurrent), crossing_of(times), times[-1][0], times
    )


def crossing_of(times: list[tuple[int, float, float]]) -> float | None:
    """Return where the first time of a row overtakes the second, by powers through the two rows around it."""
    (length, one, other) = times[-1]
    if one <= other:
        return None
    if len(times) == 1:
        return float(length)
    (before, first, second) = times[-2]
    rising = fit_power([before, length], [first / second, one / other])
    return float(rising.factor ** (-1 / rising.exponent))


def forward(cost: LayerCost, length: int, width: int, rows: int) -> Callable[[], object]:
    """Return a forward pass over ``rows`` sequences, without gradients."""
    torch.manual_seed(1)
    layer = cost.build(width).eval()
    inputs = torch.randn(rows, length, width)

    def work() -> None:
        with torch.no_grad():
            cost.apply(layer, inputs)

    return work


def training(cost: LayerCost, length: int, width: int, rows: int) -> Callable[[], object]:
    """Return a forward and a backward pass, gradients of the input included."""
    torch.manual_seed(1)
    layer = cost.build(width)
    inputs = torch.randn(rows, length, width, requires_grad=True)
    direction = torch.randn(rows, length, width)

    def work() -> None:
        torch.autograd.grad(cost.apply(layer, inputs), [inputs, *layer.parameters()], direction)

    return work
