"""Weights of a model as one safetensors file: float32 masters, a shared weight once."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from heedful.core.errors import BundleError


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Return every parameter and saved buffer by name; one that two modules share stands under its first name."""
    parameters: dict[str, Tensor] = dict(model.named_parameters())
    saved = model.state_dict(keep_vars=True)
    buffers = {name: buffer for name, buffer in model.named_buffers() if name in saved}
    return parameters | buffers


def save_weights(model: nn.Module, file: Path) -> None:
    """Write the weights; floating-point ones as float32."""
    tensors = {}
    for name, tensor in weights_of(model).items():
        tensor = tensor.detach().cpu()
        tensors[name] = (tensor.float() if tensor.is_floating_point() else tensor).contiguous()
    save_file(tensors, file)


def load_weights(model: nn.Module, file: Path) -> None:
    """Copy weights from a file into the model.

    Raises:
        BundleError: the file does not hold exactly the weights of this model.
    """
    try:
        found = load_file(file)
    except (SafetensorError, OSError) as error:
        raise BundleError(f"{file}: damaged: {error}. Copy the bundle again from its run.") from None
    wanted = weights_of(model)
    for name in sorted(wanted.keys() ^ found.keys()):
        place = "is missing" if name in wanted else "belongs to no part of the model"
        raise BundleError(f"{file}: the weight `{name}` {place}. The file and `config.toml` are not of one bundle.")
    with torch.no_grad():
        for name, tensor in wanted.items():
            if tensor.shape != found[name].shape:
                raise BundleError(
                    f"{file}: the weight `{name}` has shape {tuple(found[name].shape)}, but the configuration says "
                    f"{tuple(tensor.shape)}. The file and `config.toml` are not of one bundle."
                )
            tensor.copy_(found[name])
