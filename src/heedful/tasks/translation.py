"""Text to text with an encoder-decoder: translation, and any other pairs of lines."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from heedful.core.errors import ConfigError
from heedful.core.types import Batch, LossSum
from heedful.data.example import Example
from heedful.losses.cross_entropy import cross_entropy
from heedful.metrics import AnyMetricConfig, Metric, build_metric
from heedful.models.catalogue import build_model
from heedful.models.interfaces import Generates, VocabularySizes
from heedful.models.stepping import make_step_fn
from heedful.search import AnySearchConfig, BeamConfig
from heedful.search import search as run_search
from heedful.tasks.config import TaskConfig
from heedful.tasks.outcome import Candidate, Measured, TargetScore
from heedful.tasks.rows import Row
from heedful.tasks.task import Task
from heedful.tasks.words import share_by_word
from heedful.text.truncation import Truncations


class TranslationConfig(TaskConfig):
    """Keys of a task from text to text.

    Attributes:
        search: how outputs are searched.
        metrics: what is measured.
    """

    task: Literal["translation"] = "translation"
    search: AnySearchConfig = BeamConfig()
    metrics: tuple[AnyMetricConfig, ...] = ()


class Translation(Task):
    """Reads a line, writes a line."""

    config_class: ClassVar[type[TaskConfig]] = TranslationConfig
    config: TranslationConfig
    model: Generates[Any, Any]

    def build_model(self) -> Generates[Any, Any]:
        """Return an encoder-decoder."""
        codec, config = self.codec, self.config.model
        sizes = VocabularySizes(source=codec.source_size, target=codec.target_size, is_shared=codec.is_shared)
        model = build_model(config, sizes)
        if not isinstance(model, Generates):
            raise ConfigError(f"`model.kind` is `{config.kind}`, which writes no text. Try `transformer`.")
        return model

    @functools.cached_property
    def metrics(self) -> list[Metric]:
        """The metrics of the configuration."""
        return [build_metric(each) for each in self.config.metrics]

    @property
    def search(self) -> AnySearchConfig:
        """The configured search."""
        return self.config.search

    @property
    def directions(self) -> Mapping[str, bool]:
        """``loss`` and the metrics."""
        return {"loss": False} | {each.name: each.is_higher_better for each in self.metrics}

    def encode(self, example: Example, *, seed: int | None = None, truncations: Truncations | None = None) -> Row:
        """Return source and target symbols."""
        source, target = example.source, example.target
        return Row(
            line=example.line - 1,
            source=None
            if source is None
            else self.codec.encode_source(source, seed, truncations=truncations, line=example.line),
            target=None
            if target is None
            else self.codec.encode_target(target, seed, truncations=truncations, line=example.line),
        )

    def loss(self, batch: Batch, *, label_smoothing: float | None = None) -> LossSum:
        """Return the cross-entropy of every target symbol given those before it (teacher forcing)."""
        batch = batch.to(self.device)
        keep = batch.target_keep
        hidden = self.model.decode(self.model.encode(batch), batch.target_input)
        smoothing = self.config.loss.label_smoothing if label_smoothing is None else label_smoothing
        output = self.model.output
        return cross_entropy(
            hidden[keep], output.weight, output.bias, batch.target_output[keep], label_smoothing=smoothing
        )

    def predict_rows(self, rows: Sequence[Row], search: AnySearchConfig) -> list[tuple[Candidate, ...]]:
        """Search the most probable targets."""
        batch = self.stack(rows)
        memory = self.model.encode(batch)
        with_attention = isinstance(search, BeamConfig) and search.coverage_penalty > 0
        found = run_search(
            make_step_fn(self.model, with_attention=with_attention),
            memory,
            self.model.start(memory),
            search,
            lines=batch.lines,
            source_lengths=batch.source_lengths,
            seed=self.seed,
        )
        decode = self.codec.decode_target
        return [tuple(Candidate(decode(each.ids), each.score, each.log_prob) for each in best) for best in found]

    def score_rows(self, rows: Sequence[Row], targets: Sequence[str]) -> list[TargetScore]:
        """Force each target through the decoder."""
        batch = self.stack(rows)
        hidden = self.model.decode(self.model.encode(batch), batch.target_input)
        chosen = self.model.output.log_probs(hidden).gather(-1, batch.target_output[:, :, None])[:, :, 0]
        scores = []
        for row, text, values in zip(rows, targets, chosen.tolist(), strict=True):
            ids = (row.target or ())[1:]
            log_probs = values[: len(ids)]
            words = share_by_word(ids[:-1], log_probs, self.codec.decode_target)
            scores.append(TargetScore(text, sum(log_probs), len(ids), words))
        return scores

    def accepted(self, example: Example) -> tuple[str, ...]:
        """Return all references."""
        return example.references or ((example.target or ""),)

    def measure(self, predictions: Sequence[str], references: Sequence[tuple[str, ...]]) -> list[Measured]:
        """Compute the metrics on text as the user reads it."""
        results = [each.score(list(predictions), list(references)) for each in self.metrics]
        return [Measured(each.name, each.value, each.signature) for each in results]
