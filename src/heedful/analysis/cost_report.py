"""The classic table, measured: operations, time and memory over length and width, steps, paths, crossings, roofline."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from heedful.analysis.cost_counting import count
from heedful.analysis.cost_crossing import Crossing, find_crossing, forward, training
from heedful.analysis.cost_fitting import PowerFit, fit_power
from heedful.analysis.cost_layers import DilatedConvolutionCost, LayerCost, RecurrentCost, layer_costs
from heedful.analysis.cost_path import longest_path
from heedful.analysis.cost_roofline import Machine, StackShape, Use, measure_machine, measure_uses
from heedful.analysis.cost_timing import Timing, time_in_turns

LEAST_SHARE = 0.85
"""Below so much of a core while it measured, a report warns."""


@dataclass(frozen=True, kw_only=True)
class CostPlan:
    """What is measured, and for how long.

    Attributes:
        lengths: at ``width``.
        widths: at ``length``.
        length: n of the table.
        width: d of the table.
        kernel: k.
        window: r.
        rows: sequences at a time.
        path_lengths: at which the longest path is followed.
        longest_crossing: length at which the search for a crossing in seconds ends.
        stack: of the roofline.
        matrix_size: of the product that shows the peak.
        copy_megabytes: of the copy that shows the bandwidth.
        budget_s: for each point.
    """

    lengths: list[int]
    widths: list[int]
    length: int
    width: int
    kernel: int
    window: int
    rows: int
    path_lengths: list[int]
    longest_crossing: int
    stack: StackShape
    matrix_size: int
    copy_megabytes: int
    budget_s: float


@dataclass(frozen=True)
class Point:
    """One layer at one size, all rows together.

    Attributes:
        length: n.
        width: d.
        formula: operations by the formula.
        operations: counted, forward.
        num_products: products one after the other, forward.
        peak_bytes: alive at once in training, forward and backward.
        timing: forward.
    """

    length: int
    width: int
    formula: int
    operations: int
    num_products: int
    peak_bytes: int
    timing: Timing


@dataclass(frozen=True)
class Row:
    """One layer of the table.

    Attributes:
        name: of the layer.
        orders: operations, steps and path, as published.
        formula: operations with our layer's constants.
        over_length: by rising length.
        over_width: by rising width.
        paths: longest path by length, followed and by formula.
    """

    name: str
    orders: tuple[str, str, str]
    formula: str
    over_length: list[Point]
    over_width: list[Point]
    paths: list[tuple[int, int, int]]

    def fits(self) -> dict[str, PowerFit]:
        """Return exponents: of operations, time and memory, over length and over width; empty where none was taken."""
        found = {}
        for axis, points in (("length", self.over_length), ("width", self.over_width)):
            xs = [getattr(point, axis) for point in points]
            if len(set(xs)) < 2:
                continue
            found[f"operations over {axis}"] = fit_power(xs, [point.operations for point in points])
            found[f"seconds over {axis}"] = fit_power(xs, [point.timing.median_s for point in points])
            found[f"bytes over {axis}"] = fit_power(xs, [point.peak_bytes for point in points])
            found[f"products over {axis}"] = fit_power(xs, [point.num_products for point in points])
        return found


@dataclass(frozen=True)
class CostReport:
    """What was measured.

    Attributes:
        plan: of it.
        threads: of torch.
        rows: layers.
        crossings: of self-attention with each recurrent layer.
        machine: peak and bandwidth.
        uses: of a Transformer, under the roof.
        cpu_share: CPU seconds that this process had in a second while it measured. On an idle machine about as many as
            threads; clearly below 1 means that others held the processor and the times are too long.
        dtype: of all numbers.
    """

    plan: CostPlan
    threads: int
    rows: list[Row]
    crossings: list[Crossing]
    machine: Machine
    uses: list[Use]
    cpu_share: float
    dtype: str = "float32"

    @property
    def is_disturbed(self) -> bool:
        """True when the machine was too busy for its times to be believed."""
        return self.cpu_share < LEAST_SHARE

    def to_values(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values = asdict(self)
        for row, described in zip(self.rows, values["rows"], strict=True):
            described["fits"] = {name: asdict(fit) for name, fit in row.fits().items()}
        for use, described in zip(self.uses, values["uses"], strict=True):
            described |= {
                "intensity": use.intensity,
                "flops": use.flops,
                "roof_flops": self.machine.roof(use.intensity),
            }
        return values


def measure_costs(plan: CostPlan, tell: Callable[[str], None]) -> CostReport:
    """Measure everything.

    Args:
        plan: what and for how long.
        tell: hears what is being measured.
    """
    begin, used = time.perf_counter(), time.process_time()
    costs = layer_costs(kernel=plan.kernel, window=plan.window)
    measured = [cost for cost in costs if not isinstance(cost, DilatedConvolutionCost)]
    over_length, over_width = [], []
    for length in plan.lengths:
        tell(f"length {length:,} at width {plan.width:,}")
        over_length.append(_points(measured, length, plan.width, plan))
    for width in plan.widths:
        tell(f"width {width:,} at length {plan.length:,}")
        over_width.append(_points(measured, plan.length, width, plan))
    rows = [_row(cost, over_length, over_width, plan, tell) for cost in costs]
    crossings = [_crossing(cost, plan, tell) for cost in costs if isinstance(cost, RecurrentCost)]
    tell("peak and bandwidth")
    machine = measure_machine(size=plan.matrix_size, megabytes=plan.copy_megabytes, budget_s=plan.budget_s)
    tell("training, encoding, decoding")
    uses = measure_uses(plan.stack, budget_s=plan.budget_s)
    share = (time.process_time() - used) / (time.perf_counter() - begin)
    return CostReport(plan, torch.get_num_threads(), rows, crossings, machine, uses, share)


Measured = list[dict[str, Point]]


def _row(
    cost: LayerCost, over_length: Measured, over_width: Measured, plan: CostPlan, tell: Callable[[str], None]
) -> Row:
    tell(f"the longest path: {cost.name}")
    paths = [(length, longest_path(cost, length), cost.path(length)) for length in plan.path_lengths]
    by_length, by_width = (
        [each[cost.name] for each in found if cost.name in each] for found in (over_length, over_width)
    )
    orders = (cost.order, cost.order_of_steps, cost.order_of_path)
    return Row(cost.name, orders, cost.formula(), by_length, by_width, paths)


def _crossing(cost: RecurrentCost, plan: CostPlan, tell: Callable[[str], None]) -> Crossing:
    tell(f"where self-attention is dearer than {cost.name}")
    return find_crossing(
        cost,
        plan.width,
        rows=plan.rows,
        first=plan.lengths[0],
        longest=max(plan.longest_crossing, plan.lengths[0]),
        budget_s=plan.budget_s,
    )


def _points(costs: list[LayerCost], length: int, width: int, plan: CostPlan) -> dict[str, Point]:
    works = {cost.name: forward(cost, length, width, plan.rows) for cost in costs}
    timings = time_in_turns(works, budget_s=plan.budget_s)
    points = {}
    for cost in costs:
        once = count(works[cost.name])
        both = count(training(cost, length, width, plan.rows))
        points[cost.name] = Point(
            length,
            width,
            plan.rows * cost.operations(length, width),
            once.operations,
            once.num_products,
            both.peak_bytes,
            timings[cost.name],
        )
    return points
