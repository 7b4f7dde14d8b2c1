"""The codec of a model: how its source and target texts become rows of ids, and ids become text again."""

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import Field, model_validator

from heedful.core.config import Config, parse_config
from heedful.core.errors import BundleError, ConfigError, DataError
from heedful.core.symbols import BOS_ID, EOS_ID, UNK_ID
from heedful.text.catalogue import AnyTokenizerConfig, load_tokenizer, train_tokenizer
from heedful.text.normalization import Normalization, normalize
from heedful.text.saved import damaged, read_json, write_json
from heedful.text.subword import SubwordConfig
from heedful.text.tokenizer import Tokenizer
from heedful.text.unread import Unread

_FILE = "codec.json"

Pair = tuple[str | None, str | None]
"""A source and a target text; None where a task has no such side."""


class TextConfig(Config):
    """How text becomes symbols.

    Attributes:
        source: tokenizer of the source.
        target: tokenizer of the target; absent means a second one like the source's. Not with `is_joint`.
        is_joint: one vocabulary, trained on both sides, serves both (the embeddings may then be shared).
        normalization: Unicode form of all text: ``NFC``, ``NFKC`` or ``none``.
        lowercase: lower the case of all text, outputs included.
        collapse_spaces: make one space of each run of spaces and tabs, and none at the ends; line breaks stay.
        max_source_length: symbols of a source at most, EOS not counted; a longer one is cut and reported.
        max_target_length: symbols of a target at most, BOS and EOS not counted; likewise.
    """

    source: AnyTokenizerConfig = SubwordConfig()
    target: AnyTokenizerConfig | None = None
    is_joint: bool = False
    normalization: Normalization = "NFC"
    lowercase: bool = False
    collapse_spaces: bool = False
    max_source_length: int = Field(default=256, ge=1)
    max_target_length: int = Field(default=256, ge=1)

    @model_validator(mode="after")
    def _has_one_vocabulary_if_joint(self) -> "TextConfig":
        if self.is_joint and self.target not in (None, self.source):
            raise ValueError(
                "`text.target` would not be used, as with `text.is_joint` the tokenizer of `text.source` serves both "
                "sides. Leave the table out, or set `text.is_joint = false`."
            )
        return self

    def normalize(self, text: str) -> str:
        """Return the text as the tokenizers see it."""
        return normalize(text, form=self.normalization, lowercase=self.lowercase, collapse_spaces=self.collapse_spaces)


class Codec:
    """Two tokenizers (or one for both sides, or one alone) with what is done before and after them.

    Attributes:
        config: how it was made.
        source: tokenizer of the source, or None (language models).
        target: tokenizer of the target, or None (classification).
    """

    def __init__(self, config: TextConfig, source: Tokenizer | None, target: Tokenizer | None) -> None:
        if source is None and target is None:
            raise ValueError("a codec needs a source or a target")
        self.config = config
        self.source = source
        self.target = target

    @property
    def is_shared(self) -> bool:
        """True if both sides use the same vocabulary."""
        return self.source is not None and self.source is self.target

    @property
    def is_sampling(self) -> bool:
        """True if a seed can change what `encode_source` or `encode_target` gives."""
        return any(each is not None and each.is_sampling for each in (self.source, self.target))

    @property
    def source_size(self) -> int | None:
        """Number of source ids, or None without a source."""
        return None if self.source is None else self.source.size

    @property
    def target_size(self) -> int | None:
        """Number of target ids, or None without a target."""
        return None if self.target is None else self.target.size

    def summary(self) -> str:
        """Return the sizes of the vocabularies, which a small corpus may make smaller than was wished for."""
        if self.is_shared:
            return f"{self.source_size:,} symbols for source and target"
        sides = {"source": self.source_size, "target": self.target_size}
        return " and ".join(f"{size:,} {side} symbols" for side, size in sides.items() if size is not None)

    def normalize(self, text: str) -> str:
        """Return the text as the tokenizers see it (references must be compared in this form)."""
        return self.config.normalize(text)

    def encode_source(
        self, text: str, seed: int | None = None, *, unread: Unread | None = None, line: int | None = None
    ) -> list[int]:
        """Return the row of a source: its symbols, then EOS.

        Args:
            text: the source; a blank one gives EOS alone.
            seed: draws the segmentation, where the tokenizer has several; None takes the best one.
            unread: collects what is not read: the cut of a text that is too long, unknown symbols.
            line: the text's line number, for that report.
        """
        assert self.source is not None, "this codec has no source"
        ids = self._symbols(self.source, text, seed)
        return [*_read(ids, self.config.max_source_length, unread, line), EOS_ID]

    def encode_target(
        self, text: str, seed: int | None = None, *, unread: Unread | None = None, line: int | None = None
    ) -> list[int]:
        """Return the row of a target: BOS, its symbols, then EOS. Arguments as for `encode_source`."""
        assert self.target is not None, "this codec has no target"
        ids = self._symbols(self.target, text, seed)
        return [BOS_ID, *_read(ids, self.config.max_target_length, unread, line), EOS_ID]

    def target_symbols(self, text: str, *, unread: Unread | None = None, line: int | None = None) -> list[int]:
        """Return the symbols of a target of any length, without BOS and EOS: for streams and forced beginnings.

        Args:
            text: of the target, or a part of it.
            unread: collects lines with unknown symbols.
            line: the text's line number, for that report.
        """
        assert self.target is not None, "this codec has no target"
        ids = self._symbols(self.target, text, None)
        return _read(ids, len(ids), unread, line)

    def _symbols(self, tokenizer: Tokenizer, text: str, seed: int | None) -> list[int]:
        text = self.normalize(text)
        return tokenizer.encode(text) if seed is None else tokenizer.sample(text, seed)

    def decode_target(self, ids: Sequence[int]) -> str:
        """Return the text of target ids; PAD, BOS and EOS are left out."""
        assert self.target is not None, "this codec has no target"
        return self.target.decode(ids)

    def decode_source(self, ids: Sequence[int]) -> str:
        """Return the text of source ids; PAD, BOS and EOS are left out."""
        assert self.source is not None, "this codec has no source"
        return self.source.decode(ids)

    def save(self, folder: Path) -> None:
        """Write ``codec.json`` and the tokenizers' files into the folder."""
        values = {
            "config": self.config.model_dump(mode="json"),
            "has_source": self.source is not None,
            "has_target": self.target is not None,
            "is_shared": self.is_shared,
        }
        for name, tokenizer in self._files().items():
            tokenizer.save(folder, name)
        write_json(folder / _FILE, values)

    def fingerprint(self) -> str:
        """Return a digest of all that decides which ids a text gives."""
        digest = hashlib.sha256()
        with tempfile.TemporaryDirectory() as folder:
            self.save(Path(folder))
            for path in sorted(Path(folder).iterdir()):
                digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()

    def _files(self) -> dict[str, Tokenizer]:
        if self.is_shared:
            assert self.source is not None
            return {"tokenizer.shared": self.source}
        sides = {"tokenizer.source": self.source, "tokenizer.target": self.target}
        return {name: each for name, each in sides.items() if each is not None}

    @classmethod
    def load(cls, folder: Path) -> "Codec":
        """Read what `save` wrote.

        Raises:
            BundleError: a file is missing or damaged.
        """
        path = folder / _FILE
        values = read_json(path, config=dict, has_source=bool, has_target=bool, is_shared=bool)
        try:
            config = parse_config(TextConfig, values["config"])
        except ConfigError as error:
            raise BundleError(f"{path}: {error}") from None
        if not values["has_source"] and not values["has_target"]:
            raise damaged(path, "it has neither source nor target")
        if values["is_shared"]:
            shared = load_tokenizer(folder, "tokenizer.shared")
            return cls(config, shared, shared)
        source = load_tokenizer(folder, "tokenizer.source") if values["has_source"] else None
        target = load_tokenizer(folder, "tokenizer.target") if values["has_target"] else None
        return cls(config, source, target)

    @classmethod
    def train(cls, config: TextConfig, pairs: Iterable[Pair], *, folder: Path = Path()) -> "Codec":
        """Make a codec from training pairs alone.

        The first pair tells which sides there are; a side alone uses ``config.target`` if given (for a target), else
        ``config.source``. The pairs are read once for each tokenizer; an iterator that can be read only once is held
        in memory.

        Args:
            config: how text becomes symbols.
            pairs: source and target texts, None for a side that the task has not.
            folder: where a relative path in the configuration starts.

        Raises:
            ConfigError: a tokenizer's configuration does not go with the text.
            DataError: there are no pairs, or they hold no text.
        """
        again = list(pairs) if iter(pairs) is pairs else pairs
        first = next(iter(again), None)
        if first is None:
            raise DataError("There are no training examples. Check the data's paths, columns and filters.")
        has_source, has_target = (each is not None for each in first)
        if config.is_joint and has_source and has_target:
            shared = train_tokenizer(config.source, _texts(again, (0, 1), config), folder=folder)
            return cls(config, shared, shared)
        source = target = None
        if has_source:
            source = train_tokenizer(config.source, _texts(again, (0,), config), folder=folder)
        if has_target:
            target = train_tokenizer(config.target or config.source, _texts(again, (1,), config), folder=folder)
        return cls(config, source, target)


def _texts(pairs: Iterable[Pair], sides: tuple[int, ...], config: TextConfig) -> Iterator[str]:
    """Yield the normalised texts of one side of the pairs, or of both in turn."""
    return (config.normalize(pair[side] or "") for pair in pairs for side in sides)


def _read(ids: list[int], limit: int, unread: Unread | None, line: int | None) -> list[int]:
    """Return what is read of a line's ids, and note what is not."""
    read = ids[:limit]
    if unread is not None:
        if len(ids) > limit:
            unread.add_cut(len(ids), limit, line)
        if UNK_ID in read:
            unread.unknown.add(line)
    return read
