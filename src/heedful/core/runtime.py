"""Where and how numbers are computed: device, type, threads, seeds."""

import contextlib
import random
from collections.abc import Iterator
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from heedful.core.config import Config
from heedful.core.errors import ConfigError


class RuntimeConfig(Config):
    """Device, type of arithmetic, threads and seed of a run.

    Attributes:
        device: ``auto`` takes CUDA when it is there, else the CPU.
        dtype: of activations and of the weights' working copies; the masters stay float32. ``auto`` takes bfloat16
            where the device multiplies it in hardware, else float32.
        threads: CPU threads within one operation; absent means torch's own choice.
        seed: of initial weights, data order, dropout and sampling.
    """

    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    threads: int | None = Field(default=None, ge=1, le=1024)
    seed: int = Field(default=1, ge=0, lt=2**63)


def choose_device(name: str) -> torch.device:
    """Return the device by that name.

    Raises:
        ConfigError: CUDA was asked for and there is none.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("`runtime.device` is `cuda`, but torch sees no CUDA device. Try `runtime.device=cpu`.")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def bf16_is_fast(device: torch.device) -> bool:
    """Ask the device whether it multiplies bfloat16 in hardware."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """Return the type by that name, or for ``auto`` the fast one of the device."""
    if name == "auto":
        return torch.bfloat16 if bf16_is_fast(device) else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


def set_seed(seed: int) -> None:
    """Seed torch, numpy and Python for this process."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


@contextlib.contextmanager
def compute_in(model: nn.Module, dtype: torch.dtype) -> Iterator[None]:
    """Let the model compute with copies of its weights in another type, for as long as the block lasts.

    Gradients flow through the copies into the float32 masters, which the optimiser sees. A weight that two modules
    share is copied once and stays shared. Only floating-point parameters are replaced; float32 does nothing.
    """
    if dtype == torch.float32:
        yield
        return
    copies: dict[int, torch.Tensor] = {}
    places = []
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter.dtype.is_floating_point:
                if id(parameter) not in copies:
                    copies[id(parameter)] = parameter.to(dtype)
                places.append((module, name, parameter))
    try:
        for module, name, parameter in places:
            module._parameters[name] = copies[id(parameter)]  # type: ignore[assignment]
        yield
    finally:
        for module, name, parameter in places:
            module._parameters[name] = parameter
