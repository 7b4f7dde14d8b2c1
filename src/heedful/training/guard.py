"""The guard against divergence: it looks at each update's loss and gradient and says when training has gone wrong."""

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from heedful.core.config import Config

SMOOTHING = 0.9
MIN_UPDATES = 20


class GuardConfig(Config):
    """What is done about a loss or gradient that is not finite, or a loss that explodes.

    The weights, the optimiser and the averages go back to the last checkpoint, the learning rate is lowered for the
    rest of training, and training goes on with the data that follow what broke it.

    Attributes:
        explosion_factor: a smoothed loss this many times its lowest, and above that of the first updates, has exploded.
        rate_factor: by which each return lowers the learning rate.
        max_rollbacks: returns before training gives up; 0 gives up at once.
    """

    explosion_factor: Annotated[float, Field(gt=1)] = 2.0
    rate_factor: Annotated[float, Field(gt=0, le=1)] = 0.5
    max_rollbacks: Annotated[int, Field(ge=0)] = 3


@dataclass
class GuardMemory:
    """What the guard remembers from update to update; a checkpoint holds it.

    Attributes:
        num_updates: looked at so far.
        smoothed: exponential average of the loss per target.
        first: the smoothed loss once enough updates were seen, or None before.
        lowest: the lowest smoothed loss since, or None before.
        rate_factor: what the learning rate is multiplied by.
        num_rollbacks: returns so far.
    """

    num_updates: int = 0
    smoothed: float = 0.0
    first: float | None = None
    lowest: float | None = None
    rate_factor: float = 1.0
    num_rollbacks: int = 0


def find_fault(loss: float, norm: float) -> str | None:
    """Say what is wrong with an update before it is made, or None.

    Args:
        loss: mean over the update's targets.
        norm: of the gradient.
    """
    if not math.isfinite(loss):
        return f"the loss is {loss}"
    if not math.isfinite(norm):
        return f"the gradient's norm is {norm}"
    return None


def watch_loss(memory: GuardMemory, loss: float, config: GuardConfig) -> str | None:
    """Take note of a finite loss; say so when the smoothed loss has exploded, else return None."""
    memory.num_updates += 1
    weight = max(1 - SMOOTHING, 1 / memory.num_updates)
    memory.smoothed += weight * (loss - memory.smoothed)
    if memory.num_updates < MIN_UPDATES:
        return None
    memory.first = memory.smoothed if memory.first is None else memory.first
    memory.lowest = memory.smoothed if memory.lowest is None else min(memory.lowest, memory.smoothed)
    limit = max(memory.first, config.explosion_factor * memory.lowest)
    if memory.smoothed > limit:
        return f"the loss exploded from {memory.lowest:.4g} to {memory.smoothed:.4g}"
    return None
