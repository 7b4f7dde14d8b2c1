"""Symbols in a fixed order, each with its id after the four reserved ones."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from heedful.core.errors import DataError
from heedful.core.symbols import NUM_RESERVED, UNK_ID
from heedful.text.saved import damaged
from heedful.text.tokenizer import RESERVED_NAMES, UNK_TEXT


class Vocabulary:
    """An immutable list of distinct symbols; the first has the id `NUM_RESERVED`."""

    def __init__(self, symbols: Iterable[str]) -> None:
        self.symbols = tuple(symbols)
        self._ids = {symbol: NUM_RESERVED + index for index, symbol in enumerate(self.symbols)}
        if len(self._ids) != len(self.symbols):
            raise ValueError("a vocabulary's symbols must be distinct")

    @classmethod
    def from_counts(cls, counts: Counter[str], *, min_count: int, max_size: int | None) -> "Vocabulary":
        """Keep the symbols seen often enough, the commonest first and in order of code points among equals.

        Args:
            counts: how often each symbol was seen.
            min_count: rarer symbols are left out.
            max_size: entries at most, the reserved ones included; None for no limit.

        Raises:
            DataError: nothing is left.
        """
        ranked = sorted((-count, symbol) for symbol, count in counts.items() if count >= min_count)
        kept = ranked if max_size is None else ranked[: max_size - NUM_RESERVED]
        if not kept:
            raise DataError(f"No symbol occurs {min_count} times in the training text. Check the data's columns.")
        return cls(symbol for _, symbol in kept)

    def __len__(self) -> int:
        return NUM_RESERVED + len(self.symbols)

    def encode(self, symbols: Iterable[str]) -> list[int]:
        """Return the id of each symbol, UNK for one that is not here."""
        ids = self._ids
        return [ids.get(symbol, UNK_ID) for symbol in symbols]

    def texts(self, ids: Iterable[int]) -> list[str]:
        """Return the text of each id; UNK as `UNK_TEXT`."""
        return [UNK_TEXT if each == UNK_ID else self.symbols[each - NUM_RESERVED] for each in ids]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the symbol of each id, reserved ones by their display names."""
        return [RESERVED_NAMES[each] if each < NUM_RESERVED else self.symbols[each - NUM_RESERVED] for each in ids]

    @classmethod
    def from_saved(cls, symbols: list[Any], path: Path) -> "Vocabulary":
        """Take symbols read from a file.

        Raises:
            BundleError: they are not distinct, non-empty strings.
        """
        if not all(isinstance(each, str) and each for each in symbols) or len(set(symbols)) != len(symbols):
            raise damaged(path, "its symbols are not distinct strings")
        return cls(symbols)
