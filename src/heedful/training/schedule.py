"""Learning rates: what the rate is at an update, as a pure function of the update's number and the share of training
done.

A schedule remembers nothing, so that a resumed run finds the rate it left. Those that end (cosine, linear) follow
``fraction``, the share of training done: of ``max_steps``, ``max_minutes`` or ``max_epochs``, whichever is furthest.
Warm-up is a factor on top, ``min(1, (step + 1) / warmup_steps)``.
"""

import math
from abc import ABC, abstractmethod
from typing import Annotated, Literal

from pydantic import Field

from heedful.core.config import Config

PositiveFloat = Annotated[float, Field(gt=0)]


class Schedule(Config, ABC):
    """Gives the learning rate of each update."""

    warmup_steps: Annotated[int, Field(ge=0)] = 0

    @property
    def needs_end(self) -> bool:
        """Say whether the rate depends on the share of training done, so that the end must be known."""
        return False

    @abstractmethod
    def rate(self, step: int, fraction: float) -> float:
        """Return the learning rate.

        Args:
            step: number of updates made so far, from 0.
            fraction: share of training done, 0 to 1.
        """

    def warmup(self, step: int) -> float:
        """Return the factor of linear warm-up, which reaches 1 at the ``warmup_steps``-th update."""
        return min(1.0, (step + 1) / self.warmup_steps) if self.warmup_steps else 1.0


class ConstantSchedule(Schedule):
    """Warm-up, then ``peak`` for ever."""

    kind: Literal["constant"] = "constant"
    peak: PositiveFloat = 3e-4

    def rate(self, step: int, fraction: float) -> float:
        """See `Schedule.rate`."""
        return self.peak * self.warmup(step)


class EndingSchedule(Schedule):
    """Warm-up, and a way from ``peak`` to ``peak * final``, which is reached at the end of training."""

    peak: PositiveFloat = 1e-3
    final: Annotated[float, Field(ge=0, le=1)] = 0.0

    @property
    def needs_end(self) -> bool:
        """See `Schedule.needs_end`."""
        return True


class LinearSchedule(EndingSchedule):
    """Warm-up, and a straight line from ``peak`` to ``peak * final`` at the end of training."""

    kind: Literal["linear"] = "linear"

    def rate(self, step: int, fraction: float) -> float:
        """See `Schedule.rate`."""
        return self.peak * self.warmup(step) * (1 + (self.final - 1) * min(1.0, fraction))


class CosineSchedule(EndingSchedule):
    """Warm-up, and half a cosine from ``peak`` to ``peak * final`` at the end of training.

    Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts" (2017), equation 5, without restarts.
    """

    kind: Literal["cosine"] = "cosine"

    def rate(self, step: int, fraction: float) -> float:
        """See `Schedule.rate`."""
        falling = 0.5 * (1 + math.cos(math.pi * min(1.0, fraction)))
        return self.peak * self.warmup(step) * (self.final + (1 - self.final) * falling)


class InverseSquareRootSchedule(Schedule):
    """Warm-up to ``peak``, then ``peak * sqrt(warmup_steps / step)``: the shape of `NoamSchedule` with its height
    named.
    """

    kind: Literal["inverse_square_root"] = "inverse_square_root"
    peak: PositiveFloat = 1e-3
    warmup_steps: Annotated[int, Field(ge=1)] = 1000

    def rate(self, step: int, fraction: float) -> float:
        """See `Schedule.rate`."""
        return self.peak * min((step + 1) / self.warmup_steps, math.sqrt(self.warmup_steps / (step + 1)))


class NoamSchedule(Schedule):
    """``factor * model_dim^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)``.

    Vaswani et al., "Attention Is All You Need" (2017), section 5.3, equation 3. The highest rate is
    ``factor / sqrt(model_dim * warmup_steps)``.
    """

    kind: Literal["noam"] = "noam"
    factor: PositiveFloat = 1.0
    model_dim: Annotated[int, Field(ge=1)]
    warmup_steps: Annotated[int, Field(ge=1)] = 4000

    def rate(self, step: int, fraction: float) -> float:
        """See `Schedule.rate`."""
        number = step + 1
        rising, falling = number / math.sqrt(self.warmup_steps**3), 1 / math.sqrt(number)
        return self.factor / math.sqrt(self.model_dim) * min(falling, rising)


AnySchedule = Annotated[
    ConstantSchedule | LinearSchedule | CosineSchedule | InverseSquareRootSchedule | NoamSchedule,
    Field(discriminator="kind"),
]
