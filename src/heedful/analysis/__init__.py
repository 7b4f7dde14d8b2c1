"""Reading attention: recording it and drawing it."""

from heedful.analysis.record import AttentionMap, Recorder, Recording, record
from heedful.analysis.render import draw_svg, draw_text

__all__ = ["AttentionMap", "Recorder", "Recording", "draw_svg", "draw_text", "record"]
