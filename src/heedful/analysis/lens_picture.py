"""The lens as a picture for a paper: SVG with its text as text, or PNG at 300 dots an inch.

One matrix, the same as lines between words, or all heads of a kind. Darkness of one hue carries the value, so that it
reads the same with any colour vision, on a screen and in print.
"""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Curve

from heedful.analysis.figure import NO_METADATA, PictureForm
from heedful.analysis.lens_selection import Selected
from heedful.analysis.render import printable
from heedful.core.storage import write_whole

Drawing = Literal["matrix", "lines", "heads"]

INCHES_PER_CELL = 0.21
MOST_INCHES = 40.0
LONGEST_LABEL = 24
INCHES_PER_LINE = 0.21
MOST_LINES = 600
PAGE_INCHES = 6.8
"""Width of all heads side by side: that of a page."""
LEAST_FONT = 3.5
"""Points; smaller words are left out."""
_STYLE: dict[Any, Any] = {
    "font.size": 8,
    "svg.fonttype": "none",
    "svg.hashsalt": "heedful",
    "axes.linewidth": 0.5,
    "text.parse_math": False,
}
_INK = LinearSegmentedColormap.from_list("heedful", ["#ffffff", "#b9d7ea", "#5a9cc8", "#00507d", "#002a45"])


def save_picture(draw: Callable[[], Figure], path: Path, form: PictureForm) -> None:
    """Write a drawing as a picture, in place of what is there.

    Raises:
        OSError: the file cannot be written.
    """
    with matplotlib.rc_context(_STYLE):
        content = io.BytesIO()
        metadata = NO_METADATA if form == "svg" else {"Software": None}
        draw().savefig(
            content, format=form, bbox_inches="tight", pad_inches=0.04, dpi=300, facecolor="white", metadata=metadata
        )
    write_whole(path, content.getvalue())


def draw_matrix(selected: Selected) -> Figure:
    """Return one matrix with a colour bar."""
    num_queries, num_keys = selected.values.shape
    cell = min(INCHES_PER_CELL, MOST_INCHES / max(num_queries, num_keys, 1))
    figure = Figure(figsize=(max(num_keys * cell, 0.6), max(num_queries * cell, 0.4)))
    axes = figure.add_axes((0, 0, 1, 1))
    mesh = _paint(axes, selected, max(float(selected.values.max()), 1e-9))
    size = min(8.0, 0.8 * 72 * cell)
    _label(axes.xaxis, selected.keys, size, rotation=90)
    _label(axes.yaxis, selected.queries, size, rotation=0)
    _add_bar(figure, mesh)
    axes.text(0, -0.08 / figure.get_figheight(), printable(selected.title), transform=axes.transAxes, va="top")
    return figure


def draw_lines(selected: Selected) -> Figure:
    """Return two columns of words, those at the left reading those at the right; the strongest 600 lines at most."""
    num_queries, num_keys = selected.values.shape
    height = max(num_queries, num_keys)
    pitch = min(INCHES_PER_LINE, MOST_INCHES / max(height, 1))
    figure = Figure(figsize=(1.6, max(height * pitch, 0.4)))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 1), ylim=(height, 0))
    axes.set_axis_off()
    largest = max(float(selected.values.max()), 1e-9)
    strengths, places = selected.values.flatten().sort(descending=True)
    # Drawn from the weakest on, so that no strong line lies under weak ones.
    for strength, place in reversed(
        list(zip(strengths[:MOST_LINES].tolist(), places[:MOST_LINES].tolist(), strict=True))
    ):
        if strength > 0:
            row, column = divmod(place, num_keys)
            share = strength / largest
            points = [(0, row + 0.5), (0.5, row + 0.5), (0.5, column + 0.5), (1, column + 0.5)]
            curve = Curve(points, [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4])
            axes.add_patch(PathPatch(curve, fill=False, edgecolor=_INK(1.0), alpha=share, linewidth=0.3 + 1.5 * share))
    size = min(8.0, 0.8 * 72 * pitch)
    for words, x, side in ((selected.queries, -0.04, "right"), (selected.keys, 1.04, "left")):
        for place, word in enumerate(_shown(words)):
            axes.text(x, place + 0.5, word, ha=side, va="center", fontsize=size)
    axes.text(0.5, height + 0.3, printable(selected.title), ha="center", va="top")
    return figure


def draw_heads(layers: Sequence[Sequence[Selected]]) -> Figure:
    """Return all heads of some layers, a row for each layer, in one scale; each head's title stands above it."""
    most = max(len(layer) for layer in layers)
    num_queries, num_keys = layers[0][0].values.shape
    tile = PAGE_INCHES / max(most, 4)
    ratio = min(max(num_queries / max(num_keys, 1), 0.25), 4.0)
    across, down = tile + 0.1, tile * ratio + 0.24
    figure = Figure(figsize=(most * across, len(layers) * down))
    largest = max(1e-9, *(float(each.values.max()) for layer in layers for each in layer))
    width, height = figure.get_size_inches()
    mesh = None
    for row, layer in enumerate(layers):
        for column, each in enumerate(layer):
            bottom = 1 - ((row + 1) * down) / height
            axes = figure.add_axes((column * across / width, bottom, tile / width, tile * ratio / height))
            mesh = _paint(axes, each, largest)
            axes.set_title(printable(each.title), fontsize=6, pad=2)
            sizes = 0.8 * 72 * tile * ratio / max(num_queries, 1), 0.8 * 72 * tile / max(num_keys, 1)
            _label(axes.yaxis, each.queries if column == 0 else (), min(6.0, sizes[0]), rotation=0)
            _label(axes.xaxis, each.keys if row == len(layers) - 1 else (), min(6.0, sizes[1]), rotation=90)
            axes.xaxis.tick_bottom()
    _add_bar(figure, mesh)
    return figure


def _paint(axes: Axes, selected: Selected, largest: float) -> Any:
    mesh = axes.pcolormesh(selected.values.numpy(), cmap=_INK, vmin=0, vmax=largest)
    mesh.set_linewidth(0)
    axes.invert_yaxis()
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=2)
    return mesh


def _add_bar(figure: Figure, mesh: Any) -> None:
    bar = figure.add_axes((1 + 0.12 / figure.get_figwidth(), 0, 0.08 / figure.get_figwidth(), 1))
    figure.colorbar(mesh, cax=bar).outline.set_linewidth(0.5)
    bar.tick_params(labelsize=6, length=2, width=0.5, pad=1.5)


def _label(axis: Any, words: Sequence[str], size: float, *, rotation: int) -> None:
    words = words if size >= LEAST_FONT else ()
    axis.set_ticks([place + 0.5 for place in range(len(words))], _shown(words), fontsize=size, rotation=rotation)


def _shown(words: Sequence[str]) -> list[str]:
    shown = [printable(each) for each in words]
    return [each if len(each) <= LONGEST_LABEL else each[: LONGEST_LABEL - 1] + "…" for each in shown]
