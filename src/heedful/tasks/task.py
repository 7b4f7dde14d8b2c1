"""A task: a model, the text it reads and writes, its loss, search and metrics, as one thing to train and to use."""

import contextlib
import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from heedful.attention.tap import Gates, Tap
from heedful.core.chunks import chunks
from heedful.core.errors import RequestError
from heedful.core.runtime import compute_in
from heedful.core.types import Batch, LossSum, Sample
from heedful.data.example import Example
from heedful.models.bound import bind
from heedful.models.interfaces import Model
from heedful.search import AnySearchConfig
from heedful.tasks.config import TaskConfig
from heedful.tasks.outcome import Candidate, Evaluation, Measured, Prediction, TargetScore
from heedful.tasks.rows import MAX_ROWS, Row, group_rows, stack_rows
from heedful.text.codec import Codec
from heedful.text.labels import LabelSet
from heedful.text.unread import Unread

CHUNK_LINES = 1024
BLANK = (Candidate("", 0.0, 0.0),)


class Task(ABC):
    """What all tasks do alike: keep lines in order, batch them by length, measure.

    A subclass says how an example becomes ids, what the loss is, and how a batch is predicted.

    Args:
        config: of the task, of the class `config_class`.
        codec: what turns lines into ids and back.
        labels: the classes, for a task that has them.

    Attributes:
        model: with random weights at first, in float32, on the CPU.
    """

    config_class: ClassVar[type[TaskConfig]]
    config: TaskConfig
    model: Model

    def __init__(self, config: Any, codec: Codec, labels: LabelSet | None = None) -> None:
        self.config = config
        self.codec = codec
        self.labels = labels
        self.model = self.build_model()
        self.dtype = torch.float32
        self.seed = 1

    @abstractmethod
    def build_model(self) -> Model:
        """Return a model with random weights for the configuration and the sizes of the vocabularies.

        Raises:
            ConfigError: a model of another kind than the task needs, or one that does not fit the vocabularies.
        """

    @classmethod
    def from_folder(cls, config: Any, folder: Path) -> "Task":
        """Load the tokenizers from a folder, and make a model with random weights for them.

        Raises:
            BundleError: a file is missing or damaged.
        """
        return cls(config, Codec.load(folder))

    def save_text(self, folder: Path) -> None:
        """Write the tokenizers (and labels) into a folder."""
        self.codec.save(folder)

    @abstractmethod
    def encode(self, example: Example, *, seed: int | None = None, unread: Unread | None = None) -> Row:
        """Return an example as ids; a side it lacks stays None.

        Args:
            example: a source, and for training its target or label.
            seed: draws the segmentation where the tokenizer has several; None takes the best.
            unread: collects what is not read: cuts, unknown symbols.
        """

    @abstractmethod
    def loss(self, batch: Batch, *, label_smoothing: float | None = None) -> LossSum:
        """Return the summed loss of a batch and the number of targets.

        Args:
            batch: on any device.
            label_smoothing: absent means as configured; held-out losses use 0.
        """

    @abstractmethod
    def predict_rows(self, rows: Sequence[Row], search: AnySearchConfig) -> list[tuple[Candidate, ...]]:
        """Return the candidates of each row, best first."""

    @abstractmethod
    def score_rows(self, rows: Sequence[Row], targets: Sequence[str]) -> list[TargetScore]:
        """Return how probable the model finds the target of each row."""

    @abstractmethod
    def accepted(self, example: Example) -> tuple[str, ...]:
        """Return the outputs that are right for an example."""

    @property
    @abstractmethod
    def search(self) -> AnySearchConfig:
        """How outputs are searched unless told otherwise."""

    @abstractmethod
    def measure(self, predictions: Sequence[str], references: Sequence[tuple[str, ...]]) -> list[Measured]:
        """Compute the metrics of the configuration."""

    @property
    @abstractmethod
    def directions(self) -> Mapping[str, bool]:
        """Every score that `evaluate` gives, and whether higher is better."""

    @property
    def device(self) -> torch.device:
        """Where the model's weights are, whoever brought them there; batches go to the same place."""
        return next(self.model.parameters()).device

    @property
    def num_parameters(self) -> int:
        """Weights of the model, shared ones counted once."""
        return sum(each.numel() for each in self.model.parameters())

    def to(self, device: torch.device, dtype: torch.dtype, seed: int = 1) -> "Task":
        """Move the model to a device; from now on compute with activations of the type, and sample from the seed."""
        self.model.to(device)
        self.dtype, self.seed = dtype, seed
        return self

    @contextlib.contextmanager
    def inference(self) -> Iterator[None]:
        """Compute without dropout and gradients, in the type asked for."""
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad(), compute_in(self.model, self.dtype):
                yield
        finally:
            self.model.train(was_training)

    @contextlib.contextmanager
    def bound(self, *, tap: Tap | None = None, gates: Gates | None = None) -> Iterator[None]:
        """Let a tap watch, and gates scale the model's heads in, all that is computed within the block."""
        model = self.model
        self.model = bind(model, tap=tap, gates=gates)
        try:
            yield
        finally:
            self.model = model

    def stack(self, rows: Sequence[Row]) -> Batch:
        """Return rows as tensors on the device."""
        return stack_rows(rows).to(self.device)

    def predict(
        self,
        lines: Iterable[str],
        *,
        search: AnySearchConfig | None = None,
        prefixes: Iterable[str] | None = None,
        max_rows: int = MAX_ROWS,
        chunk_lines: int = CHUNK_LINES,
        unread: Unread | None = None,
    ) -> Iterator[Prediction]:
        """Yield one prediction a line, in order; a blank line gives a blank text and never meets the model.

        Args:
            lines: read a chunk at a time, so that they may be many.
            search: how outputs are searched; absent means as configured.
            prefixes: what the output of each line must begin with, blank for nothing; absent means nothing.
            max_rows: lines in a batch at most.
            chunk_lines: lines that are read, sorted by length and predicted before the first of them is yielded.
            unread: collects the lines that were not read whole.

        Raises:
            RequestError: prefixes, but the task writes no text that could begin with them, or not as many as lines.
        """
        # Each row is made as its line comes, so that those before a line or prefix that is refused are answered.
        made = (
            (number, text, self._row(text, prefix, number, unread))
            for number, (text, prefix) in enumerate(_begun(lines, prefixes))
        )
        for chunk in chunks(made, chunk_lines):
            found: dict[int, tuple[Candidate, ...]] = {}
            with self.inference():
                for group in group_rows([row for *_, row in chunk if row is not None], max_rows):
                    candidates = self.predict_rows(group, search or self.search)
                    found.update((row.line, each) for row, each in zip(group, candidates, strict=True))
            for number, text, _ in chunk:
                yield Prediction(number, text, found.get(number, BLANK))

    def _row(self, text: str, prefix: str, number: int, unread: Unread | None) -> Row | None:
        """Return the row of a line to be answered; None for a blank line."""
        if not text.strip():
            return None
        row = self.encode(Example(source=text, line=number + 1), unread=unread)
        return self.begin(row, prefix) if prefix.strip() else row

    def begin(self, row: Row, prefix: str) -> Row:
        """Return a row whose output must begin with the prefix.

        Raises:
            RequestError: the task writes no text apart from the line it reads.
        """
        raise RequestError(f"A prefix ({prefix!r}) is for tasks that write a text for a text. Leave it out.")

    def stream(self, line: str, *, search: AnySearchConfig | None = None) -> Iterator[str]:
        """Yield the output for a line in pieces, each as soon as it is certain; joined, they are what `predict` gives.

        A task that writes no text gives its output as one piece.

        Args:
            line: to be answered; a blank one gives nothing.
            search: how outputs are searched; absent means as configured.
        """
        (prediction,) = self.predict([line], search=search)
        if prediction.text:
            yield prediction.text

    def score(self, pairs: Iterable[tuple[str | None, str]], *, unread: Unread | None = None) -> Iterator[TargetScore]:
        """Yield how probable the model finds each given target, in order.

        Args:
            pairs: source (None for a language model) and target, or label.
            unread: collects the lines that were not read whole.
        """
        made = (
            (target, self.encode(self.example_of(source, target, number), unread=unread))
            for number, (source, target) in enumerate(pairs, start=1)
        )
        for chunk in chunks(made, CHUNK_LINES):
            targets = {row.line: target for target, row in chunk}
            found: dict[int, TargetScore] = {}
            with self.inference():
                for group in group_rows([row for _, row in chunk]):
                    scores = self.score_rows(group, [targets[row.line] for row in group])
                    found.update((row.line, each) for row, each in zip(group, scores, strict=True))
            yield from (found[row.line] for _, row in chunk)

    def example_of(self, source: str | None, target: str, line: int) -> Example:
        """Return the example that a pair to be scored stands for."""
        if source is None:
            raise RequestError(f"line {line}: a source is missing. Write source, tab, target on each line.")
        return Example(source=source, target=target, line=line)

    def evaluate(
        self,
        examples: Sequence[Example],
        split: str,
        *,
        search: AnySearchConfig | None = None,
        unread: Unread | None = None,
    ) -> Evaluation:
        """Predict every source and compare with what is right; compute the loss of the given targets too.

        Args:
            examples: with targets or labels; references of one source already taken together where that is wished.
            split: the data's name.
            search: how outputs are searched; absent means as configured.
            unread: collects the examples of which a side was not read whole, by their lines in their file.
        """
        start_s = time.perf_counter()
        sources = [each.source or "" for each in examples]
        predictions = tuple(self.predict(sources, search=search))
        elapsed_s = time.perf_counter() - start_s
        references = tuple(self.accepted(each) for each in examples)
        measured = [
            self.held_out_loss(examples, unread),
            *self.measure([each.text for each in predictions], references),
        ]
        return Evaluation(split, tuple(measured), len(examples), elapsed_s, predictions, references)

    def held_out_loss(self, examples: Iterable[Example], unread: Unread | None = None) -> Measured:
        """Return the mean loss in nats per target (a symbol, the end of sequence included, or a label).

        Args:
            examples: with targets or labels.
            unread: collects the examples of which a side was not read whole, by their lines in their file.
        """
        rows = [self.encode(each, unread=unread) for each in examples]
        total = count = 0.0
        with self.inference():
            for group in group_rows(rows):
                part = self.loss(self.stack(group), label_smoothing=0.0)
                total, count = total + float(part.total), count + float(part.count)
        return Measured("loss", total / max(count, 1.0), "nats per target, end of sequence counted, no smoothing")

    def samples(self, evaluation: Evaluation, num_samples: int) -> list[Sample]:
        """Return a few lines of an evaluation as a person reads them."""
        columns = zip(evaluation.predictions, evaluation.references, strict=True)
        return [
            Sample(each.source, " | ".join(references), each.text)
            for each, references in itertools.islice(columns, num_samples)
        ]


def _begun(lines: Iterable[str], prefixes: Iterable[str] | None) -> Iterator[tuple[str, str]]:
    """Yield each line with what its output must begin with."""
    if prefixes is None:
        yield from ((text, "") for text in lines)
        return
    for number, (text, prefix) in enumerate(itertools.zip_longest(lines, prefixes), start=1):
        if text is None or prefix is None:
            lacking = "line" if text is None else "prefix"
            raise RequestError(f"There is no {lacking} {number}. Give a prefix for each line, blank for nothing.")
        yield text, prefix
