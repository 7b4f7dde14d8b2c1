"""What training says while it runs: the lines of the history, the points of TensorBoard and the words of a reporter."""

from dataclasses import dataclass, field
from typing import Literal

from heedful.core.types import Sample


@dataclass(frozen=True)
class UpdateRecord:
    """One update, for a progress bar.

    Attributes:
        step: updates made.
        epoch: from 0.
        loss: mean nats per target.
        rate: learning rate.
        fraction: share of training done, 0 to 1; 0 where no limit is set.
        elapsed_s: time spent, earlier parts of a resumed run included.
        targets: in this update.
        seconds: of this update.
    """

    step: int
    epoch: int
    loss: float
    rate: float
    fraction: float
    elapsed_s: float
    targets: float
    seconds: float


@dataclass(frozen=True)
class TrainRecord:
    """The updates since the last record, together.

    Attributes:
        step: updates made.
        epoch: from 0.
        loss: mean nats per target.
        rate: learning rate of the last update.
        norm: of the last gradient, before clipping.
        num_targets: trained on so far, in all.
        targets_per_s: speed of the updates, without validation.
        elapsed_s: time spent, earlier parts of a resumed run included.
    """

    step: int
    epoch: int
    loss: float
    rate: float
    norm: float
    num_targets: float
    targets_per_s: float
    elapsed_s: float
    kind: Literal["train"] = "train"


@dataclass(frozen=True)
class ValidationRecord:
    """One validation.

    Attributes:
        step: updates made.
        epoch: from 0.
        scores: by name.
        is_best: it is the best so far.
        elapsed_s: time spent, earlier parts of a resumed run included.
        seconds: that it took.
        samples: a few lines.
    """

    step: int
    epoch: int
    scores: dict[str, float]
    is_best: bool
    elapsed_s: float
    seconds: float
    samples: list[Sample] = field(default_factory=list)
    kind: Literal["validation"] = "validation"


@dataclass(frozen=True)
class RollbackRecord:
    """A return to an earlier checkpoint.

    Attributes:
        step: of the checkpoint.
        broken_step: where training went wrong.
        fault: what was wrong.
        rate_factor: what the learning rate is multiplied by from now on.
        elapsed_s: time spent.
    """

    step: int
    broken_step: int
    fault: str
    rate_factor: float
    elapsed_s: float
    kind: Literal["rollback"] = "rollback"


Record = TrainRecord | ValidationRecord | RollbackRecord
