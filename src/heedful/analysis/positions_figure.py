"""Positions as pictures."""

import math

import torch
from matplotlib.axes import Axes

from heedful.analysis.figure import COLORS, Panel
from heedful.analysis.positions_counter import bits_of
from heedful.analysis.positions_report import COUNTER_LENGTH, PositionsReport
from heedful.analysis.positions_rotation import paired_rows, step_matrix
from heedful.analysis.positions_similarity import similarities

_SIGNED = "PuOr"
"""A map of signed numbers that every kind of colour vision tells apart, light at 0."""

_SHOWN_POSITIONS = 256
_TURNS_SHOWN = (0, 3, 8)


def position_panels(report: PositionsReport) -> dict[str, Panel]:
    """Return the panels that this table has, by subject."""
    panels = {
        "pattern": Panel(_pattern_title(report), lambda axes: _draw_pattern(axes, report), width=2),
        "similarity": Panel("Similarity by distance", lambda axes: _draw_similarity(axes, report)),
        "all pairs": Panel("Similarity of every two positions", lambda axes: _draw_pairs(axes, report)),
    }
    if report.turning is not None:
        steps = report.turning.steps
        panels["turn"] = Panel(f"{steps} steps turn one pair alike everywhere", lambda axes: _draw_turn(axes, report))
        panels["matrix"] = Panel(f"The whole matrix for {steps} steps", lambda axes: _draw_matrix(axes, report))
    if report.counter is not None:
        panels["bits"] = Panel("A binary counter", lambda axes: _draw_bits(axes, report))
        panels["hands"] = Panel("Dimensions of like wavelengths", lambda axes: _draw_hands(axes, report))
        panels["shares"] = Panel("Who carries a step of one?", lambda axes: _draw_shares(axes, report))
    if report.probe is not None:
        panels["probe"] = Panel("What a linear probe reads", lambda axes: _draw_probe(axes, report))
    return panels


def _pattern_title(report: PositionsReport) -> str:
    kind = {"sinusoidal": "Sinusoidal", "learned": "Learned", "rotary": "Rotary"}[report.table.kind]
    return f"{kind} positions"


def _draw_pattern(axes: Axes, report: PositionsReport) -> None:
    rows = report.table.rows[:_SHOWN_POSITIONS]
    largest = float(rows.abs().quantile(0.995)) if rows.numel() < 2**24 else float(rows.abs().max())
    image = axes.imshow(rows.T.numpy(), cmap=_SIGNED, vmin=-largest, vmax=largest, aspect="auto", interpolation="none")
    axes.set(xlabel="position", ylabel="dimension")
    _bar(axes, image)


def _draw_similarity(axes: Axes, report: PositionsReport) -> None:
    distances = [each.distance for each in report.similarity]
    least, largest = [each.least for each in report.similarity], [each.largest for each in report.similarity]
    axes.fill_between(distances, least, largest, color=COLORS[0], alpha=0.25, linewidth=0, label="least to largest")
    axes.plot(distances, [each.mean for each in report.similarity], color=COLORS[0], label="mean")
    axes.set(xlabel="distance k, positions", ylabel="cosine of p and p + k")
    axes.legend(loc="upper right")


def _draw_pairs(axes: Axes, report: PositionsReport) -> None:
    cosines = similarities(report.table.rows[:_SHOWN_POSITIONS])
    image = axes.imshow(cosines.numpy(), cmap=_SIGNED, vmin=-1, vmax=1, interpolation="none")
    axes.set(xlabel="position", ylabel="position")
    _bar(axes, image)


def _draw_turn(axes: Axes, report: PositionsReport) -> None:
    """Draw a pair as a point on a circle at some positions, and where the steps carry it."""
    assert report.turning is not None and report.table.frequencies is not None
    steps, rows = report.turning.steps, paired_rows(report.table)
    pair = _legible_pair(report)
    angles = torch.linspace(0, 2 * math.pi, 200)
    axes.plot(angles.cos(), angles.sin(), color=COLORS[6], linewidth=0.8)
    for number, position in enumerate(each for each in _TURNS_SHOWN if each + steps < len(rows)):
        radius = 1 - 0.14 * number
        start, end = (
            (radius * float(rows[each, 2 * pair]), radius * float(rows[each, 2 * pair + 1]))
            for each in (position, position + steps)
        )
        for point, style in ((start, "--"), (end, "-")):
            axes.plot([0, point[0]], [0, point[1]], style, color=COLORS[number], linewidth=1.4)
        axes.annotate(
            "",
            xy=end,
            xytext=start,
            arrowprops={"arrowstyle": "->", "color": COLORS[number], "connectionstyle": _bow(start, end)},
        )
        axes.plot([], [], color=COLORS[number], label=f"{position} to {position + steps}")
    degrees = math.degrees(float(report.table.frequencies[pair]) * steps)
    axes.set(aspect="equal", xlabel=f"pair {pair}: {degrees:.0f} degrees each time", xticks=[], yticks=[])
    axes.legend(title="position", loc="center left", bbox_to_anchor=(1, 0.5))


def _bow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Bend an arrow outwards."""
    leftward = start[0] * end[1] - start[1] * end[0] > 0
    return f"arc3,rad={0.25 if leftward else -0.25}"


def _legible_pair(report: PositionsReport) -> int:
    """Return the pair whose turn is nearest to 60 degrees."""
    assert report.turning is not None and report.table.frequencies is not None
    return int((report.table.frequencies * report.turning.steps - math.pi / 3).abs().argmin())


def _draw_matrix(axes: Axes, report: PositionsReport) -> None:
    assert report.turning is not None
    matrix = step_matrix(report.table, report.turning.steps)
    image = axes.imshow(matrix.numpy(), cmap=_SIGNED, vmin=-1, vmax=1, interpolation="none")
    check = next(each for each in report.turning.checks if each.steps == report.turning.steps)
    axes.set(xlabel=f"largest error at {check.num_positions} positions: {check.largest_error:.1e}")
    _bar(axes, image)


def _draw_bits(axes: Axes, report: PositionsReport) -> None:
    bits = bits_of(min(len(report.table.rows), COUNTER_LENGTH))
    axes.imshow(bits.T.numpy(), cmap="Greys", vmin=-0.4, vmax=1.2, aspect="auto", interpolation="none")
    axes.set(xlabel="position", ylabel="bit", yticks=range(bits.shape[1]), yticklabels=_bit_names(bits.shape[1]))


def _bit_names(num_bits: int) -> list[str]:
    return [f"{2**bit}s" for bit in range(num_bits)]


def _draw_hands(axes: Axes, report: PositionsReport) -> None:
    assert report.counter is not None
    rows = paired_rows(report.table)[:COUNTER_LENGTH]
    shown = list(dict.fromkeys(report.counter.pairs))
    values = rows[:, [2 * pair for pair in shown]]
    axes.imshow(values.T.numpy(), cmap="Greys", vmin=-1.4, vmax=1.2, aspect="auto", interpolation="none")
    names = [f"{2 * pair} ({report.counter.pair_wavelengths[pair]:.0f} long)" for pair in shown]
    axes.set(xlabel="position", ylabel="dimension", yticks=range(len(shown)), yticklabels=names)


def _draw_shares(axes: Axes, report: PositionsReport) -> None:
    counter = report.counter
    assert counter is not None
    axes.plot(
        [2 * pair for pair in range(len(counter.pair_shares))],
        torch.tensor(counter.pair_shares).cumsum(0).tolist(),
        color=COLORS[0],
        label="dimensions up to this one",
    )
    axes.set(xlabel="dimension", ylabel="share of the squared change", ylim=(0, 1.05))
    axes.legend(loc="lower right")


def _draw_probe(axes: Axes, report: PositionsReport) -> None:
    assert report.probe is not None
    places = range(len(report.probe.scores.predicted))
    axes.plot(places, places, color=COLORS[6], linewidth=0.8)
    for name, scores, color in (
        ("random table", report.probe.random, COLORS[1]),
        ("this table", report.probe.scores, COLORS[0]),
    ):
        axes.plot(places, scores.predicted.tolist(), ".", markersize=3, color=color, label=name)
    axes.set(xlabel="position, held out", ylabel="position read")
    axes.legend(loc="upper left")


def _bar(axes: Axes, image: object) -> None:
    assert axes.figure is not None
    axes.figure.colorbar(image, ax=axes, shrink=0.9)  # type: ignore[arg-type]
