"""Texts in SentencePiece's spelling taken apart into words and put together as symbols, for sampling."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from heedful.core.symbols import UNK_ID

SPACE = "\u2581"
_WORD = re.compile(f"{SPACE}?[^{SPACE}]+|{SPACE}")


class Words:
    """No piece crosses the space before a word, nor a user's own symbol, so that words are segmented one by one.

    Args:
        ids: of the pieces, their space written as U+2581.
        user_symbols: strings that are always one symbol, and their ids.
        byte_ids: the symbols of the 256 bytes, which spell a character that is no piece; None leaves it unknown.
    """

    def __init__(self, ids: Mapping[str, int], user_symbols: Mapping[str, int], byte_ids: Sequence[int] | None) -> None:
        self._ids = ids
        self._user_symbols = user_symbols
        self._byte_ids = byte_ids
        longest_first = sorted(user_symbols, key=lambda each: (-len(each), each))
        self._user_symbol = re.compile("|".join(map(re.escape, longest_first))) if user_symbols else None

    def symbols(self, text: str, segment: Callable[[str], Sequence[str]]) -> list[int]:
        """Return the symbols of a text whose words are segmented by the function.

        A run of unknown characters is one unknown symbol, as SentencePiece has it.
        """
        symbols: list[int] = []
        for part, is_user_symbol in self._parts(text):
            if is_user_symbol:
                symbols.append(self._user_symbols[part])
                continue
            for piece in segment(part):
                if piece in self._ids:
                    symbols.append(self._ids[piece])
                elif self._byte_ids is not None:
                    symbols.extend(self._byte_ids[byte] for byte in piece.encode("utf-8"))
                elif symbols[-1:] != [UNK_ID]:
                    symbols.append(UNK_ID)
        return symbols

    def _parts(self, text: str) -> Iterator[tuple[str, bool]]:
        """Yield words, each with the space before it, and user symbols, which are marked by True."""
        place = 0
        for match in () if self._user_symbol is None else self._user_symbol.finditer(text):
            yield from ((word, False) for word in _WORD.findall(text[place : match.start()]))
            yield match.group(), True
            place = match.end()
        yield from ((word, False) for word in _WORD.findall(text[place:]))
