"""Checkpoints: folders of safetensors and JSON, written beside and switched in by one rename.

``checkpoints/step-00001000/`` is there whole or not at all, whenever the process or the machine stops. The newest is
the last; the best is the one whose step the newest remembers.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import safetensors
import safetensors.torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from heedful.core.errors import BundleError, TrainingError
from heedful.core.storage import restore_folder, whole_folder
from heedful.core.weights import copy_tensors, find_difference
from heedful.training.state import State

FORMAT = 1
CHECKPOINT_NAME = re.compile(r"step-\d{8,}")
_TENSOR_FILES = ("model", "optimizer", "averages")


@dataclass
class Setting:
    """What must not change if a resumed run is to end bit-equal to one that was never stopped.

    Attributes:
        device: kind of device.
        dtype: type of arithmetic.
        threads: CPU threads within one operation.
        processes: that train together.
    """

    device: str
    dtype: str
    threads: int
    processes: int


@dataclass
class Facts:
    """The part of a checkpoint that is not tensors.

    Attributes:
        format: version of the layout.
        state: where training stood.
        setting: how it computed.
        history_bytes: length of the history then.
    """

    format: int
    state: State
    setting: Setting
    history_bytes: int


@dataclass
class Checkpoint:
    """All that training needs to go on as if it had never stopped.

    Attributes:
        model: float32 masters and buffers by name; a shared one once.
        optimizer: AdamW's averages of gradients.
        averages: of weights.
        random: random states of each process.
        facts: the rest.
    """

    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    averages: dict[str, Tensor]
    random: list[str]
    facts: Facts


_FACTS = TypeAdapter(Facts)


class Checkpoints:
    """The folder of a run's checkpoints."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def list(self) -> list[Path]:
        """Return the whole checkpoints, oldest first."""
        found = self.path.iterdir() if self.path.is_dir() else []
        return sorted(
            (each for each in found if CHECKPOINT_NAME.fullmatch(each.name)), key=lambda each: int(each.name[5:])
        )

    def last(self) -> Path | None:
        """Return the newest checkpoint, or None."""
        found = self.list()
        return found[-1] if found else None

    def at(self, step: int) -> Path:
        """Return where the checkpoint of a step stands or would stand."""
        return self.path / f"step-{step:08d}"

    def clean(self) -> None:
        """Remove what a killed process left half-written."""
        for each in self.path.glob(".step-*.previous"):
            restore_folder(self.path / each.name[1:].removesuffix(".previous"))
        for each in self.path.glob(".*"):
            shutil.rmtree(each, ignore_errors=True)

    def save(self, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint, in place of an earlier one of the same step, and return its folder.

        Raises:
            TrainingError: the disk is full or fails; earlier checkpoints are untouched.
        """
        step = checkpoint.facts.state.step
        place = self.at(step)
        try:
            with whole_folder(place) as folder:
                _write(folder, checkpoint)
        except (OSError, safetensors.SafetensorError) as error:
            raise TrainingError(self._explain(step, error)) from error
        return place

    def keep(self, newest: int, steps: Iterable[int]) -> None:
        """Remove all but the newest few and those of the named steps."""
        kept = {*self.list()[-newest:], *map(self.at, steps)}
        for each in self.list():
            if each not in kept:
                removed = each.with_name(f".removed-{each.name}")
                os.rename(each, removed)
                shutil.rmtree(removed, ignore_errors=True)

    def _explain(self, step: int, error: Exception) -> str:
        last = self.last()
        rest = f"The last good one is {last}. Free some space, then resume." if last else "There is no earlier one."
        reason = getattr(error, "strerror", None) or str(error)
        return f"{self.path}: the checkpoint of step {step} cannot be written: {reason}. {rest}"


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        BundleError: it is damaged, or of a format this version does not know.
    """
    try:
        found = json.loads((path / "state.json").read_bytes())
        if not isinstance(found, dict):
            raise ValueError("state.json is no object")
        if found.get("format") != FORMAT:
            raise BundleError(
                f"{path}: this checkpoint has format {found.get('format')}, but this version of Heedful reads {FORMAT}."
            )
        facts = _FACTS.validate_python(found)
        random = json.loads((path / "random.json").read_bytes())
        if not (isinstance(random, list) and all(isinstance(each, str) for each in random)):
            raise ValueError("random.json is no list of texts")
        tensors = {name: safetensors.torch.load_file(path / f"{name}.safetensors") for name in _TENSOR_FILES}
    except (OSError, ValueError, RecursionError, safetensors.SafetensorError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise BundleError(
            f"{path}: this checkpoint is damaged ({reason}). Remove the folder to go on from the one before it."
        ) from error
    return Checkpoint(**tensors, random=random, facts=facts)


def load_model_tensors(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy tensors into the model's own.

    Raises:
        BundleError: names or shapes differ: the checkpoint is of another model.
    """
    difference = find_difference(model, tensors)
    if difference:
        raise BundleError(f"The checkpoint is of another model: {difference}.")
    copy_tensors(model, tensors)


def _write(folder: Path, checkpoint: Checkpoint) -> None:
    for name in _TENSOR_FILES:
        tensors = {key: each.detach().contiguous() for key, each in getattr(checkpoint, name).items()}
        safetensors.torch.save_file(tensors, folder / f"{name}.safetensors")
    for name, value in (("random", checkpoint.random), ("state", asdict(checkpoint.facts))):
        (folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
