"""Heedful's Transformer with Heedful's loss, update and search."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

import heedful
from exchange import PAD, Shape, Weights, names
from heedful.core.runtime import compute_in
from heedful.core.types import Batch, LossSum, PlacedBatch, Position, Trainable, Validation
from heedful.losses import cross_entropy
from heedful.models.interfaces import VocabularySizes
from heedful.models.stepping import make_step_fn
from heedful.models.transformer import Transformer, TransformerConfig
from heedful.search import BeamConfig, GreedyConfig, search
from heedful.training.config import TrainingConfig
from heedful.training.optim import AdamW, AdamWConfig
from heedful.training.processes import join_group
from heedful.training.update import Updater
from worker import BETAS, EPSILON, SMOOTHING, Contender, learning_rate, serve

BLOCKS = {"self": "self_attention", "cross": "cross_attention", "feed_forward": "feed_forward"}
FUSED = {"self": ("input", ("query", "key", "value")), "cross": ("memory", ("key", "value"))}


@dataclass(frozen=True)
class Place:
    """Where a neutrally named weight lies: all of a parameter, or one part of each head's rows in a fused one."""

    parameter: str
    part: int = 0
    num_parts: int = 1


def place_of(name: str) -> Place:
    """Return where Heedful keeps a neutrally named weight."""
    if name == "embedding":
        return Place("source_embedding.tokens.weight")
    side, layer, block, part, kind = name.split(".")
    prefix = f"{side}.layers.{layer}"
    if part == "norm":
        return Place(f"{prefix}.around_{BLOCKS[block]}.norm.{kind}")
    if block == "feed_forward":
        return Place(f"{prefix}.feed_forward.{part}.{kind}")
    fused, parts = FUSED[block]
    if part in parts:
        return Place(f"{prefix}.{BLOCKS[block]}.{fused}_{kind}", parts.index(part), len(parts))
    return Place(f"{prefix}.{BLOCKS[block]}.{part}_{kind}")


class Batches(Trainable):
    """What the update asks of a task: a loss, and batches it is given."""

    def __init__(self, model: Transformer) -> None:
        self.model = model

    def loss(self, batch: Batch) -> LossSum:
        return loss_of(self.model, batch, SMOOTHING)

    def batches(self, position: Position) -> Iterator[PlacedBatch]:
        raise NotImplementedError

    def validate(self) -> Validation:
        raise NotImplementedError

    def is_better(self, metric: str, new: float, old: float) -> bool:
        raise NotImplementedError

    def save_bundle(self, path: Path, *, scores: dict[str, float]) -> None:
        raise NotImplementedError


def loss_of(model: Transformer, batch: Batch, smoothing: float) -> LossSum:
    """Return the summed cross-entropy over the real target positions."""
    hidden = model.decode(model.encode(batch), batch.target_input)
    keep = batch.target_keep
    output = model.output
    return cross_entropy(hidden[keep], output.weight, output.bias, batch.target_output[keep], label_smoothing=smoothing)


def to_batch(source: torch.Tensor, target: torch.Tensor | None) -> Batch:
    """Return padded rows as Heedful's batch."""
    return Batch(
        lines=torch.arange(len(source)),
        source=source,
        source_lengths=(source != PAD).sum(1),
        target=target,
        target_lengths=None if target is None else (target != PAD).sum(1),
    )


class Heedful(Contender):
    """Heedful in float32, or in bfloat16 with float32 masters."""

    def __init__(self, shape: Shape, dtype: str, options: dict[str, Any]) -> None:
        super().__init__(shape, dtype, options)
        config = TransformerConfig(
            model_dim=shape.model_dim,
            num_heads=shape.num_heads,
            inner_dim=shape.inner_dim,
            encoder_layers=shape.num_layers,
            decoder_layers=shape.num_layers,
            dropout=shape.dropout,
            attention_dropout=shape.dropout,
            activation_dropout=shape.dropout,
            tied_embeddings="all",
        )
        sizes = VocabularySizes(source=shape.vocabulary, target=shape.vocabulary, is_shared=True)
        self.model = Transformer(config, sizes)
        self.model.output.bias = None  # the rivals' output has none
        self.task = Batches(self.model)
        self.group = join_group(torch.device("cpu"), 10.0).__enter__()

    @property
    def version(self) -> str:
        return f"Heedful {getattr(heedful, '__version__', '')}".strip()

    def load(self, weights: Weights) -> None:
        parameters: dict[str, nn.Parameter] = dict(self.model.named_parameters())
        with torch.no_grad():
            for name, value in weights.items():
                self._view(parameters, name).copy_(self._by_heads(torch.from_numpy(value), place_of(name)))
        config = TrainingConfig(
            max_steps=10**9, clip_norm=0, optimizer=AdamWConfig(betas=BETAS, eps=EPSILON, weight_decay=0.0)
        )
        self.optimizer = AdamW(self.model, config.optimizer)
        self.updater = Updater(self.task, self.optimizer, config, self.group, torch.device("cpu"), self.dtype)
        self.num_updates = 0

    def weights(self) -> Weights:
        parameters = dict(self.model.named_parameters())
        found = {}
        for name, size in names(self.shape):
            found[name] = self._view(parameters, name).detach().reshape(size).numpy().copy()
        return found

    def _view(self, parameters: dict[str, nn.Parameter], name: str) -> torch.Tensor:
        place = place_of(name)
        whole = parameters[place.parameter]
        if place.num_parts == 1:
            return whole
        return whole.view(self.shape.num_heads, place.num_parts, -1, *whole.shape[1:])[:, place.part]

    def _by_heads(self, value: torch.Tensor, place: Place) -> torch.Tensor:
        return value if place.num_parts == 1 else value.view(self.shape.num_heads, -1, *value.shape[1:])

    def update(self, source: torch.Tensor, target: torch.Tensor) -> None:
        self.model.train()
        placed = iter([PlacedBatch(to_batch(source, target), Position())])
        sums = self.updater.compute(placed, lambda: (0.0, False))
        _, fault = self.updater.apply(sums, learning_rate(self.num_updates))
        assert fault is None, fault

    @torch.no_grad()
    def loss(self, source: torch.Tensor, target: torch.Tensor) -> float:
        self.model.eval()
        return float(loss_of(self.model, to_batch(source, target), 0.0).total)

    @torch.no_grad()
    def decode(self, source: torch.Tensor, beam: int, max_length: int) -> list[list[int]]:
        self.model.eval()
        # Hugging Face's length penalty divides by the length, end included, to the power 1; so does "average" at 1.
        limits = {"max_length": max_length, "max_length_ratio": 0}
        config = (
            BeamConfig(beam_size=beam, length_penalty="average", length_alpha=1.0, **self.options, **limits)
            if beam > 1
            else GreedyConfig(**limits)
        )
        batch = to_batch(source, None)
        with compute_in(self.model, self.dtype):
            memory = self.model.encode(batch)
            state = self.model.start(memory)
            found = search(
                make_step_fn(self.model), memory, state, config, lines=batch.lines, source_lengths=batch.source_lengths
            )
        return [list(each[0].ids) for each in found]


if __name__ == "__main__":
    serve(Heedful)
