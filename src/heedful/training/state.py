"""Where training stands, as plain values that a checkpoint can hold, and the random states of a process."""

import base64
import contextlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch

from heedful.core.types import Position
from heedful.training.guard import GuardMemory


@dataclass
class Window:
    """Sums since the last line of the log; their quotient is the loss it shows.

    Attributes:
        total: of the loss, in nats.
        count: of targets.
        seconds: spent in updates.
    """

    total: float = 0.0
    count: float = 0.0
    seconds: float = 0.0


@dataclass
class Best:
    """The best validation so far.

    Attributes:
        step: where it was.
        score: of the metric that decides.
        scores: all of them, by name.
    """

    step: int
    score: float
    scores: dict[str, float]


@dataclass
class State:
    """Everything that changes from update to update and is not a tensor.

    Attributes:
        step: updates made.
        position: the next micro-batch.
        epoch_batches: micro-batches of the last whole epoch, or None before its end.
        elapsed_s: time spent, earlier parts of a resumed run included.
        num_targets: targets trained on.
        norm: of the last gradient, before clipping.
        window: sums for the next line of the log.
        validated_step: where the last validation was; with its epoch and time.
        validation_s: how long it took.
        best: the best validation so far.
        num_worse: validations since the best.
        guard: the divergence guard's memory.
    """

    step: int = 0
    position: Position = field(default_factory=Position)
    epoch_batches: int | None = None
    elapsed_s: float = 0.0
    num_targets: float = 0.0
    norm: float = 0.0
    window: Window = field(default_factory=Window)
    validated_step: int = 0
    validated_epoch: int = 0
    validated_s: float = 0.0
    validation_s: float = 0.0
    best: Best | None = None
    num_worse: int = 0
    guard: GuardMemory = field(default_factory=GuardMemory)


def random_states() -> str:
    """Return the random states of torch, numpy and Python of this process, as JSON."""
    version, words, gauss = random.getstate()
    name, keys, place, has_gauss, cached = np.random.get_state(legacy=True)
    has_cuda = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    states = {
        "torch": _encode(torch.get_rng_state()),
        "cuda": _encode(torch.cuda.get_rng_state()) if has_cuda else None,
        "numpy": [name, [int(key) for key in keys], int(place), int(has_gauss), float(cached)],
        "python": [version, list(words), gauss],
    }
    return json.dumps(states)


def set_random_states(text: str) -> None:
    """Put back what `random_states` gave; CUDA's only where there is CUDA."""
    states = json.loads(text)
    torch.set_rng_state(_decode(states["torch"]))
    if states["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(_decode(states["cuda"]))
    name, keys, place, has_gauss, cached = states["numpy"]
    np.random.set_state((name, np.array(keys, dtype=np.uint32), place, has_gauss, cached))
    version, words, gauss = states["python"]
    random.setstate((version, tuple(words), gauss))


@contextlib.contextmanager
def random_states_kept() -> Iterator[None]:
    """Put the random states back after the block: how often one validates then changes nothing in training."""
    states = random_states()
    try:
        yield
    finally:
        set_random_states(states)


def _encode(state: torch.Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode("ascii")


def _decode(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8).clone()
