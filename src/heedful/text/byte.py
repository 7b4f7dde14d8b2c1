"""A symbol for each of the 256 bytes of UTF-8: no vocabulary to train, nothing unknown."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from heedful.core.config import Config
from heedful.core.symbols import NUM_RESERVED
from heedful.text.saved import read_json, write_json
from heedful.text.tokenizer import RESERVED_NAMES, Tokenizer


class ByteConfig(Config):
    """Bytes of UTF-8 as symbols."""

    kind: Literal["byte"] = "byte"


class ByteTokenizer(Tokenizer):
    """One id for each byte, lossless. Bytes that are no UTF-8 (a model may write some) decode to U+FFFD."""

    kind = "byte"

    @property
    def size(self) -> int:
        return NUM_RESERVED + 256

    def encode(self, text: str) -> list[int]:
        return [NUM_RESERVED + each for each in text.encode("utf-8", errors="replace")]

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(each - NUM_RESERVED for each in ids if each >= NUM_RESERVED).decode("utf-8", errors="replace")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [RESERVED_NAMES[each] if each < NUM_RESERVED else _show(each - NUM_RESERVED) for each in ids]

    def save(self, folder: Path, name: str) -> None:
        write_json(folder / f"{name}.json", {"kind": self.kind})

    @classmethod
    def load(cls, folder: Path, name: str) -> "ByteTokenizer":
        read_json(folder / f"{name}.json", kind=str)
        return cls()

    @classmethod
    def train(cls, config: ByteConfig, lines: Iterable[str], *, folder: Path = Path()) -> "ByteTokenizer":
        return cls()


def _show(byte: int) -> str:
    return chr(byte) if 0x20 <= byte < 0x7F else f"<{byte:02X}>"
