"""Costs: formulas against counted operations, paths against gradients, exponents against numbers with known ones."""

import math
import random
import time

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from heedful.analysis.cost_counting import count
from heedful.analysis.cost_crossing import crossing_of, equal_operations, forward, training
from heedful.analysis.cost_fitting import fit_power
from heedful.analysis.cost_layers import (
    ConvolutionCost,
    DilatedConvolutionCost,
    LayerCost,
    RecurrentCost,
    SelfAttentionCost,
    WindowedSelfAttentionCost,
    layer_costs,
)
from heedful.analysis.cost_path import longest_path
from heedful.analysis.cost_roofline import Machine, StackShape, measure_uses
from heedful.analysis.cost_timing import time_in_turns

COSTS = layer_costs(kernel=5, window=8)
NAMES = [cost.name for cost in COSTS]


@pytest.mark.parametrize("cost", COSTS, ids=NAMES)
@pytest.mark.parametrize(("length", "width"), [(16, 12), (96, 20), (112, 7)])
def test_formulas_give_what_is_counted(cost: LayerCost, length: int, width: int) -> None:
    rows = 3
    assert count(forward(cost, length, width, rows)).operations == rows * cost.operations(length, width)


@pytest.mark.parametrize("cost", COSTS, ids=NAMES)
def test_torchs_own_counter_agrees_where_it_knows_the_kernels(cost: LayerCost) -> None:
    """With few keys no fused attention runs, and both count the same, backward passes included."""
    layer, inputs = cost.build(12), torch.randn(2, 32, 12, requires_grad=True)
    for work in (forward(cost, 32, 12, 2), lambda: cost.apply(layer, inputs).sum().backward()):
        with FlopCounterMode(display=False) as other:
            work()
        assert count(work).operations == other.get_total_flops() > 0


def test_fused_attention_is_counted_and_torch_misses_it() -> None:
    cost = SelfAttentionCost()
    work = forward(cost, 512, 8, 1)
    with FlopCounterMode(display=False) as other:
        work()
    assert count(work).operations - other.get_total_flops() == 4 * 512**2 * 8


def test_operations_by_hand() -> None:
    # 2 positions of width 3: four projections of 2 x 3 x 3, two products of 2 x 2 x 3, each multiply-add twice.
    assert SelfAttentionCost().operations(2, 3) == 2 * (4 * 18 + 2 * 12)
    assert RecurrentCost("gru").operations(2, 3) == 2 * (3 * 2 * 18)
    assert ConvolutionCost(5).operations(2, 3) == 2 * 5 * 18
    # 40 positions in 3 blocks of 16, each with 32 keys.
    assert WindowedSelfAttentionCost(8).operations(80, 3) == 2 * (4 * 80 * 9 + 2 * 5 * 16 * 32 * 3)


def test_bytes_and_memory_by_hand() -> None:
    left, right = torch.randn(5, 7), torch.randn(7, 3)
    found = count(lambda: (left @ right).add_(1.0))
    assert found.operations == 2 * 5 * 7 * 3 and found.num_products == 1
    assert found.bytes_moved == 4 * (35 + 21 + 15) + 4 * (15 + 15) and found.peak_bytes == 4 * 15
    assert count(lambda: left.T.view(7, 5)[2:]).bytes_moved == 0
    assert count(lambda: (left + 1) * (left + 2)).peak_bytes == 3 * 4 * 35
    assert count(lambda: [left + 1 for _ in range(4)].clear()).peak_bytes == 4 * 4 * 35

    def one_at_a_time() -> None:
        for _ in range(4):
            left + 1

    assert count(one_at_a_time).peak_bytes == 4 * 35


def test_watched_weights_take_memory_by_the_square() -> None:
    plain, watched = COSTS[0], COSTS[1]
    lengths = [128, 256]
    peaks = {cost.name: [count(training(cost, n, 8, 1)).peak_bytes for n in lengths] for cost in (plain, watched)}
    assert fit_power(lengths, peaks[plain.name]).exponent < 1.1
    assert fit_power(lengths, peaks[watched.name]).exponent > 1.8


@pytest.mark.parametrize("cost", COSTS, ids=NAMES)
def test_the_path_that_gradients_take_is_the_formulas(cost: LayerCost) -> None:
    for length in (2, 5, 17, 29):
        assert longest_path(cost, length) == cost.path(length)


def test_paths_by_hand() -> None:
    assert [ConvolutionCost(3).path(n) for n in (2, 3, 9)] == [1, 2, 8]
    assert [ConvolutionCost(5).path(n) for n in (2, 4, 9)] == [1, 2, 4]
    assert [DilatedConvolutionCost(3).path(n) for n in (2, 3, 9, 16, 17)] == [1, 2, 4, 4, 5]
    assert longest_path(WindowedSelfAttentionCost(2), 10) == 5
    assert longest_path(DilatedConvolutionCost(4), 16) == 4


@pytest.mark.parametrize("cost", COSTS, ids=NAMES)
def test_products_in_a_row(cost: LayerCost) -> None:
    """Only recurrence needs more of them for a longer sequence."""
    products = [count(forward(cost, length, 8, 1)).num_products for length in (80, 160)]
    assert products == [81, 161] if isinstance(cost, RecurrentCost) else products[0] == products[1] < 5


def test_a_known_exponent_is_found() -> None:
    exact = fit_power([2, 4, 8, 16], [3 * n**1.7 for n in (2, 4, 8, 16)])
    assert exact.exponent == pytest.approx(1.7) and exact.factor == pytest.approx(3)
    assert exact.error == pytest.approx(0, abs=1e-6)
    generator = random.Random(1)
    inside = 0
    for _ in range(200):
        sizes = [2.0**power for power in range(3, 11)]
        fit = fit_power(sizes, [n**1.5 * math.exp(generator.gauss(0, 0.2)) for n in sizes])
        assert fit.error is not None
        inside += abs(fit.exponent - 1.5) < 2 * fit.error
    assert 170 < inside < 198  # two standard errors with 6 degrees of freedom: 91 %
    assert fit_power([1, 2], [1, 4]).error is None and fit_power([1, 2], [1, 4]).show() == "2.00"
    with pytest.raises(ValueError, match="two places"):
        fit_power([3, 3], [1, 2])


def test_crossings() -> None:
    assert equal_operations(48, RecurrentCost("lstm")) == 96 and equal_operations(48, RecurrentCost("gru")) == 48
    # Ratios 1/4 and 4 at 100 and 400: by powers they are equal half-way, at 200.
    assert crossing_of([(100, 1.0, 4.0), (400, 4.0, 1.0)]) == pytest.approx(200)
    assert crossing_of([(100, 1.0, 4.0), (400, 1.0, 1.5)]) is None
    assert crossing_of([(100, 2.0, 1.0)]) == 100.0


def test_timings_are_medians_in_turns() -> None:
    calls: list[str] = []

    def work(name: str, pauses: list[float]) -> None:
        calls.append(name)
        time.sleep(pauses.pop(0))

    pauses = [0.2, 0.002, 0.03, 0.002]
    found = time_in_turns(
        {"slow once": lambda: work("a", pauses), "idle": lambda: calls.append("b")}, budget_s=0.0, most_rounds=9
    )
    assert calls == ["a", "b"] * 4 and found["idle"].rounds == 3
    assert 0.002 <= found["slow once"].median_s < 0.02 < found["slow once"].largest_s < 0.2


def test_a_step_of_decoding_reads_every_weight_once() -> None:
    shape = StackShape(width=32, num_layers=2, length=16, rows=8)
    uses = {use.name: use for use in measure_uses(shape, budget_s=0.0)}
    weights = 2 * (4 * 32**2 + 2 * 32 * 128)
    one, batch = uses["decoding, a step of 1"], uses["decoding, a step of 8"]
    attended = 2 * 2 * 2 * 17 * 32  # a cache may be read as far as it has room, up to twice as much
    assert 2 * weights + attended <= one.operations <= 2 * weights + 2 * attended
    assert batch.operations == 8 * one.operations
    assert 4 * weights < one.bytes_moved < 8 * weights and 0.25 < one.intensity < 0.5
    assert one.intensity < batch.intensity < uses["encoding, 8 x 16"].intensity
    assert uses["training, 8 x 16"].operations > 2.5 * uses["encoding, 8 x 16"].operations


def test_the_roof_by_hand() -> None:
    machine = Machine(peak_flops=100.0, bandwidth_bytes=20.0)
    assert machine.ridge == 5 and machine.roof(2.0) == 40 and machine.roof(7.0) == 100
