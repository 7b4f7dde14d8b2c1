"""The smallest task: guess the next symbol of short rows from the one before it. Dropout makes random states matter."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from heedful.core.errors import ConfigError
from heedful.core.runtime import RuntimeConfig
from heedful.core.types import Batch, LossSum, PlacedBatch, Position, Sample, Trainable, Validation
from heedful.training import RunFolder, TrainingConfig, read_history
from heedful.training.checkpoint import Checkpoint, Checkpoints, read_checkpoint

VOCABULARY = 13
EPOCH_BATCHES = 7


class ToyModel(nn.Module):
    """An embedding and a layer that shares its weights, with dropout between."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 5)
        self.norm = nn.LayerNorm(5)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(5, VOCABULARY)
        self.output.weight = self.embedding.weight
        self.register_buffer("scale", torch.tensor(1.5))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return a logit for each symbol that might come next."""
        scaled: torch.Tensor = self.output(self.dropout(self.norm(self.embedding(ids))) * self.scale)
        return scaled


class ToyTask(Trainable):
    """See the module.

    Args:
        dropout: of the model.
        rows: of each batch.
        merged: this many batches are given as one.
        broken_at: calls of `loss` that give NaN.
        scores: held-out losses to report instead of the real ones.
    """

    def __init__(
        self,
        *,
        dropout: float = 0.25,
        rows: int = 6,
        merged: int = 1,
        broken_at: tuple[int, ...] = (),
        scores: tuple[float, ...] = (),
    ) -> None:
        torch.manual_seed(5)
        self.model = ToyModel(dropout)
        self.rows = rows
        self.merged = merged
        self.broken_at = broken_at
        self.scores = list(scores)
        self.num_losses = 0
        self.bundles: list[dict[str, float]] = []

    def batches(self, position: Position) -> Iterator[PlacedBatch]:
        """See `Trainable.batches`."""
        epoch, number = position.epoch, position.batch
        while True:
            drawn = [self.make_batch(epoch, number * self.merged + each) for each in range(self.merged)]
            epoch, number = (epoch, number + 1) if number + 1 < EPOCH_BATCHES else (epoch + 1, 0)
            yield PlacedBatch(_join(drawn), Position(epoch, number))

    def make_batch(self, epoch: int, number: int) -> Batch:
        """Return rows of different lengths in which the next symbol is mostly three times the last."""
        draw = np.random.default_rng([epoch, number])
        target = np.zeros((self.rows, 8), dtype=np.int64)
        lengths = draw.integers(2, 9, size=self.rows)
        for row, length in enumerate(lengths):
            target[row, 0] = draw.integers(1, VOCABULARY)
            for place in range(1, length):
                is_odd = draw.random() < 0.1
                target[row, place] = draw.integers(1, VOCABULARY) if is_odd else target[row, place - 1] * 3 % 12 + 1
        ids = torch.from_numpy(target)
        return Batch(lines=torch.arange(self.rows), target=ids, target_lengths=torch.from_numpy(lengths))

    def loss(self, batch: Batch) -> LossSum:
        """See `Trainable.loss`."""
        self.num_losses += 1
        logits = self.model(batch.target_input).float()[batch.target_keep]
        wanted = batch.target_output[batch.target_keep]
        total = functional.cross_entropy(logits, wanted, reduction="sum")
        if self.num_losses in self.broken_at:
            total = total * float("nan")
        return LossSum(total, torch.tensor(float(len(wanted))))

    def validate(self) -> Validation:
        """See `Trainable.validate`."""
        torch.rand(3)
        found = self.loss(self.make_batch(999, 0))
        loss = self.scores.pop(0) if self.scores else float(found.total / found.count)
        return Validation({"loss": loss, "exactness": -loss}, [Sample("a\x1b[31m", "<b>", "\u202eb & c")])

    def is_better(self, metric: str, new: float, old: float) -> bool:
        """See `Trainable.is_better`."""
        if metric not in ("loss", "exactness"):
            raise ConfigError(f"`training.metric` is `{metric}`. Choose from: `exactness`, `loss`.")
        return new < old if metric == "loss" else new > old

    def save_bundle(self, path: Path, *, scores: dict[str, float]) -> None:
        """See `Trainable.save_bundle`."""
        self.bundles.append(scores)
        path.mkdir(parents=True, exist_ok=True)
        (path / "weights.txt").write_text(str(self.model.embedding.weight.tolist()))


def _join(batches: list[Batch]) -> Batch:
    lengths = [each.target_lengths for each in batches if each.target_lengths is not None]
    targets = [each.target for each in batches if each.target is not None]
    return Batch(
        lines=torch.cat([each.lines for each in batches]), target=torch.cat(targets), target_lengths=torch.cat(lengths)
    )


RUNTIME = RuntimeConfig(device="cpu", dtype="float32", threads=1, seed=3)


def make_config(**changes: Any) -> TrainingConfig:
    """Return a short training with some of its values changed."""
    values = {
        "max_steps": 29,
        "validate_every": 6,
        "log_every": 4,
        "accumulate": 2,
        "schedule": {"kind": "cosine", "peak": 0.02, "warmup_steps": 5},
        "has_tensorboard": False,
    }
    return TrainingConfig.model_validate({**values, **changes})


def last_checkpoint(folder: RunFolder) -> Checkpoint:
    """Return the newest checkpoint of a run."""
    path = Checkpoints(folder.checkpoints).last()
    assert path is not None
    return read_checkpoint(path)


def without_times(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a history without what the clock decides."""
    times = ("elapsed_s", "targets_per_s", "seconds")
    return [{key: value for key, value in each.items() if key not in times} for each in records]


def random_streams(checkpoint: Checkpoint) -> list[Any]:
    """Return the random states of a checkpoint without Python's own, from which the type checker of the tests draws."""
    return [{**json.loads(each), "python": None} for each in checkpoint.random]


def assert_same_end(one: RunFolder, other: RunFolder) -> None:
    """Check that two runs ended alike, bit for bit."""
    a, b = last_checkpoint(one), last_checkpoint(other)
    for kind in ("model", "optimizer", "averages"):
        left, right = getattr(a, kind), getattr(b, kind)
        assert left.keys() == right.keys()
        for name in left:
            assert torch.equal(left[name], right[name]), (kind, name)
    assert random_streams(a) == random_streams(b)
    for name in ("step", "position", "best", "num_worse", "guard", "num_targets", "norm"):
        assert getattr(a.facts.state, name) == getattr(b.facts.state, name), name
    assert without_times(read_history(one.history)) == without_times(read_history(other.history))
    assert (one.bundle / "weights.txt").read_text() == (other.bundle / "weights.txt").read_text()
