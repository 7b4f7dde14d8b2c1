"""One update: micro-batches in, one step of the optimiser out.

Losses are summed over everything and divided ONCE, by the count of all micro-batches of all processes, so that the
gradients are those of one big batch however it was cut up.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from heedful.core.errors import DataError
from heedful.core.runtime import compute_in
from heedful.core.types import Batch, PlacedBatch, Position, Trainable
from heedful.training.config import TrainingConfig
from heedful.training.guard import find_fault
from heedful.training.optim import AdamW, divide_and_clip, gradients_of, norm_of
from heedful.training.processes import Group


@dataclass(frozen=True)
class Sums:
    """What all processes computed for one update, before it is made.

    Attributes:
        total: of the loss.
        count: of targets.
        elapsed_s: of the first process.
        is_stop_asked: some process was asked to stop.
        positions: after each micro-batch.
    """

    total: float
    count: float
    elapsed_s: float
    is_stop_asked: bool
    positions: list[Position]

    @property
    def loss(self) -> float:
        """Mean nats per target; 0 where nothing was counted."""
        return self.total / self.count if self.count else 0.0


class Updater:
    """Makes updates of a model."""

    def __init__(
        self,
        trainable: Trainable,
        optimizer: AdamW,
        config: TrainingConfig,
        group: Group,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.trainable = trainable
        self.optimizer = optimizer
        self.config = config
        self.group = group
        self.device = device
        self.dtype = dtype

    def compute(self, batches: Iterator[PlacedBatch], ask: Callable[[], tuple[float, bool]]) -> Sums:
        """Leave the summed gradients of an update's micro-batches in the parameters; return the sums.

        The time and the wish to stop travel with the sums, so that every process decides alike.

        Args:
            batches: micro-batches, the same in every process, which takes its share of the rows of each.
            ask: returns, once the gradients are there, the time spent so far (that of the first process counts) and
                whether this process was asked to stop.
        """
        self.optimizer.clear_gradients()
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        count = torch.zeros((), dtype=torch.float64, device=self.device)
        positions = []
        with compute_in(self.trainable.model, self.dtype):
            for batch, position in self._take(batches):
                positions.append(position)
                share = self._share_of(batch)
                if len(share):
                    loss = self.trainable.loss(share.to(self.device))
                    loss.total.backward()  # type: ignore[no-untyped-call]
                    total += loss.total.detach()
                    count += loss.count
        elapsed_s, is_stop_asked = ask()
        times = torch.tensor([elapsed_s if self.group.is_first else 0.0, float(is_stop_asked)], dtype=torch.float64)
        sums = torch.cat([torch.stack([total, count]), times.to(self.device)])
        self.group.add(sums)
        numbers = sums.tolist()
        return Sums(numbers[0], numbers[1], numbers[2], numbers[3] > 0, positions)

    def apply(self, sums: Sums, rate: float, fraction: float = 0.0) -> tuple[float, str | None]:
        """Add the penalty, divide, clip and step, unless the loss or the gradient is not finite.

        Args:
            sums: of the update.
            rate: learning rate.
            fraction: share of training done, which a penalty may want to know.

        Returns:
            The norm of the gradient, and what is wrong with the update if it was not made.
        """
        penalty = self.trainable.penalty(fraction)
        if penalty is not None and self.group.is_first:
            (penalty * sums.count).backward()  # type: ignore[no-untyped-call]
        gradients = gradients_of(self.optimizer.parameters.values())
        self.group.add_all(gradients)
        if sums.count == 0:
            return 0.0, None
        summed = norm_of(gradients)
        fault = find_fault(sums.loss, summed)
        if fault:
            return summed, fault
        norm = divide_and_clip(gradients, count=sums.count, norm=summed, clip_norm=self.config.clip_norm)
        self.optimizer.step(rate)
        return norm, None

    def _take(self, batches: Iterator[PlacedBatch]) -> Iterator[PlacedBatch]:
        num_batches = num_targets = 0
        while True:
            placed = next(batches, None)
            if placed is None:
                raise DataError("There is nothing to train on: the training data give no batches.")
            yield placed
            num_batches += 1
            if self.config.update_tokens is None:
                if num_batches >= self.config.accumulate:
                    return
            else:
                num_targets += count_targets(placed.batch)
                if num_targets >= self.config.update_tokens:
                    return

    def _share_of(self, batch: Batch) -> Batch:
        if self.group.size == 1:
            return batch
        return batch.select(torch.arange(self.group.rank, len(batch), self.group.size))


def count_targets(batch: Batch) -> int:
    """Return how many symbols a batch asks for; rows, where it has no target text."""
    return len(batch) if batch.target_lengths is None else int(batch.target_lengths.sum()) - len(batch)
