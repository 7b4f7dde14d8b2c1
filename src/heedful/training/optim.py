"""The optimiser, and what happens to gradients before it sees them."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from heedful.core.config import Config

Beta = Annotated[float, Field(ge=0, lt=1)]


class AdamWConfig(Config):
    """AdamW: Kingma and Ba (2015), algorithm 1; Loshchilov and Hutter, "Decoupled Weight Decay" (2019), algorithm 2.

    Attributes:
        betas: decay of the averages of the gradient and of its square.
        eps: added to the root of the second average.
        weight_decay: times the learning rate, taken off each weight matrix at each update; biases, norms and every
            other parameter with fewer than two axes are spared.
    """

    betas: tuple[Beta, Beta] = (0.9, 0.98)
    eps: Annotated[float, Field(gt=0)] = 1e-8
    weight_decay: Annotated[float, Field(ge=0)] = 0.01


class AdamW:
    """AdamW over a model's trainable parameters, on torch's fused kernel.

    The kernel takes a fraction of the time of a loop over tensors. It is called directly because the first
    `torch.optim.Optimizer` of a process imports torch's compiler, which takes longer than `import torch`; a test holds
    both equal, bit for bit.

    Args:
        model: whose parameters are updated.
        config: its numbers.
        rate_factors: on the learning rate of single parameters, by name.
    """

    def __init__(
        self, model: nn.Module, config: AdamWConfig, rate_factors: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        self.config = config
        self.parameters = {name: each for name, each in model.named_parameters() if each.requires_grad}
        self.first = {name: torch.zeros_like(each, requires_grad=False) for name, each in self.parameters.items()}
        self.second = {name: torch.zeros_like(each, requires_grad=False) for name, each in self.parameters.items()}
        device = next(iter(self.parameters.values())).device
        self.num_steps = torch.zeros((), dtype=torch.float32, device=device)
        self.groups: dict[tuple[bool, float], list[str]] = {}
        for name, each in self.parameters.items():
            self.groups.setdefault((each.ndim >= 2, rate_factors.get(name, 1.0)), []).append(name)

    def clear_gradients(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters.values():
            parameter.grad = None

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Update every parameter from its gradient."""
        self.num_steps += 1
        for (has_decay, factor), names in self.groups.items():
            torch._fused_adamw_(
                [self.parameters[name] for name in names],
                [gradient for name in names if (gradient := self.parameters[name].grad) is not None],
                [self.first[name] for name in names],
                [self.second[name] for name in names],
                [],
                [self.num_steps] * len(names),
                lr=rate * factor,
                beta1=self.config.betas[0],
                beta2=self.config.betas[1],
                weight_decay=self.config.weight_decay if has_decay else 0.0,
                eps=self.config.eps,
                amsgrad=False,
                maximize=False,
            )

    def tensors(self) -> dict[str, Tensor]:
        """Return what a checkpoint must hold."""
        first = {f"{name}/first": each for name, each in self.first.items()}
        second = {f"{name}/second": each for name, each in self.second.items()}
        return {**first, **second, "num_steps": self.num_steps}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take over what a checkpoint held."""
        for name, place in self.tensors().items():
            place.copy_(tensors[name])


def gradients_of(parameters: Iterable[nn.Parameter]) -> list[Tensor]:
    """Return the gradient of each parameter; one that took no part gets zeros, in one process as in many."""
    gradients = []
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        gradients.append(parameter.grad)
    return gradients


def norm_of(gradients: list[Tensor]) -> float:
    """Return the Euclidean norm of all gradients together; not finite as soon as one element is not."""
    return float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients))))


def divide_and_clip(gradients: list[Tensor], *, count: float, norm: float, clip_norm: float) -> float:
    """Divide summed gradients by the count, and shrink them to ``clip_norm`` where they are longer; one multiplication.

    Args:
        gradients: sums over everything counted; changed in place.
        count: how much was counted.
        norm: of the summed gradients.
        clip_norm: longest allowed norm of the divided gradients; 0 allows any.

    Returns:
        The norm of the divided gradients before clipping.
    """
    scale = 1.0 / count
    if 0 < clip_norm < norm * scale:
        scale = clip_norm / norm
    torch._foreach_mul_(gradients, scale)
    return norm / count
