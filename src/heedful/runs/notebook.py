"""The lens in a notebook: the page's own module, with a live model behind it."""

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from heedful.analysis.lens import Lens, LensSilence
from heedful.analysis.lens_page import MODULE, STYLE, read_part
from heedful.core.errors import HeedfulError

Silence = Callable[[list[tuple[str, int]], int], LensSilence]
"""Answers with heads silent, each a path and a number, in the view of that index."""


class LensWidget(anywidget.AnyWidget):
    """A view of a lens that silences heads when it is asked to.

    Args:
        lens: what is shown.
        silence: is called with what the page asks for.
    """

    _esm = read_part(MODULE)
    _css = read_part(STYLE)
    lens = traitlets.Dict().tag(sync=True)

    def __init__(self, lens: Lens, silence: Silence) -> None:
        super().__init__(lens=lens.to_values())
        self._silence = silence
        self.on_msg(self._answer)

    def _answer(self, _: Any, message: dict[str, Any], __: Any) -> None:
        """Answer a message ``{id, view, heads}`` with ``{id, answer}`` or ``{id, error}``."""
        try:
            heads = [(str(path), int(head)) for path, head in message["heads"]]
            answer = self._silence(heads, int(message["view"]))
            self.send({"id": message.get("id"), "answer": answer.model_dump(mode="json")})
        except (HeedfulError, LookupError, RuntimeError, TypeError, ValueError) as error:
            self.send({"id": message.get("id"), "error": str(error)})
