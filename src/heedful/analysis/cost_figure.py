"""Costs as pictures."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from heedful.analysis.cost_crossing import Crossing
from heedful.analysis.cost_report import CostReport, Point
from heedful.analysis.figure import COLORS, MARKERS, Panel

_VALUES: dict[str, Callable[[Point], float]] = {
    "operations": lambda point: point.operations,
    "seconds": lambda point: point.timing.median_s,
    "bytes": lambda point: point.peak_bytes,
}


def cost_panels(report: CostReport) -> dict[str, Panel]:
    """Return the panels of a report, by subject."""
    return {
        "operations": Panel("Operations by length", lambda axes: _draw_points(axes, report, "operations", "length")),
        "seconds": Panel("Seconds by length", lambda axes: _draw_points(axes, report, "seconds", "length")),
        "bytes": Panel("Memory of training by length", lambda axes: _draw_points(axes, report, "bytes", "length")),
        "seconds by width": Panel("Seconds by width", lambda axes: _draw_points(axes, report, "seconds", "width")),
        "paths": Panel("The longest path", lambda axes: _draw_paths(axes, report)),
        "crossing": Panel("When attention is the dearer", lambda axes: _draw_crossings(axes, report.crossings)),
        "roofline": Panel("Under the roof of this machine", lambda axes: _draw_roofline(axes, report), width=2),
    }


def _draw_points(axes: Axes, report: CostReport, what: str, axis: str) -> None:
    for number, row in enumerate(report.rows):
        points = row.over_length if axis == "length" else row.over_width
        if not points:
            continue
        values: list[float] = [float(_VALUES[what](point)) for point in points]
        fit = row.fits().get(f"{what} over {axis}")
        label = row.name if fit is None else f"{row.name}: {fit.exponent:.2f}"
        xs = _sizes(report, axis)
        axes.plot(xs, values, marker=MARKERS[number], markersize=4, color=COLORS[number], label=label)
    name = {"length": "length n", "width": "width d"}[axis]
    axes.set(yscale="log", xlabel=name, ylabel={"seconds": "seconds, forward"}.get(what, what))
    _number_by_doubling(axes, _sizes(report, axis))
    axes.legend(title="exponent", fontsize=7, title_fontsize=7)


def _sizes(report: CostReport, axis: str) -> list[int]:
    return report.plan.lengths if axis == "length" else report.plan.widths


def _number_by_doubling(axes: Axes, sizes: Sequence[int]) -> None:
    """Mark the sizes that were measured, and no others, on a logarithmic axis."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(sizes), [f"{size:,}" for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())


def _draw_paths(axes: Axes, report: CostReport) -> None:
    for number, row in enumerate(report.rows):
        lengths, found = [each[0] for each in row.paths], [each[1] for each in row.paths]
        axes.plot(lengths, found, marker=MARKERS[number], markersize=4, color=COLORS[number], label=row.name, alpha=0.9)
    axes.set(yscale="log", xlabel="length n", ylabel="layer steps")
    _number_by_doubling(axes, report.plan.path_lengths)
    axes.legend(fontsize=7)


def _draw_crossings(axes: Axes, crossings: list[Crossing]) -> None:
    for number, crossing in enumerate(crossings):
        lengths = [each[0] for each in crossing.times_s]
        ratios = [each[1] / each[2] for each in crossing.times_s]
        axes.plot(lengths, ratios, marker=MARKERS[number], color=COLORS[number], label=f"to {crossing.recurrent}")
        axes.axvline(crossing.by_operations, color=COLORS[number], linestyle=":", linewidth=1)
    axes.axhline(1, color=COLORS[6], linewidth=0.8)
    axes.set(
        yscale="log",
        xlabel="length n (dotted: equal operations)",
        ylabel="seconds, relative",
    )
    _number_by_doubling(axes, sorted({each[0] for crossing in crossings for each in crossing.times_s}))
    axes.legend(fontsize=7)


def _draw_roofline(axes: Axes, report: CostReport) -> None:
    machine = report.machine
    known = [use.intensity for use in report.uses] + [machine.ridge]
    low, high = min(known) / 3, max(known) * 3
    axes.plot([low, machine.ridge, high], [machine.roof(each) for each in (low, machine.ridge, high)], color=COLORS[6])
    for number, use in enumerate(report.uses):
        axes.plot([use.intensity], [use.flops], MARKERS[number], color=COLORS[number], label=use.name)
    axes.axvline(machine.ridge, color=COLORS[6], linestyle=":", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="operations per byte moved", ylabel="operations per second")
    axes.legend(loc="lower right")
