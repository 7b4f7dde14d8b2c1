"""What every tokenizer can do: text to ids and back, without BOS or EOS, which are the codec's business."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from heedful.core.symbols import BOS_ID, EOS_ID, PAD_ID

RESERVED_NAMES = ("<pad>", "<unk>", "<s>", "</s>")
"""How `pieces` shows the ids 0 to 3."""

UNK_TEXT = "\u2047"
"""What `decode` writes for an unknown symbol (two question marks in one character)."""


class Tokenizer(ABC):
    """A mapping between text and ids. The ids 0 to 3 mean PAD, UNK, BOS, EOS in every one.

    A tokenizer is fixed once made: `encode`, `sample`, `decode` and `pieces` change nothing and may be called from
    several threads.
    """

    kind: ClassVar[str]
    """Its name in configurations and files."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of ids, the reserved ones included."""

    @property
    def is_sampling(self) -> bool:
        """True if `sample` draws one of several segmentations."""
        return False

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, UNK for what the vocabulary lacks; no BOS or EOS."""

    def sample(self, text: str, seed: int) -> list[int]:
        """Return ids drawn by the seed alone; the same as `encode` for a tokenizer with one segmentation."""
        return self.encode(text)

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of the ids. PAD, BOS and EOS are left out, UNK is written as `UNK_TEXT`."""

    @abstractmethod
    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return one string for each id, as a person should see it; reserved ids as in `RESERVED_NAMES`."""

    @abstractmethod
    def save(self, folder: Path, name: str) -> None:
        """Write ``name.json`` (and, for some kinds, a second file) into the folder."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, name: str) -> "Tokenizer":
        """Read what `save` wrote.

        Raises:
            BundleError: a file is missing or damaged.
        """

    @classmethod
    @abstractmethod
    def train(cls, config: Any, lines: Iterable[str], *, folder: Path = Path()) -> "Tokenizer":
        """Make a tokenizer from training text alone.

        Args:
            config: the configuration class that belongs to this tokenizer.
            lines: the text, read once.
            folder: where a relative path in the configuration starts.

        Raises:
            ConfigError: the configuration does not go with the text.
            DataError: there is no text.
        """


def without_reserved(ids: Sequence[int]) -> list[int]:
    """Return the ids that stand for text: all but PAD, BOS and EOS."""
    return [each for each in ids if each not in (PAD_ID, BOS_ID, EOS_ID)]
