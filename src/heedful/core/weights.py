"""A model's tensors by name, each shared one once: what checkpoints and bundles hold."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return every parameter and saved buffer by name; one that two modules share stands under its first name."""
    saved = model.state_dict().keys()
    buffers = {name: buffer for name, buffer in model.named_buffers() if name in saved}
    return {**{name: each.detach() for name, each in model.named_parameters()}, **buffers}


def find_difference(model: nn.Module, found: Mapping[str, Tensor]) -> str | None:
    """Say in what tensors differ from those that the model has; None where names, shapes and kinds of number agree."""
    wanted = model_tensors(model)
    for name in sorted(wanted.keys() ^ found.keys()):
        return f"the weight `{name}` " + ("is missing" if name in wanted else "belongs to no part of the model")
    for name, tensor in wanted.items():
        if tensor.shape != found[name].shape:
            return f"the weight `{name}` has shape {tuple(found[name].shape)}, but the model's {tuple(tensor.shape)}"
        if tensor.is_floating_point() != found[name].is_floating_point():
            return f"the weight `{name}` is of type {found[name].dtype}, but the model's of {tensor.dtype}"
    return None


@torch.no_grad()
def copy_tensors(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors into the model's own; names and shapes must be the same."""
    for name, place in model_tensors(model).items():
        place.copy_(tensors[name])
