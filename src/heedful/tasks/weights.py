"""Weights of a model as one safetensors file: float32 masters, a shared weight once."""

import errno
import os
import re
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from heedful.core.errors import BundleError
from heedful.core.weights import copy_tensors, find_difference, model_tensors


def save_weights(model: nn.Module, file: Path) -> None:
    """Write the weights; floating-point ones as float32.

    Raises:
        OSError: the disk is full or fails.
    """
    tensors = {}
    for name, tensor in model_tensors(model).items():
        tensor = tensor.cpu()
        tensors[name] = (tensor.float() if tensor.is_floating_point() else tensor).contiguous()
    try:
        save_file(tensors, file)
    except SafetensorError as error:
        # It tells what the system said in words alone; the number lets a full disk be known as one.
        found = re.search(r"os error (\d+)", str(error))
        number = int(found[1]) if found else errno.EIO
        raise OSError(number, os.strerror(number), str(file)) from error


def load_weights(model: nn.Module, file: Path) -> None:
    """Copy weights from a file into the model.

    Raises:
        BundleError: the file does not hold exactly the weights of this model.
    """
    try:
        found = load_file(file)
    except (SafetensorError, OSError) as error:
        raise BundleError(f"{file}: damaged: {error}. Copy the bundle again from its run.") from None
    difference = find_difference(model, found)
    if difference:
        raise BundleError(f"{file}: {difference}. The file and `config.toml` are not of one bundle.")
    for name, tensor in found.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise BundleError(
                f"{file}: damaged: `{name}` holds numbers that are not finite. Train again, or copy it again."
            )
    copy_tensors(model, found)
