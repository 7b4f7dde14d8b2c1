"""Text to text with an encoder-decoder: translation, and any other pairs of lines."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

from heedful.core.errors import ConfigError, RequestError
from heedful.core.symbols import UNK_ID
from heedful.data.example import Example
from heedful.models.catalogue import build_model
from heedful.models.interfaces import Generates, VocabularySizes
from heedful.search import AnySearchConfig, BeamConfig
from heedful.tasks.comparing import ComparingConfig, ComparingTask
from heedful.tasks.config import TaskConfig
from heedful.tasks.rows import Row
from heedful.tasks.writing import WritingTask
from heedful.text.unread import Unread


class TranslationConfig(ComparingConfig):
    """Keys of a task from text to text.

    Attributes:
        search: how outputs are searched.
    """

    task: Literal["translation"] = "translation"
    search: AnySearchConfig = BeamConfig()


class Translation(ComparingTask, WritingTask):
    """Reads a line, writes a line."""

    config_class: ClassVar[type[TaskConfig]] = TranslationConfig
    config: TranslationConfig

    def build_model(self) -> Generates[Any, Any]:
        """Return an encoder-decoder."""
        codec, config = self.codec, self.config.model
        sizes = VocabularySizes(source=codec.source_size, target=codec.target_size, is_shared=codec.is_shared)
        model = build_model(config, sizes)
        if not isinstance(model, Generates):
            raise ConfigError(f"`model.kind` is `{config.kind}`, which writes no text. Try `transformer`.")
        return model

    @property
    def search(self) -> AnySearchConfig:
        """The configured search."""
        return self.config.search

    def encode(self, example: Example, *, seed: int | None = None, unread: Unread | None = None) -> Row:
        """Return source and target symbols."""
        source, target = example.source, example.target
        return Row(
            line=example.line - 1,
            source=None if source is None else self.codec.encode_source(source, seed, unread=unread, line=example.line),
            target=None if target is None else self.codec.encode_target(target, seed, unread=unread, line=example.line),
        )

    def begin(self, row: Row, prefix: str) -> Row:
        """Return the row with the symbols of the prefix to begin the output with.

        Raises:
            RequestError: the vocabulary lacks a part of it, so that nothing that the model writes could begin so.
        """
        symbols = self.codec.target_symbols(prefix)
        if UNK_ID in symbols:
            raise RequestError(
                f"line {row.line + 1}: no output can begin with {prefix!r}, as the vocabulary lacks a part of it. "
                "Give a prefix of symbols that stood in the training data."
            )
        return replace(row, prefix=symbols)

    def beginning(self, row: Row) -> list[int]:
        """Return the forced beginning, if any."""
        return list(row.prefix)

    def accepted(self, example: Example) -> tuple[str, ...]:
        """Return all references."""
        return example.references or ((example.target or ""),)
