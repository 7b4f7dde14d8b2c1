"""A symbol for each character (Unicode code point)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from heedful.core.config import Config
from heedful.core.symbols import NUM_RESERVED
from heedful.text.saved import read_json, write_json
from heedful.text.tokenizer import Tokenizer, without_reserved
from heedful.text.vocabulary import Vocabulary


class CharacterConfig(Config):
    """Characters as symbols.

    Attributes:
        min_count: rarer characters become UNK.
        max_size: entries at most, the four reserved ones included; absent for no limit.
    """

    kind: Literal["character"] = "character"
    min_count: int = Field(default=1, ge=1)
    max_size: int | None = Field(default=None, gt=NUM_RESERVED)


class CharacterTokenizer(Tokenizer):
    """One id for each character; lossless for text whose characters are all known."""

    kind = "character"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        return self.vocabulary.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.vocabulary.texts(without_reserved(ids)))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.vocabulary.pieces(ids)

    def save(self, folder: Path, name: str) -> None:
        write_json(folder / f"{name}.json", {"kind": self.kind, "symbols": list(self.vocabulary.symbols)})

    @classmethod
    def load(cls, folder: Path, name: str) -> "CharacterTokenizer":
        path = folder / f"{name}.json"
        return cls(Vocabulary.from_saved(read_json(path, symbols=list)["symbols"], path))

    @classmethod
    def train(cls, config: CharacterConfig, lines: Iterable[str], *, folder: Path = Path()) -> "CharacterTokenizer":
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(line)
        return cls(Vocabulary.from_counts(counts, min_count=config.min_count, max_size=config.max_size))
