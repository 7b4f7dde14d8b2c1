"""Reading attention: recording it and drawing it."""

from heedful.analysis.reading import Reading, Side, by_words, read_lines
from heedful.analysis.record import AttentionMap, Recorder, Recording, record
from heedful.analysis.render import draw_svg, draw_text

__all__ = [
    "AttentionMap",
    "Reading",
    "Recorder",
    "Recording",
    "Side",
    "by_words",
    "draw_svg",
    "draw_text",
    "read_lines",
    "record",
]
