"""What happens to a text before it is cut into symbols."""

import re
import unicodedata
from typing import Literal

Normalization = Literal["NFC", "NFKC", "none"]
"""A Unicode normalisation form (Annex 15): NFC joins accents to letters, NFKC also unifies widths and ligatures."""

_SURROGATES = re.compile("[\ud800-\udfff]")
_SPACES = re.compile(r"[^\S\n]+")


def normalize(text: str, *, form: Normalization, lowercase: bool, collapse_spaces: bool) -> str:
    """Return the text normalised; a lone surrogate, which no file can hold, becomes U+FFFD.

    Args:
        text: any text.
        form: the Unicode form.
        lowercase: lower the case.
        collapse_spaces: make one space of each run of white space other than line breaks, and none at the ends.
    """
    if not text.isascii():
        text = _SURROGATES.sub("\ufffd", text)
        text = text if form == "none" else unicodedata.normalize(form, text)
    if lowercase:
        text = text.lower()
        if form != "none" and not text.isascii():
            text = unicodedata.normalize(form, text)  # lowering can take a text out of its form
    if collapse_spaces:
        text = _SPACES.sub(" ", text).strip(" ")
    return text
