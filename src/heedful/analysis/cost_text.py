"""Costs in a terminal."""

import textwrap
from collections.abc import Sequence

from heedful.analysis.cost_crossing import Crossing
from heedful.analysis.cost_report import CostReport

_NARROWEST = 6
_DECIMALS = (("G", 1e9), ("M", 1e6), ("k", 1e3))


def cost_text(report: CostReport) -> str:
    """Return all of a report as text."""
    plan = report.plan
    head = (
        f"Layers at length n = {plan.lengths[-1]:,} and width d = {plan.width:,}; convolutions see k = {plan.kernel} "
        f"positions, windows r = {plan.window} to each side.\n{plan.rows} at a time, {report.dtype}, "
        f"{report.threads} thread{'s' if report.threads > 1 else ''}; times are medians of several, warmed up."
    )
    parts = [head, *([disturbed_sentence(report)] if report.is_disturbed else [])]
    for title, header, rows in cost_tables(report):
        parts.append(f"{title}\n{_columns(header, rows)}")
    parts.append("\n".join(crossing_sentence(each) for each in report.crossings))
    parts.append(machine_sentence(report))
    return "\n\n".join(parts) + "\n"


Table = tuple[str, list[str], list[list[str]]]


def cost_tables(report: CostReport) -> list[Table]:
    """Return the tables of a report: title, header and cells."""
    return [_operations(report), _exponents(report), _paths(report), _uses(report)]


def _operations(report: CostReport) -> Table:
    rows = []
    for row in report.rows:
        if row.over_length:
            point, shortest = row.over_length[-1], row.over_length[0]
            rows.append(
                [
                    row.name,
                    row.orders[0],
                    row.formula,
                    short(point.formula),
                    short(point.operations),
                    row.orders[1],
                    f"{shortest.num_products:,} to {point.num_products:,}",
                    show_time(point.timing.median_s),
                    f"{short(point.peak_bytes)}B",
                ]
            )
    first, last = report.plan.lengths[0], report.plan.lengths[-1]
    header = [
        "layer",
        "order",
        "with projections",
        "formula",
        "counted",
        "steps",
        f"products in a row, {first:,} to {last:,}",
        "forward",
        "memory",
    ]
    return ("Operations (2 a multiply-add), steps, seconds, and memory of forward and backward", header, rows)


def _exponents(report: CostReport) -> Table:
    kinds = [f"{what} over {axis}" for axis in ("length", "width") for what in ("operations", "seconds", "bytes")]
    rows = []
    for row in report.rows:
        fits = row.fits()
        if fits:
            rows.append([row.name, *(fits[kind].show() if kind in fits else "" for kind in kinds)])
    plan = report.plan
    title = (
        f"Exponents over length {plan.lengths[0]:,} to {plan.lengths[-1]:,} (d = {plan.width:,}) and width "
        f"{plan.widths[0]:,} to {plan.widths[-1]:,} (n = {plan.length:,}), with standard errors"
    )
    return (title, ["layer", *kinds], rows)


def _paths(report: CostReport) -> Table:
    header = ["layer", "order", *(f"n={length}" for length in report.plan.path_lengths)]
    rows = []
    for row in report.rows:
        cells = [str(found) if found == formula else f"{found} (formula {formula})" for _, found, formula in row.paths]
        rows.append([row.name, row.orders[2], *cells])
    return ("The longest path, in layer steps: gradients followed from the last position to the first", header, rows)


def _uses(report: CostReport) -> Table:
    stack = report.plan.stack
    rows = []
    for use in report.uses:
        limit = "memory" if use.intensity < report.machine.ridge else "arithmetic"
        rows.append(
            [
                use.name,
                short(use.operations),
                f"{short(use.bytes_moved)}B",
                f"{use.intensity:.2f}",
                show_time(use.time_s),
                f"{short(use.flops)}/s",
                f"{short(report.machine.roof(use.intensity))}/s",
                limit,
            ]
        )
    header = ["use", "operations", "moved", "ops per byte", "time", "reached", "roof", "limit"]
    return (f"Under the roof: a Transformer of {stack.num_layers} blocks, {stack.width:,} wide", header, rows)


def crossing_sentence(crossing: Crossing) -> str:
    """Return where attention becomes dearer, in words."""
    if crossing.in_seconds is None:
        measured = f"in seconds not up to n = {crossing.longest_tried:,}"
    else:
        measured = f"in seconds at n = {crossing.in_seconds:,.0f}"
        if len(crossing.times_s) == 1:
            measured = f"in seconds from n = {crossing.longest_tried:,} on or before"
    return (
        f"Self-attention is dearer than {crossing.recurrent} at width {crossing.width:,}: by the orders beyond n = d = "
        f"{crossing.by_orders:,}, by operations with projections beyond n = {crossing.by_operations:,}, {measured}."
    )


def machine_sentence(report: CostReport) -> str:
    """Return peak, bandwidth and ridge, in words."""
    machine = report.machine
    return (
        f"This machine: peak {short(machine.peak_flops)} operations/s, bandwidth {short(machine.bandwidth_bytes)}B/s, "
        f"both measured; below {machine.ridge:.1f} operations per byte it waits for memory."
    )


def disturbed_sentence(report: CostReport) -> str:
    """Return a warning for times that were taken on a busy machine."""
    return (
        f"This machine was busy: the process had {report.cpu_share:.0%} of one core while it measured. Operations, "
        "memory and paths stand; seconds, their exponents and the roofline do not. Measure again when it is idle."
    )


def short(number: float | int) -> str:
    """Return a number with three digits and a decimal prefix."""
    for prefix, size in _DECIMALS:
        if abs(number) >= size:
            return f"{number / size:.3g} {prefix}"
    return f"{number:.3g} "


def show_time(seconds: float) -> str:
    """Return a time in a unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; headers are broken at spaces so that they are hardly wider than what stands below them."""
    broken, widths = [], []
    for column, name in enumerate(header):
        width = max([_NARROWEST, max(map(len, name.split())), *(len(row[column]) for row in rows)])
        broken.append(textwrap.wrap(name, width, break_on_hyphens=False))
        widths.append(max(width, *map(len, broken[-1])))
    height = max(map(len, broken))
    heads = [[lines[line - height + len(lines)] if line >= height - len(lines) else "" for lines in broken]
             for line in range(height)]  # fmt: skip
    lines = []
    for row in [*heads, *rows]:
        cells = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([f"{row[0]:<{widths[0]}}", *cells]).rstrip())
    lines.insert(height, "─" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(lines)
