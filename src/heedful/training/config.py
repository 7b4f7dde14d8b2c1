"""The configuration of training: table ``[training]`` of a recipe."""

from typing import Annotated

from pydantic import Field, model_validator

from heedful.core.config import Config
from heedful.training.averaging import AnyAveragingConfig, EmaConfig
from heedful.training.guard import GuardConfig
from heedful.training.optim import AdamWConfig
from heedful.training.schedule import AnySchedule, CosineSchedule

PositiveInt = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0)]
NonNegativeFloat = Annotated[float, Field(ge=0)]


class TrainingConfig(Config):
    """How a model is trained and when training ends.

    Resuming is exact (bit for bit) when the end and the validations are counted in steps or epochs. With
    ``max_minutes`` a cosine or linear schedule follows the clock, and ``validate_minutes`` does, so no two runs are
    quite the same; nor are two of which one was stopped, if both diverge and return to their newest checkpoint.

    Attributes:
        optimizer: AdamW's numbers.
        schedule: the learning rate: ``kind`` = constant, linear, cosine, inverse_square_root or noam.
        averaging: of weights: ``kind`` = none, ema or last. Averages are what is validated and kept in the bundle.
        guard: against divergence.
        accumulate: micro-batches of an update.
        update_tokens: targets of an update; as many micro-batches are taken as it needs. Absent: ``accumulate``
            decides.
        clip_norm: longest gradient (after the division by the count); 0: not clipped.
        max_steps: updates after which training ends.
        max_minutes: time after which it ends, all parts of a resumed run together.
        max_epochs: passes over the data after which it ends.
        validate_every: updates between validations.
        validate_minutes: minutes between them. Both absent: one after each epoch, with
            ``max_minutes`` about 20 in all at most. There is always one at the end.
        metric: the score that says which validation was best.
        patience: validations without a better score after which training ends; absent: it does not.
        log_every: updates between lines of the log.
        save_minutes: minutes between checkpoints; there is also one at each validation.
        keep_checkpoints: newest checkpoints that are kept, besides the best.
        has_tensorboard: write TensorBoard events.
        timeout_minutes: how long a process waits for the others before it gives them up; longer than a validation.
    """

    optimizer: AdamWConfig = AdamWConfig()
    schedule: AnySchedule = CosineSchedule(warmup_steps=100)
    averaging: AnyAveragingConfig = EmaConfig()
    guard: GuardConfig = GuardConfig()
    accumulate: PositiveInt = 1
    update_tokens: PositiveInt | None = None
    clip_norm: NonNegativeFloat = 1.0
    max_steps: PositiveInt | None = None
    max_minutes: PositiveFloat | None = None
    max_epochs: PositiveInt | None = None
    validate_every: PositiveInt | None = None
    validate_minutes: PositiveFloat | None = None
    metric: str = "loss"
    patience: PositiveInt | None = None
    log_every: PositiveInt = 50
    save_minutes: PositiveFloat = 10.0
    keep_checkpoints: PositiveInt = 2
    has_tensorboard: bool = True
    timeout_minutes: PositiveFloat = 30.0

    @model_validator(mode="after")
    def _check_together(self) -> "TrainingConfig":
        has_limit = any(each is not None for each in (self.max_steps, self.max_minutes, self.max_epochs))
        if not has_limit and self.patience is None:
            raise ValueError(
                "`training` never ends: set `training.max_steps`, `training.max_minutes`, `training.max_epochs` "
                "or `training.patience`."
            )
        if not has_limit and self.schedule.needs_end:
            raise ValueError(
                f"`training.schedule.kind` is `{self.schedule.kind}`, which must know the end of training. Set "
                "`training.max_steps`, `training.max_minutes` or `training.max_epochs`, or try "
                "`training.schedule.kind=inverse_square_root`."
            )
        if self.update_tokens is not None and self.accumulate != 1:
            raise ValueError("`training.accumulate` and `training.update_tokens` exclude each other. Set one of them.")
        if self.validate_every is not None and self.validate_minutes is not None:
            raise ValueError(
                "`training.validate_every` and `training.validate_minutes` exclude each other. Set one of them."
            )
        return self
