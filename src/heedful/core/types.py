"""The types that rooms on one floor share: selectable rows, batches, sums of losses, steps, what can be trained."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def _map_tensors(value: Any, function: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, Selectable):
        return value.map(function)
    if isinstance(value, tuple):
        return tuple(_map_tensors(each, function) for each in value)
    return value


SelectableType = TypeVar("SelectableType", bound="Selectable")
"""A subclass of Selectable (run-time type checks know no ``Self`` outside a checked class)."""


class Selectable(ABC):  # noqa: B024 (its subclasses add fields, not methods)
    """A dataclass whose tensors all have the batch on axis 0.

    Fields may be tensors, other Selectables, tuples of these, None, or plain values common to all rows (which stay as
    they are).
    """

    def map(self: SelectableType, function: Callable[[Tensor], Tensor]) -> SelectableType:
        """Return a copy with the function applied to every tensor."""
        changed = {each.name: _map_tensors(getattr(self, each.name), function) for each in fields(self)}  # type: ignore[arg-type]
        return replace(self, **changed)  # type: ignore[type-var]

    def select(self: SelectableType, rows: Int[Tensor, " R"]) -> SelectableType:
        """Return the named rows, in the order given; a row may be named more than once."""
        return self.map(lambda tensor: tensor.index_select(0, rows))

    def to(self: SelectableType, device: torch.device) -> SelectableType:
        """Return a copy on the device."""
        return self.map(lambda tensor: tensor.to(device))


@dataclass(frozen=True, kw_only=True)
class SoftTargets(Selectable):
    """What a teacher finds probable after each target position: its most probable symbols, beside the target itself.

    In a batch the rows are ``B T``.

    Attributes:
        ids: the symbols, each once at a position.
        probs: the teacher's probabilities; what they lack to 1 lies on the other symbols.
        share: of the loss that is the teacher's, 0 to 1; the rest is the target's.
    """

    ids: Int[Tensor, "*rows K"]
    probs: Float[Tensor, "*rows K"]
    share: float


@dataclass(frozen=True, kw_only=True)
class Batch(Selectable):
    """Examples as tensors. A source row is ``w1 .. wn EOS``, a target ``BOS w1 .. wn EOS``; the rest is ``PAD_ID``.

    Attributes:
        lines: the number of each row's line in its file or request, from 0; seeds what is drawn for that row.
        source: source ids, or None (language models).
        source_lengths: real source positions of each row.
        target: target ids, or None (classification, prediction).
        target_lengths: real target positions of each row, BOS and EOS included.
        labels: class of each row, or None.
        soft_targets: what a teacher says at each position of ``target_output``, or None.
    """

    lines: Int[Tensor, " B"]
    source: Int[Tensor, "B S"] | None = None
    source_lengths: Int[Tensor, " B"] | None = None
    target: Int[Tensor, "B T"] | None = None
    target_lengths: Int[Tensor, " B"] | None = None
    labels: Int[Tensor, " B"] | None = None
    soft_targets: SoftTargets | None = None

    def __len__(self) -> int:
        return self.lines.shape[0]

    @property
    def source_keep(self) -> Tensor:
        """True at the real source positions, ``B S``."""
        assert self.source is not None and self.source_lengths is not None
        return torch.arange(self.source.shape[1], device=self.source.device) < self.source_lengths[:, None]

    @property
    def target_input(self) -> Tensor:
        """What the decoder reads: the target without its last position, ``B T-1``."""
        assert self.target is not None
        return self.target[:, :-1]

    @property
    def target_output(self) -> Tensor:
        """What the decoder must say: the target without BOS, ``B T-1``."""
        assert self.target is not None
        return self.target[:, 1:]

    @property
    def target_keep(self) -> Tensor:
        """True at the real positions of ``target_output`` (and of ``target_input``), ``B T-1``."""
        assert self.target is not None and self.target_lengths is not None
        return torch.arange(self.target.shape[1] - 1, device=self.target.device) < self.target_lengths[:, None] - 1


@dataclass(frozen=True)
class LossSum:
    """A loss not yet divided: the sum over everything counted, and how much was counted.

    The training loop adds these up over the micro-batches and processes of an update and divides ONCE, so that
    accumulation and data parallelism give the gradients of one big batch.
    """

    total: Float[Tensor, ""]
    count: Float[Tensor, ""]


class StepOutput(NamedTuple):
    """What one step of a generating model gives to the search.

    Attributes:
        log_probs: float32, a distribution for each hypothesis; the search writes into it where symbols are ruled out.
        state: what to hand back at the next step; rows are the hypotheses, ``R = B x N``.
        attention: weights over the source, when asked for.
    """

    log_probs: Float[Tensor, "B N V"]
    state: Selectable
    attention: Float[Tensor, "B N S"] | None


StepFn = Callable[[Int[Tensor, "B N"], Selectable, Selectable], StepOutput]
"""``step(ids_BN, memory, state) -> StepOutput``: the last symbol of each hypothesis, the memory (rows B, never repeated
for the beam) and the state (rows ``R = B x N``, hypothesis n of sentence b at row ``b * N + n``)."""


@dataclass(frozen=True)
class Position:
    """Where training stands in its data: the next batch to give is ``batch`` of ``epoch``, both counted from 0."""

    epoch: int = 0
    batch: int = 0


class PlacedBatch(NamedTuple):
    """A batch, and the position to go on from once it is consumed."""

    batch: Batch
    next_position: Position


@dataclass(frozen=True)
class Sample:
    """One validation line as a person reads it."""

    source: str
    reference: str
    prediction: str


@dataclass(frozen=True)
class Validation:
    """What was found on held-out data.

    Attributes:
        scores: by name; ``"loss"`` in nats per target token is always there.
        samples: a few.
        told: what a user should know of how it was measured; empty where there is nothing new.
    """

    scores: dict[str, float]
    samples: list[Sample] = field(default_factory=list)
    told: str = ""


class Trainable(ABC):
    """All that the training loop knows of a task."""

    model: nn.Module

    @abstractmethod
    def batches(self, position: Position) -> Iterator[PlacedBatch]:
        """Yield micro-batches for ever, epoch after epoch, in an order fixed by seed and position."""

    def num_batches(self, epoch: int) -> int | None:
        """Return how many micro-batches an epoch has, or None where that is known only at its end."""
        return None

    @abstractmethod
    def loss(self, batch: Batch) -> LossSum:
        """Return the training loss of a batch; an empty batch gives a sum and a count of 0."""

    def penalty(self, fraction: float) -> Tensor | None:
        """Return what each update adds once to its mean loss, however many micro-batches it has; None for nothing.

        It is asked for once an update, in every process, when the losses are known.

        Args:
            fraction: share of training done, 0 to 1.
        """
        return None

    def rate_factors(self) -> Mapping[str, float]:
        """Return the factor on the learning rate of each parameter, by name, that learns faster or slower."""
        return {}

    @abstractmethod
    def validate(self) -> Validation:
        """Score the model as it stands on held-out data, with the task's own search and metrics."""

    @abstractmethod
    def is_better(self, metric: str, new: float, old: float) -> bool:
        """Say whether a score by that name improved (a loss falls, BLEU rises).

        Raises:
            ConfigError: `validate` gives no such score.
        """

    @abstractmethod
    def save_bundle(self, path: Path, *, scores: dict[str, float]) -> None:
        """Write what a user keeps into the folder, replacing what is there in one atomic step."""
