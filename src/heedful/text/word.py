"""A symbol for each word: what stands between spaces, with punctuation split off if wished."""

import re
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

_JOINER = "\uffed"
_PARTS = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


class WordConfig(Config):
    """Words as symbols.

    Attributes:
        split_punctuation: True splits ``(well, it's)`` into ``(``, ``well``, ``,``, ``it's``, ``)``; False takes what
            stands between spaces, as for phonemes or text that is tokenised already.
        min_count: rarer words become UNK.
        max_size: entries at most, the four reserved ones included; absent for no limit.
    """

    kind: Literal["word"] = "word"
    split_punctuation: bool = False
    min_count: int = Field(default=1, ge=1)
    max_size: int | None = Field(default=None, gt=NUM_RESERVED)


class WordTokenizer(Tokenizer):
    """One id for each word.

    Known words come back exactly, except that every run of white space becomes one space and none is left at the ends.
    A part that was written without a space before it carries a joiner in front (U+FFED), so that ``it (is).`` is put
    together again as it was.
    """

    kind = "word"

    def __init__(self, vocabulary: Vocabulary, *, split_punctuation: bool) -> None:
        self.vocabulary = vocabulary
        self.split_punctuation = split_punctuation

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        return self.vocabulary.encode(split_words(text, split_punctuation=self.split_punctuation))

    def decode(self, ids: Sequence[int]) -> str:
        words = self.vocabulary.texts(without_reserved(ids))
        if not self.split_punctuation:
            return " ".join(words)
        # A joined part is the joiner and at least one character; the joiner alone is the character itself.
        return "".join(word[1:] if _is_joined(word) else f" {word}" for word in words).removeprefix(" ")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.vocabulary.pieces(ids)

    def save(self, folder: Path, name: str) -> None:
        values = {
            "kind": self.kind,
            "split_punctuation": self.split_punctuation,
            "symbols": list(self.vocabulary.symbols),
        }
        write_json(folder / f"{name}.json", values)

    @classmethod
    def load(cls, folder: Path, name: str) -> "WordTokenizer":
        path = folder / f"{name}.json"
        values = read_json(path, symbols=list, split_punctuation=bool)
        vocabulary = Vocabulary.from_saved(values["symbols"], path)
        return cls(vocabulary, split_punctuation=values["split_punctuation"])

    @classmethod
    def train(cls, config: WordConfig, lines: Iterable[str], *, folder: Path = Path()) -> "WordTokenizer":
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(split_words(line, split_punctuation=config.split_punctuation))
        vocabulary = Vocabulary.from_counts(counts, min_count=config.min_count, max_size=config.max_size)
        return cls(vocabulary, split_punctuation=config.split_punctuation)


def split_words(text: str, *, split_punctuation: bool) -> list[str]:
    """Return the words of a text; with ``split_punctuation`` a part that follows without a space carries the joiner."""
    chunks = text.split()
    if not split_punctuation:
        return chunks
    return [_JOINER + part if index else part for chunk in chunks for index, part in enumerate(_PARTS.findall(chunk))]


def _is_joined(word: str) -> bool:
    return len(word) > 1 and word[0] == _JOINER
