"""Where given words stand in a text that says the same, but for case, spaces, unknown characters or a cut end."""

import difflib
from collections.abc import Sequence

NOWHERE = (0, 0)
"""The span of a word that is not there: it owns no character."""


def locate_words(words: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Return first and past-the-end place of each word in the text, `NOWHERE` for one that is not in it.

    Spaces count for nothing. Where the two differ (what a tokenizer does not know comes back as one sign), a character
    stands where the alignment of both texts puts it.

    Args:
        words: in order, written as the model's text processing writes them.
        text: what the model's symbols say.
    """
    places = [place for place, letter in enumerate(text) if not letter.isspace()]
    bare = ["".join(word.split()) for word in words]
    found = _align("".join(bare), "".join(text[place] for place in places))
    spans = []
    begin = 0
    for word in bare:
        own = [places[each] for each in found[begin : begin + len(word)] if each is not None]
        spans.append((min(own), max(own) + 1) if own else NOWHERE)
        begin += len(word)
    return spans


def _align(letters: str, text: str) -> list[int | None]:
    """Return for each letter its index in the text, None for one that has none."""
    if text.startswith(letters):
        return list(range(len(letters)))
    found: list[int | None] = [None] * len(letters)
    matcher = difflib.SequenceMatcher(None, letters, text, autojunk=False)
    for tag, first, end, start, stop in matcher.get_opcodes():
        if tag in ("equal", "replace"):
            for index in range(first, end):
                found[index] = min(start + index - first, stop - 1)
    return found
