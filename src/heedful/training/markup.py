"""Text made safe and visible for a page: no tag, no control character and no change of direction gets through."""

import html
import unicodedata

_TURNING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C, 0xFEFF}


def escape(text: object) -> str:
    r"""Return anything as text for HTML, in elements and in quoted attributes alike.

    Tabs and line ends stay. Other control characters, lone surrogates, line separators and the marks that turn the
    direction of text are shown as ``\x1b`` or ``\u202e``.
    """
    return html.escape("".join(map(_show, str(text))), quote=True)


def _show(character: str) -> str:
    if character in "\t\n":
        return character
    code = ord(character)
    if code in _TURNING or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
        return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    return character
