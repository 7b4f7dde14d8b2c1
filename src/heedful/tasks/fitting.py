"""A task with its training data: what the training loop turns."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from heedful.core.errors import ConfigError, did_you_mean
from heedful.core.types import Batch, LossSum, PlacedBatch, Position, Trainable, Validation
from heedful.data.batches import Batches
from heedful.data.example import Example
from heedful.tasks.outcome import Evaluation
from heedful.tasks.task import Task
from heedful.text.unread import Unread


class Fitting(Trainable):
    """Gives the loop batches and losses, validates with the task's own search and metrics, saves what is kept.

    Args:
        task: to be trained.
        training_data: gives batches in a fixed order.
        dev: held-out examples, references of one source taken together where that is wished.
        save: writes a bundle of a task as it stands, with what its evaluation found.

    Attributes:
        evaluation: the last validation's, or None before.
    """

    def __init__(
        self,
        task: Task,
        training_data: Batches,
        dev: Sequence[Example],
        save: Callable[[Task, Path, Evaluation], None],
    ) -> None:
        self.task = task
        self.model = task.model
        self.training_data = training_data
        self.dev = dev[: task.config.validation.max_lines]
        self.save = save
        self.evaluation: Evaluation | None = None
        self._is_told = False

    def batches(self, position: Position) -> Iterator[PlacedBatch]:
        """Yield micro-batches for ever."""
        return self.training_data.placed(position)

    def num_batches(self, epoch: int) -> int | None:
        """Return how many micro-batches an epoch has."""
        return len(self.training_data.epoch(epoch))

    def loss(self, batch: Batch) -> LossSum:
        """Return the training loss."""
        return self.task.loss(batch)

    def validate(self) -> Validation:
        """Predict the dev data and measure; the first time tell what of them is not read."""
        config = self.task.config.validation
        unread = Unread()
        evaluation = self.evaluation = self.task.evaluate(self.dev, "dev", search=config.search, unread=unread)
        missed = "" if self._is_told else unread.summary("What was cut is not read.")
        self._is_told = True
        told = f"Warning: dev: {missed}" if missed else ""
        return Validation(evaluation.scores(), self.task.samples(evaluation, config.num_samples), told)

    def is_better(self, metric: str, new: float, old: float) -> bool:
        """Say whether a score improved.

        Raises:
            ConfigError: validation gives no such score.
        """
        directions = self.task.directions
        if metric not in directions:
            raise ConfigError(
                f"`training.metric` is `{metric}`, which is not measured. {did_you_mean(metric, directions)}"
            )
        return new > old if directions[metric] else new < old

    def save_bundle(self, path: Path, *, scores: dict[str, float]) -> None:
        """Write the model as it stands, with everything that is needed to use it; it must just have been validated."""
        assert self.evaluation is not None and self.evaluation.scores() == scores
        self.save(self.task, path, self.evaluation)
