"""Line charts as inline SVG: no library, no script, readable in light and dark, on a phone and by the colour-blind.

Colours are classes ``series-0`` .. ``series-6`` that the page's style sheet fills (Okabe and Ito, 2008, "Color
Universal Design"); each also has its own dashes, so that nothing hangs on colour alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heedful.training.markup import escape

WIDTH, HEIGHT = 480.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 54.0, 12.0, 30.0, 44.0
MAX_POINTS = 200
MARKED_POINTS = 40
DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4", "4 2", "1 4")


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Attributes:
        name: for the legend and the hints.
        points: (x, y), by rising x; those that are not finite are left out.
    """

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """A linear scale: values from ``low`` to ``high`` on places from ``start`` to ``end``.

    Attributes:
        low: value at the start.
        high: value at the end.
        start: place in the picture.
        end: place in the picture.
    """

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Return where a value stands."""
        return round(self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start), 2)

    def ticks(self) -> list[float]:
        """Return about five round values between low and high."""
        step = _round_step((self.high - self.low) / 5)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        return [(first + number) * step for number in range(count)]


def line_chart(lines: Sequence[Line], *, x_name: str, y_name: str) -> str:
    """Return a chart as an HTML figure with a legend; each point says its values when pointed at.

    Args:
        lines: at most seven; those without a finite point are left out.
        x_name: what the horizontal axis counts.
        y_name: what the vertical axis measures.
    """
    thinned = [Line(line.name, _thin(line.points)) for line in lines]
    drawn = [line for line in thinned if line.points]
    if not drawn:
        return f'<p class="empty">No values of {escape(y_name)} yet.</p>'
    across = _axis([x for line in drawn for x, _ in line.points], LEFT, WIDTH - RIGHT)
    upward = _axis([y for line in drawn for _, y in line.points], HEIGHT - BOTTOM, TOP)
    label = escape(f"{y_name} by {x_name}: " + ", ".join(line.name for line in drawn))
    parts = [
        f'<figure class="chart"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">',
        _grid(across, upward),
        _names(x_name, y_name),
        *(_draw(line, number, across, upward) for number, line in enumerate(drawn)),
        "</svg>",
        _legend(drawn) if len(drawn) > 1 else "",
        "</figure>",
    ]
    return "".join(parts)


def show_number(value: float) -> str:
    """Return a number as a person writes it: 12,000, 0.034, 1.5e-05."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _axis(values: list[float], start: float, end: float) -> Axis:
    low, high = min(values), max(values)
    if low == high:
        margin = abs(low) * 0.1 or 1.0
        low, high = low - margin, high + margin
    return Axis(low, high, start, end)


def _round_step(wanted: float) -> float:
    unit = float(10 ** math.floor(math.log10(wanted)))
    return next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= wanted * 0.999)


def _thin(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return at most MAX_POINTS points: the last x and the mean y of runs of equal length."""
    finite = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
    length = math.ceil(len(finite) / MAX_POINTS) or 1
    runs = [finite[start : start + length] for start in range(0, len(finite), length)]
    return [(run[-1][0], sum(y for _, y in run) / len(run)) for run in runs]


def _grid(across: Axis, upward: Axis) -> str:
    parts = []
    for value in across.ticks():
        x = across.place(value)
        parts.append(f'<line class="grid" x1="{x}" y1="{upward.end}" x2="{x}" y2="{upward.start}"/>')
        parts.append(f'<text x="{x}" y="{upward.start + 16}" text-anchor="middle">{show_number(value)}</text>')
    for value in upward.ticks():
        y = upward.place(value)
        parts.append(f'<line class="grid" x1="{across.start}" y1="{y}" x2="{across.end}" y2="{y}"/>')
        parts.append(f'<text x="{across.start - 6}" y="{y + 4}" text-anchor="end">{show_number(value)}</text>')
    corner = f"M{across.start} {upward.end}V{upward.start}H{across.end}"
    return "".join(parts) + f'<path class="axis" d="{corner}"/>'


def _names(x_name: str, y_name: str) -> str:
    x = (LEFT + WIDTH - RIGHT) / 2
    return (
        f'<text class="name" x="{x}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_name)}</text>'
        f'<text class="name" x="2" y="14">{escape(y_name)}</text>'
    )


def _draw(line: Line, number: int, across: Axis, upward: Axis) -> str:
    places = [(across.place(x), upward.place(y)) for x, y in line.points]
    path = "M" + "L".join(f"{x} {y}" for x, y in places)
    is_marked = len(places) <= MARKED_POINTS
    parts = [f'<path class="series series-{number % 7}" stroke-dasharray="{DASHES[number % 7]}" d="{path}"/>']
    for (x, y), (at, value) in zip(places, line.points, strict=True):
        hint = escape(f"{line.name}: {show_number(value)} at {show_number(at)}")
        if is_marked:
            parts.append(f'<circle class="mark series-{number % 7}" cx="{x}" cy="{y}" r="2.5"/>')
        parts.append(f'<circle class="hint" cx="{x}" cy="{y}" r="7"><title>{hint}</title></circle>')
    return "".join(parts)


def _legend(lines: list[Line]) -> str:
    items = [
        f'<span><svg class="swatch" viewBox="0 0 28 8" aria-hidden="true"><path class="series series-{number % 7}" '
        f'stroke-dasharray="{DASHES[number % 7]}" d="M0 4H28"/></svg> {escape(line.name)}</span>'
        for number, line in enumerate(lines)
    ]
    return f"<figcaption>{' '.join(items)}</figcaption>"
