"""Averages of the weights over time: they generalise better than the weights of any one update (Polyak and Juditsky,
1992).
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from heedful.core.config import Config


class NoAveragingConfig(Config):
    """The weights as they stand."""

    kind: Literal["none"] = "none"


class EmaConfig(Config):
    """An exponential moving average of the weights.

    Attributes:
        decay: share of the old average that each update keeps, once warm. At update n it is at most ``(1 + n) / (10 +
            n)``, so that the first weights, which are noise, are soon forgotten.
    """

    kind: Literal["ema"] = "ema"
    decay: Annotated[float, Field(ge=0, lt=1)] = 0.999


class LastConfig(Config):
    """The mean of the weights at the last ``k`` validations (Vaswani et al., 2017, section 6.1, average checkpoints).

    All ``k`` are held in memory and in each checkpoint.
    """

    kind: Literal["last"] = "last"
    k: Annotated[int, Field(ge=1)] = 5


AnyAveragingConfig = Annotated[NoAveragingConfig | EmaConfig | LastConfig, Field(discriminator="kind")]


class Averaging(ABC):
    """Follows the weights of a model and can put their average in its place."""

    def __init__(self, model: nn.Module) -> None:
        self.parameters = {name: each for name, each in model.named_parameters() if each.requires_grad}

    def follow(self, step: int) -> None:  # noqa: B027 - most kinds have nothing to do here
        """Take note of the weights after update number ``step``."""

    def mark(self, step: int) -> None:  # noqa: B027
        """Take note that the model is about to be validated at this step; twice at one step is once."""

    @abstractmethod
    def average(self) -> dict[str, Tensor]:
        """Return the averaged weights by name."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Return what a checkpoint must hold."""

    @abstractmethod
    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take over what a checkpoint held."""

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the model hold the averaged weights for as long as the block lasts; no weight is copied."""
        held = {name: parameter.data for name, parameter in self.parameters.items()}
        average = self.average()
        try:
            for name, parameter in self.parameters.items():
                parameter.data = average[name]
            yield
        finally:
            for name, parameter in self.parameters.items():
                parameter.data = held[name]


class NoAveraging(Averaging):
    """Leaves the weights as they are."""

    def average(self) -> dict[str, Tensor]:
        """See `Averaging.average`."""
        return {name: parameter.data for name, parameter in self.parameters.items()}

    def tensors(self) -> dict[str, Tensor]:
        """See `Averaging.tensors`."""
        return {}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """See `Averaging.load`."""


class ExponentialAveraging(Averaging):
    """See `EmaConfig`."""

    def __init__(self, model: nn.Module, config: EmaConfig) -> None:
        super().__init__(model)
        self.decay = config.decay
        self.means = {name: parameter.detach().clone() for name, parameter in self.parameters.items()}

    def follow(self, step: int) -> None:
        """See `Averaging.follow`."""
        decay = min(self.decay, (1 + step) / (10 + step))
        weights = [parameter.data for parameter in self.parameters.values()]
        torch._foreach_lerp_(list(self.means.values()), weights, 1 - decay)

    def average(self) -> dict[str, Tensor]:
        """See `Averaging.average`."""
        return self.means

    def tensors(self) -> dict[str, Tensor]:
        """See `Averaging.tensors`."""
        return self.means

    def load(self, tensors: dict[str, Tensor]) -> None:
        """See `Averaging.load`."""
        for name, mean in self.means.items():
            mean.copy_(tensors[name])


class LastAveraging(Averaging):
    """See `LastConfig`."""

    def __init__(self, model: nn.Module, config: LastConfig) -> None:
        super().__init__(model)
        self.k = config.k
        self.snapshots: dict[int, dict[str, Tensor]] = {}

    def mark(self, step: int) -> None:
        """See `Averaging.mark`."""
        self.snapshots[step] = {name: parameter.detach().clone() for name, parameter in self.parameters.items()}
        for old in sorted(self.snapshots)[: -self.k]:
            del self.snapshots[old]

    def average(self) -> dict[str, Tensor]:
        """See `Averaging.average`."""
        snapshots = [self.snapshots[step] for step in sorted(self.snapshots)]
        if not snapshots:
            return {name: parameter.data for name, parameter in self.parameters.items()}
        return {name: torch.stack([each[name] for each in snapshots]).mean(dim=0) for name in self.parameters}

    def tensors(self) -> dict[str, Tensor]:
        """See `Averaging.tensors`."""
        return {f"{step}/{name}": each for step, kept in self.snapshots.items() for name, each in kept.items()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """See `Averaging.load`."""
        self.snapshots = {}
        for key, tensor in tensors.items():
            step, _, name = key.partition("/")
            place = self.parameters[name]
            self.snapshots.setdefault(int(step), {})[name] = tensor.to(place.device)


def build_averaging(model: nn.Module, config: AnyAveragingConfig) -> Averaging:
    """Return the averaging that a configuration asks for, started at the model's present weights."""
    match config:
        case EmaConfig():
            return ExponentialAveraging(model, config)
        case LastConfig():
            return LastAveraging(model, config)
        case NoAveragingConfig():
            return NoAveraging(model)
