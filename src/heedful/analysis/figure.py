"""Panels drawn by matplotlib: one for a section of a page, or all together as an SVG or PNG file.

In SVG the ink is ``currentColor`` and the ground is clear, so that a picture on a page follows its light or dark
scheme; text stays text. Colours of lines are Okabe and Ito's (2008), which differ for every kind of colour vision.
"""

import html
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.analysis.render import printable
from heedful.core.storage import write_whole

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
MARKERS = "os^Dv*P"
PictureForm = Literal["svg", "png"]
_INK = "#121314"
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "heedful",
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), _INK),
}
NO_METADATA: dict[Any, Any] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
"""What an SVG file would say of when and by what it was made."""


@dataclass(frozen=True)
class Panel:
    """One picture.

    Attributes:
        title: above it.
        draw: draws it.
        width: in units of a narrow panel, 1 or 2.
    """

    title: str
    draw: Callable[[Axes], None]
    width: int = 1


def panel_svg(panel: Panel) -> str:
    """Return an ``<svg>`` element for a page, which has a heading of its own."""
    # All panels of a page are stretched to its width: one figure as wide as two would have letters half as large.
    return _svg([Panel("", panel.draw)], label=panel.title, inches=4.7 if panel.width == 1 else 5.6)


def save_panels(panels: Sequence[Panel], path: Path, form: PictureForm, *, title: str) -> None:
    """Write all panels as one picture.

    Raises:
        OSError: the file cannot be written; one that was there is untouched.
    """
    if form == "svg":
        write_whole(path, _svg(panels, label=title).encode())
        return
    with matplotlib.rc_context({**_STYLE, "figure.facecolor": "white"}):
        buffer = io.BytesIO()
        _figure(panels).savefig(buffer, format="png", dpi=160)
    write_whole(path, buffer.getvalue())


def _figure(panels: Sequence[Panel], inches: float = 4.7) -> Figure:
    """Set panels in rows, two units wide (a single narrow one: one unit); a unit is so many inches."""
    rows: list[list[Panel]] = []
    for panel in panels:
        if rows and sum(each.width for each in rows[-1]) + panel.width <= 2:
            rows[-1].append(panel)
        else:
            rows.append([panel])
    columns = max(sum(each.width for each in row) for row in rows)
    figure = Figure(figsize=(inches * columns, 3.3 * len(rows)), layout="constrained")
    grid = figure.add_gridspec(len(rows), columns)
    for number, row in enumerate(rows):
        place = 0
        for panel in row:
            axes = figure.add_subplot(grid[number, place : place + panel.width])
            panel.draw(axes)
            axes.set_title(panel.title)
            place += panel.width
    return figure


def _svg(panels: Sequence[Panel], *, label: str, inches: float = 4.7) -> str:
    with matplotlib.rc_context(_STYLE):
        buffer = io.StringIO()
        _figure(panels, inches).savefig(buffer, format="svg", metadata=NO_METADATA)
    text = buffer.getvalue().replace(_INK, "currentColor")
    text = text[text.index("<svg") :]
    return text.replace("<svg ", f'<svg role="img" aria-label="{html.escape(printable(label))}" ', 1)
