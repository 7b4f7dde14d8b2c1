"""When training ends: limits, patience and signals."""

import contextlib
import math
import signal
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Literal

from heedful.core.errors import ConfigError, did_you_mean
from heedful.core.types import Trainable
from heedful.training.config import TrainingConfig
from heedful.training.state import Best, State

MOST_EPOCH_VALIDATIONS = 20

Reason = Literal["max_steps", "max_minutes", "max_epochs", "patience", "signal"]


def fraction_done(config: TrainingConfig, state: State, num_batches: int | None) -> float:
    """Return the share of training done, 0 to 1, by the limit that is nearest; 0 without a limit.

    Args:
        config: has the limits.
        state: where training stands.
        num_batches: micro-batches of the present epoch; where it is None, the last epoch's number is taken, and in the
            first epoch nothing but whole epochs counts.
    """
    shares = [0.0]
    if config.max_steps is not None:
        shares.append(state.step / config.max_steps)
    if config.max_minutes is not None:
        shares.append(state.elapsed_s / 60 / config.max_minutes)
    if config.max_epochs is not None:
        length = num_batches or state.epoch_batches
        within = min(1.0, state.position.batch / length) if length else 0.0
        shares.append((state.position.epoch + within) / config.max_epochs)
    return min(1.0, max(shares))


def find_reason(config: TrainingConfig, state: State) -> Reason | None:
    """Say which limit is reached, or None."""
    if config.max_steps is not None and state.step >= config.max_steps:
        return "max_steps"
    if config.max_epochs is not None and state.position.epoch >= config.max_epochs:
        return "max_epochs"
    if config.max_minutes is not None and state.elapsed_s >= 60 * config.max_minutes:
        return "max_minutes"
    if config.patience is not None and state.num_worse >= config.patience:
        return "patience"
    return None


def is_validation_due(config: TrainingConfig, state: State) -> bool:
    """Say whether it is time to validate.

    After each epoch, unless told otherwise. Where the clock ends training, small data would have so many short epochs
    that validation took most of the time: then at most `MOST_EPOCH_VALIDATIONS`, evenly spread.
    """
    if state.step == state.validated_step:
        return False
    if config.validate_every is not None:
        return state.step % config.validate_every == 0
    if config.validate_minutes is not None:
        return state.elapsed_s - state.validated_s >= 60 * config.validate_minutes
    if state.position.epoch <= state.validated_epoch or config.max_minutes is None:
        return state.position.epoch > state.validated_epoch
    pause_s = 60 * config.max_minutes / MOST_EPOCH_VALIDATIONS
    return state.elapsed_s - state.validated_s - state.validation_s >= pause_s


def remember_best(trainable: Trainable, metric: str, scores: dict[str, float], state: State) -> bool:
    """Take note of a validation; return whether it is the best so far. A score that is no number never is.

    Raises:
        ConfigError: validation gives no such score.
    """
    if metric not in scores:
        raise ConfigError(
            f"`training.metric` is `{metric}`, which validation does not give. {did_you_mean(metric, scores)}"
        )
    new = scores[metric]
    is_best = state.best is None or trainable.is_better(metric, new, state.best.score)
    if is_best and not math.isnan(new):
        state.best = Best(step=state.step, score=new, scores=scores)
        state.num_worse = 0
        return True
    state.num_worse += 1
    return False


class Interrupted(Exception):
    """A signal came while work was done that may be thrown away."""


class Signals:
    """SIGTERM and Ctrl-C ask for an end instead of making one; a second one makes it at once.

    Only the main thread can watch signals; elsewhere nothing is watched.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self._may_interrupt = False
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> "Signals":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._handlers[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    @contextlib.contextmanager
    def interrupting(self) -> Iterator[None]:
        """Let a signal break off the block, one that came before it too.

        Raises:
            Interrupted: a signal came.
        """
        self._may_interrupt = True
        try:
            if self.is_asked:
                raise Interrupted
            yield
        finally:
            self._may_interrupt = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.is_asked = True
        self._restore()
        if self._may_interrupt:
            raise Interrupted

    def _restore(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._handlers = {}
