"""The processes that train together: one alone, or those that ``torchrun`` started."""

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from heedful.core.errors import TrainingError


def is_first_process() -> bool:
    """Say whether this is the process that writes: the only one, or the first of those that ``torchrun`` started."""
    return int(os.environ.get("RANK", "0")) == 0


def num_processes() -> int:
    """Return how many processes train together, as ``torchrun`` tells each of them."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1


class Group(ABC):
    """What the processes of a training say to each other. Every process must make the same calls in the same order."""

    rank: int
    size: int

    @property
    def is_first(self) -> bool:
        """Say whether this is the process that writes."""
        return self.rank == 0

    @abstractmethod
    def add(self, tensor: Tensor) -> None:
        """Replace the tensor in every process by the sum over all."""

    @abstractmethod
    def share(self, tensor: Tensor) -> None:
        """Replace the tensor in every process by that of the first."""

    @abstractmethod
    def share_text(self, text: str) -> str:
        """Return the text of the first process."""

    @abstractmethod
    def collect_texts(self, text: str) -> list[str]:
        """Return the texts of all processes, in order of rank."""

    def add_all(self, tensors: list[Tensor]) -> None:
        """Replace the tensors by their sums over all processes, in one message for each type."""
        if self.size == 1 or not tensors:
            return
        flat = torch.cat([each.reshape(-1) for each in tensors])
        self.add(flat)
        for tensor, part in zip(tensors, torch.split(flat, [each.numel() for each in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))


class Alone(Group):
    """One process, which has nobody to talk to."""

    rank = 0
    size = 1

    def add(self, tensor: Tensor) -> None:
        """See `Group.add`."""

    def share(self, tensor: Tensor) -> None:
        """See `Group.share`."""

    def share_text(self, text: str) -> str:
        """See `Group.share_text`."""
        return text

    def collect_texts(self, text: str) -> list[str]:
        """See `Group.collect_texts`."""
        return [text]


class Several(Group):
    """The processes of torch's default group (gloo on the CPU, nccl on CUDA)."""

    def __init__(self, device: torch.device) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.device = device

    def add(self, tensor: Tensor) -> None:
        """See `Group.add`."""
        with _losses_explained(self):
            dist.all_reduce(tensor)

    def share(self, tensor: Tensor) -> None:
        """See `Group.share`."""
        with _losses_explained(self):
            dist.broadcast(tensor, src=0)

    def share_text(self, text: str) -> str:
        """See `Group.share_text`."""
        return self._spread(text, from_rank=0)

    def collect_texts(self, text: str) -> list[str]:
        """See `Group.collect_texts`."""
        return [self._spread(text, from_rank=rank) for rank in range(self.size)]

    def _spread(self, text: str, from_rank: int) -> str:
        data = bytearray(text.encode("utf-8"))
        with _losses_explained(self):
            length = torch.tensor([len(data)], device=self.device)
            dist.broadcast(length, src=from_rank)
            if self.rank == from_rank:
                message = torch.frombuffer(data, dtype=torch.uint8).to(self.device)
            else:
                message = torch.empty(int(length), dtype=torch.uint8, device=self.device)
            dist.broadcast(message, src=from_rank)
        return bytes(message.cpu().numpy()).decode("utf-8")


@contextlib.contextmanager
def _losses_explained(group: Several) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        first_line = str(error).partition("\n")[0]
        raise TrainingError(
            f"Process {group.rank} of {group.size} lost another process of its group ({first_line}). "
            "Look for that process's own message, then start all of them again to resume from the last checkpoint."
        ) from error


@contextlib.contextmanager
def join_group(device: torch.device, timeout_minutes: float) -> Iterator[Group]:
    """Join the group that ``torchrun`` describes in the environment, and leave it after the block; else be alone.

    Raises:
        TrainingError: the others did not come within the time.
    """
    if num_processes() <= 1:
        yield Alone()
        return
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    try:
        backend = "nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, timeout=timedelta(minutes=timeout_minutes))
    except (RuntimeError, ValueError) as error:
        raise TrainingError(f"The processes of the group did not find each other: {error}") from error
    try:
        yield Several(device)
    finally:
        dist.destroy_process_group()
