"""A matrix of weights between words, drawn for a terminal or a page.

Darkness (light on dark grounds: brightness) of one hue carries the weight, so that it reads the same with any colour
vision and in print. Words are shown with everything that could steer a terminal or a page escaped.
"""

import html
import math
from collections.abc import Sequence

from jaxtyping import Float
from rich.cells import cell_len, set_cell_size
from rich.text import Text
from torch import Tensor

SHADES = " ░▒▓█"
"""From nothing to the largest weight of the matrix, in equal steps; a weight gets the nearest."""

LONGEST_WORD = 24
"""Terminal cells of a word; what is longer is cut with an ellipsis."""

_CELL = 18
_CHARACTER = 7.5
_STYLE = (
    ".heedful-map{font:12px system-ui,sans-serif;color-scheme:light dark}"
    ".heedful-map text{fill:currentColor}"
    ".heedful-map .grid{fill:none;stroke:currentColor;stroke-opacity:.35}"
    ".heedful-map .cell{fill:#00507d}"
    "@media (prefers-color-scheme:dark){.heedful-map .cell{fill:#7cc7f5}}"
)


def printable(word: str) -> str:
    """Return a word with control, format and line-breaking characters as Python's escapes for them."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in word)


def draw_text(weights: Float[Tensor, "Q K"], queries: Sequence[str], keys: Sequence[str]) -> Text:
    """Draw for a terminal: a row for each query, a column two cells wide for each key, whose word runs downwards.

    The characters alone carry the picture, for pipes and plain files (``.plain``); colour only strengthens it.

    Raises:
        ValueError: there are not as many words as weights.
    """
    values, largest = _checked(weights, queries, keys)
    rows = [_shorten(each) for each in queries]
    columns = [_letters(_shorten(each)) for each in keys]
    margin = max(map(cell_len, rows), default=0)
    height = max(map(len, columns), default=0)
    drawn = Text()
    for line in range(height):
        letters = [each[line - height + len(each)] if line >= height - len(each) else "" for each in columns]
        drawn.append(f"{' ' * margin}  {''.join(set_cell_size(each, 2) for each in letters)}".rstrip() + "\n")
    for word, row in zip(rows, values, strict=True):
        drawn.append(f"{' ' * (margin - cell_len(word))}{word} ▏")
        drawn.append("".join(2 * _shade(each, largest) for each in row), style="bright_blue")
        drawn.append("▕\n")
    drawn.append(
        f"{' ' * margin}  {SHADES[1]} {largest / (len(SHADES) - 1):.2f} … {SHADES[-1]} {largest:.2f}\n", style="dim"
    )
    return drawn


def draw_svg(
    weights: Float[Tensor, "Q K"], queries: Sequence[str], keys: Sequence[str], *, title: str = "attention weights"
) -> str:
    """Draw for a page: an ``<svg>`` element that follows the page's text colour and light or dark scheme.

    Each cell tells its words and weight when pointed at.

    Raises:
        ValueError: there are not as many words as weights.
    """
    values, largest = _checked(weights, queries, keys)
    rows, columns = [_shorten(each) for each in queries], [_shorten(each) for each in keys]
    left = 12 + _CHARACTER * max(map(cell_len, rows), default=0)
    top = 12 + _CHARACTER * max(map(cell_len, columns), default=0)
    width, height = _CELL * len(columns), _CELL * len(rows)
    parts = [
        f'<svg class="heedful-map" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{_escape(title)}" '
        f'viewBox="0 0 {left + width + 4:g} {top + height + 4:g}" width="{left + width + 4:g}">',
        f"<style>{_STYLE}</style><title>{_escape(title)}</title>",
    ]
    for column, word in enumerate(columns):
        x = left + _CELL * (column + 0.7)
        parts.append(f'<text transform="translate({x:g} {top - 6:g}) rotate(-90)">{_escape(word)}</text>')
    for row, word in enumerate(rows):
        y = top + _CELL * (row + 0.7)
        parts.append(f'<text x="{left - 6:g}" y="{y:g}" text-anchor="end">{_escape(word)}</text>')
        parts += [
            _cell(left + _CELL * column, top + _CELL * row, weight, largest, f"{queries[row]} → {keys[column]}")
            for column, weight in enumerate(values[row])
        ]
    parts.append(f'<rect class="grid" x="{left:g}" y="{top:g}" width="{width}" height="{height}"/></svg>')
    return "\n".join(parts)


def _cell(x: float, y: float, weight: float, largest: float, words: str) -> str:
    opacity = weight / largest if largest > 0 and weight > 0 else 0.0
    return (
        f'<rect class="cell" x="{x:g}" y="{y:g}" width="{_CELL}" height="{_CELL}" fill-opacity="{opacity:.3f}">'
        f"<title>{_escape(words)}: {weight:.3f}</title></rect>"
    )


def _checked(weights: Tensor, queries: Sequence[str], keys: Sequence[str]) -> tuple[list[list[float]], float]:
    """Return the weights as numbers, those that are none as 0, and the largest."""
    if tuple(weights.shape) != (len(queries), len(keys)):
        raise ValueError(f"{len(queries)} x {len(keys)} words do not fit weights of shape {tuple(weights.shape)}.")
    values = [[each if math.isfinite(each) else 0.0 for each in row] for row in weights.tolist()]
    return values, max((each for row in values for each in row), default=0.0)


def _shade(weight: float, largest: float) -> str:
    if weight <= 0 or largest <= 0:
        return SHADES[0]
    return SHADES[math.floor(weight / largest * (len(SHADES) - 1) + 0.5)]


def _shorten(word: str) -> str:
    shown = printable(word)
    return shown if cell_len(shown) <= LONGEST_WORD else set_cell_size(shown, LONGEST_WORD - 1).rstrip() + "…"


def _letters(word: str) -> list[str]:
    """Return the letters of a word, each with the marks that sit on it."""
    letters: list[str] = []
    for each in word:
        if letters and cell_len(each) == 0:
            letters[-1] += each
        else:
            letters.append(each)
    return letters


def _escape(text: str) -> str:
    return html.escape(printable(text))
