"""Text to label with a classifier."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from heedful.core.errors import ConfigError
from heedful.core.types import Batch, LossSum
from heedful.data.example import Example
from heedful.losses.cross_entropy import classification_loss
from heedful.metrics import AnyMetricConfig
from heedful.metrics.classification import AccuracyConfig
from heedful.models.catalogue import build_model
from heedful.models.interfaces import Classifies, VocabularySizes
from heedful.search import AnySearchConfig, GreedyConfig
from heedful.tasks.comparing import ComparingConfig, ComparingTask
from heedful.tasks.config import TaskConfig
from heedful.tasks.outcome import Candidate, TargetScore, WordScore
from heedful.tasks.rows import Row
from heedful.text.codec import Codec
from heedful.text.labels import LabelSet
from heedful.text.unread import Unread


class ClassificationConfig(ComparingConfig):
    """Keys of a task from text to label.

    Attributes:
        metrics: what is measured, each metric once.
    """

    task: Literal["classification"] = "classification"
    metrics: tuple[AnyMetricConfig, ...] = (AccuracyConfig(),)


class Classification(ComparingTask):
    """Reads a line, gives each label a probability."""

    config_class: ClassVar[type[TaskConfig]] = ClassificationConfig
    config: ClassificationConfig
    model: Classifies

    def build_model(self) -> Classifies:
        """Return a classifier."""
        config = self.config.model
        model = build_model(config, VocabularySizes(source=self.codec.source_size, num_classes=len(self.classes)))
        if not isinstance(model, Classifies):
            raise ConfigError(f"`model.kind` is `{config.kind}`, which gives no label. Try `classifier`.")
        return model

    @property
    def classes(self) -> LabelSet:
        """The labels."""
        if self.labels is None:
            raise ConfigError("`data.train.label` is missing. Name the column of the labels.")
        return self.labels

    @classmethod
    def from_folder(cls, config: Any, folder: Path) -> "Classification":
        """Load tokenizer and labels, and make a model with random weights for them."""
        return cls(config, Codec.load(folder), LabelSet.load(folder))

    def save_text(self, folder: Path) -> None:
        """Write tokenizer and labels."""
        super().save_text(folder)
        self.classes.save(folder)

    @property
    def search(self) -> AnySearchConfig:
        """Return a search for the best label alone; ``num_best`` of another one tells how many labels are wished."""
        return GreedyConfig()

    def encode(self, example: Example, *, seed: int | None = None, unread: Unread | None = None) -> Row:
        """Return source symbols and the label's index."""
        source = self.codec.encode_source(example.source or "", seed, unread=unread, line=example.line)
        label = None if example.label is None else self.classes.index(example.label, example.path, example.line)
        return Row(line=example.line - 1, source=source, label=label)

    def loss(self, batch: Batch, *, label_smoothing: float | None = None) -> LossSum:
        """Return the cross-entropy of the labels."""
        batch = batch.to(self.device)
        assert batch.labels is not None
        smoothing = self.config.loss.label_smoothing if label_smoothing is None else label_smoothing
        return classification_loss(self.model.classify(batch), batch.labels, label_smoothing=smoothing)

    def predict_rows(self, rows: Sequence[Row], search: AnySearchConfig) -> list[tuple[Candidate, ...]]:
        """Return the most probable labels; scores are their log-probabilities."""
        log_probs = self.model.classify(self.stack(rows)).float().log_softmax(-1)
        best = log_probs.sort(dim=-1, descending=True, stable=True)
        values, indices = (each[:, : search.num_best].tolist() for each in best)
        names = self.classes.names
        return [
            tuple(Candidate(names[index], value, value) for value, index in zip(*row, strict=True))
            for row in zip(values, indices, strict=True)
        ]

    def example_of(self, source: str | None, target: str, line: int) -> Example:
        """Return the example of a text and a label."""
        example = super().example_of(source, target, line)
        return Example(source=example.source, label=target, line=line)

    def score_rows(self, rows: Sequence[Row], targets: Sequence[str]) -> list[TargetScore]:
        """Return the log-probability of each given label."""
        log_probs = self.model.classify(self.stack(rows)).float().log_softmax(-1).tolist()
        chosen = [values[row.label or 0] for row, values in zip(rows, log_probs, strict=True)]
        return [
            TargetScore(text, value, 1, (WordScore(text, value),)) for text, value in zip(targets, chosen, strict=True)
        ]

    def accepted(self, example: Example) -> tuple[str, ...]:
        """Return the label."""
        return (example.label or "",)
