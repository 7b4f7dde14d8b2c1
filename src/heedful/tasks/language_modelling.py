"""Text that goes on: a language model over lines, or over one long stream."""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, Literal

from pydantic import Field

from heedful.core.errors import ConfigError
from heedful.core.symbols import BOS_ID, EOS_ID
from heedful.core.types import Sample
from heedful.data.example import Example
from heedful.data.readers import is_stream
from heedful.metrics import perplexity
from heedful.models.catalogue import build_model
from heedful.models.interfaces import Generates, VocabularySizes
from heedful.search import AnySearchConfig, SamplingConfig
from heedful.tasks.config import TaskConfig
from heedful.tasks.outcome import Evaluation, Measured
from heedful.tasks.rows import Row, group_rows
from heedful.tasks.writing import WritingTask, has_symbols
from heedful.text.unread import Unread

SAMPLE_TEMPERATURES = (0.5, 0.8, 1.0)


class LanguageModellingConfig(TaskConfig):
    """Keys of a task that continues text.

    Attributes:
        context: symbols in a window of a stream; lines are windows by themselves (but for one that is longer than
            `text.max_target_length`, which is measured in windows of that length).
        search: how text is continued.
    """

    task: Literal["language_modelling"] = "language_modelling"
    context: int = Field(256, ge=1)
    search: AnySearchConfig = SamplingConfig()

    @property
    def is_stream(self) -> bool:
        """True if the training text has no borders within."""
        return is_stream(self.data.train)


class LanguageModelling(WritingTask):
    """Reads the beginning of a text, writes the whole."""

    config_class: ClassVar[type[TaskConfig]] = LanguageModellingConfig
    config: LanguageModellingConfig

    def build_model(self) -> Generates[Any, Any]:
        """Return a language model."""
        config = self.config.model
        model = build_model(config, VocabularySizes(target=self.codec.target_size))
        if not isinstance(model, Generates):
            raise ConfigError(
                f"`model.kind` is `{config.kind}`, which writes no text. Try `transformer_language_model`."
            )
        return model

    @property
    def search(self) -> AnySearchConfig:
        """The configured search."""
        return self.config.search

    @property
    def directions(self) -> Mapping[str, bool]:
        """The loss and the perplexities."""
        return dict.fromkeys(("loss", "nats_per_character", "perplexity", "word_perplexity"), False)

    def encode(self, example: Example, *, seed: int | None = None, unread: Unread | None = None) -> Row:
        """Return the text's symbols; a line to be continued stands in `Example.source`."""
        text = example.target if example.target is not None else example.source or ""
        ids = self.codec.encode_target(text, seed, unread=unread, line=example.line)
        return Row(line=example.line - 1, target=ids[:-1] if self.config.is_stream else ids)

    def beginning(self, row: Row) -> list[int]:
        """Return the text that is to be continued."""
        symbols = list(row.target or ())[1:]
        return symbols[:-1] if self.counts_end else symbols

    @property
    def counts_end(self) -> bool:
        """True for lines; within a stream there is no end of sequence."""
        return not self.config.is_stream

    def example_of(self, source: str | None, target: str, line: int) -> Example:
        """Return the example of a text alone; a beginning given apart is put before it."""
        return Example(target=target if source is None else source + target, line=line)

    def accepted(self, example: Example) -> tuple[str, ...]:
        """Return the text itself."""
        return (example.target or "",)

    def measure(self, predictions: Sequence[str], references: Sequence[tuple[str, ...]]) -> list[Measured]:
        """Return nothing: a continuation has no reference."""
        return []

    def evaluate(
        self,
        examples: Sequence[Example],
        split: str,
        *,
        search: AnySearchConfig | None = None,
        unread: Unread | None = None,
    ) -> Evaluation:
        """Measure how well the text is foretold: every symbol once.

        In a stream, and in a line that is longer than a model reads, each has half a window before it at least (but for
        those at the beginning).
        """
        start_s = time.perf_counter()
        texts = [each.target or "" for each in examples]
        windows = list(self._windows(examples, unread))
        total = count = 0.0
        with self.inference():
            for first in sorted({first for _, first in windows}):
                for group in group_rows([row for row, start in windows if start == first]):
                    part = self.loss_from(self.stack(group), first, 0.0)
                    total, count = total + float(part.total), count + float(part.count)
        measured = tuple(self._perplexities(total, int(count), texts))
        return Evaluation(split, measured, len(examples), time.perf_counter() - start_s)

    def _windows(self, examples: Sequence[Example], unread: Unread | None) -> Iterator[tuple[Row, int]]:
        """Yield the windows of the stream or of each line, and from where on each one's symbols are counted."""
        lines = (self.codec.target_symbols(each.target or "", unread=unread, line=each.line) for each in examples)
        if self.config.is_stream:
            parts, context = [list(chain.from_iterable(lines))], self.config.context
        else:
            parts, context = [[*ids, EOS_ID] for ids in lines], self.codec.config.max_target_length + 1
        for ids in parts:
            for window, first in cut(ids, context):
                row = Row(0, target=[BOS_ID, *window])
                if has_symbols(row):
                    yield row, first

    def _perplexities(self, total: float, count: int, texts: Sequence[str]) -> Iterator[Measured]:
        characters = sum(map(len, texts))
        words = sum(len(text.split()) for text in texts)
        limit = self.codec.config.max_target_length
        lines = f"lines, those over {limit} symbols in windows, end of sequence counted"
        how = "windows of a stream" if self.config.is_stream else lines
        yield Measured("loss", total / max(count, 1), f"nats per symbol, {how}, no smoothing")
        yield Measured("nats_per_character", total / max(characters, 1), f"{how}")
        found = perplexity(total, max(count, 1), max(words + (0 if self.config.is_stream else len(texts)), 1))
        yield Measured("perplexity", found.per_token, f"per symbol, {how}")
        yield Measured("word_perplexity", found.per_word, f"per word, {how}")

    def samples(self, evaluation: Evaluation, num_samples: int) -> list[Sample]:
        """Return texts drawn from nothing, at three temperatures."""
        limits = self.config.search.model_dump(include={"max_length", "min_length"})
        found = []
        with self.inference():
            for temperature in SAMPLE_TEMPERATURES[:num_samples]:
                search = SamplingConfig(temperature=temperature, max_length_ratio=0, **limits)
                (candidates,) = self.predict_rows([self.encode(Example(target="", line=1))], search)
                found.append(Sample("", f"(drawn at temperature {temperature})", candidates[0].text))
        return found


def cut(ids: Sequence[int], context: int) -> Iterator[tuple[Sequence[int], int]]:
    """Yield a text's windows, and in each the place from which on its symbols stood in none before.

    Args:
        ids: the text's symbols.
        context: symbols in a window; each but the first begins with the second half of the one before.
    """
    stride = max(context // 2, 1)
    yield ids[:context], 0
    for end in range(context, len(ids), stride):
        begin = end + stride - context
        yield ids[begin : begin + context], context - stride
