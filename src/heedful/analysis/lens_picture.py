"""One matrix as a picture for a paper: SVG with its text as text, or PNG at 300 dots an inch.

Darkness of one hue carries the value, so that it reads the same with any colour vision, on a screen and in print.
"""

import io
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from heedful.analysis.figure import NO_METADATA, PictureForm
from heedful.analysis.lens_selection import Selected
from heedful.analysis.render import printable
from heedful.core.storage import write_whole

INCHES_PER_CELL = 0.21
MOST_INCHES = 40.0
LONGEST_LABEL = 24
_STYLE: dict[Any, Any] = {
    "font.size": 8,
    "svg.fonttype": "none",
    "svg.hashsalt": "heedful",
    "axes.linewidth": 0.5,
    "text.parse_math": False,
}
_INK = LinearSegmentedColormap.from_list("heedful", ["#ffffff", "#b9d7ea", "#5a9cc8", "#00507d", "#002a45"])


def save_picture(selected: Selected, path: Path, form: PictureForm) -> None:
    """Write a matrix as a picture, in place of what is there.

    Raises:
        OSError: the file cannot be written.
    """
    write_whole(path, draw_picture(selected, form))


def draw_picture(selected: Selected, form: PictureForm) -> bytes:
    """Return the file's content."""
    num_queries, num_keys = selected.values.shape
    cell = min(INCHES_PER_CELL, MOST_INCHES / max(num_queries, num_keys, 1))
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(max(num_keys * cell, 0.6), max(num_queries * cell, 0.4)))
        axes = figure.add_axes((0, 0, 1, 1))
        mesh = axes.pcolormesh(selected.values.numpy(), cmap=_INK, vmin=0, vmax=max(float(selected.values.max()), 1e-9))
        mesh.set_linewidth(0)
        axes.invert_yaxis()
        size = min(8.0, 0.8 * 72 * cell)
        _label(axes.xaxis, selected.keys, size, rotation=90)
        _label(axes.yaxis, selected.queries, size, rotation=0)
        axes.xaxis.tick_top()
        axes.tick_params(length=0, pad=2)
        bar = figure.add_axes((1 + 0.12 / figure.get_figwidth(), 0, 0.08 / figure.get_figwidth(), 1))
        figure.colorbar(mesh, cax=bar).outline.set_linewidth(0.5)
        bar.tick_params(labelsize=6, length=2, width=0.5, pad=1.5)
        axes.text(0, -0.08 / figure.get_figheight(), printable(selected.title), transform=axes.transAxes, va="top")
        content = io.BytesIO()
        metadata = NO_METADATA if form == "svg" else {"Software": None}
        figure.savefig(
            content, format=form, bbox_inches="tight", pad_inches=0.04, dpi=300, facecolor="white", metadata=metadata
        )
    return content.getvalue()


def _label(axis: Any, words: tuple[str, ...], size: float, *, rotation: int) -> None:
    shown = [printable(each) for each in words]
    cut = [each if len(each) <= LONGEST_LABEL else each[: LONGEST_LABEL - 1] + "…" for each in shown]
    axis.set_ticks([place + 0.5 for place in range(len(words))], cut, fontsize=size, rotation=rotation)
