"""What one run leaves on disk and tells: records, events and checkpoints, all by the first process alone."""

import dataclasses

import torch
from torch import nn

from heedful.core.errors import BundleError
from heedful.core.weights import model_tensors
from heedful.training.averaging import Averaging
from heedful.training.checkpoint import (
    FORMAT,
    Checkpoint,
    Checkpoints,
    Facts,
    Setting,
    load_model_tensors,
    read_checkpoint,
)
from heedful.training.events import Events
from heedful.training.folder import RunFolder
from heedful.training.history import History
from heedful.training.optim import AdamW
from heedful.training.processes import Group
from heedful.training.progress import Reporter
from heedful.training.records import Record
from heedful.training.state import State, random_states


@dataclasses.dataclass(frozen=True)
class Learner:
    """Everything whose tensors a checkpoint holds.

    Attributes:
        model: the float32 masters.
        optimizer: with its averages of gradients.
        averaging: with its averages of weights.
    """

    model: nn.Module
    optimizer: AdamW
    averaging: Averaging


class Archive:
    """The memory of a run.

    Args:
        folder: of the run; every process must see it, the first writes it.
        group: the processes that train together.
        reporter: who is told, in the first process.
        setting: how this process computes.
        has_events: write for TensorBoard too.
    """

    def __init__(
        self, folder: RunFolder, group: Group, reporter: Reporter, setting: Setting, *, has_events: bool
    ) -> None:
        self.folder = folder
        self.group = group
        self.reporter = reporter
        self.setting = setting
        self.has_events = has_events
        self.checkpoints = Checkpoints(folder.checkpoints)
        self.history = History(folder.history)
        self.events = Events(folder.events)

    def check_folder(self, *, is_resumed: bool) -> None:
        """Clean up behind a killed process; every process goes on only when the first found the folder fit.

        Raises:
            BundleError: there is no checkpoint to resume from, or there is one and nothing is to be resumed.
        """
        if self.group.is_first:
            self.checkpoints.clean()
            last = self.checkpoints.last()
            if is_resumed and last is None:
                raise BundleError(f"{self.folder.path}: there is no checkpoint to resume from. Train here first.")
            if not is_resumed and last is not None:
                raise BundleError(
                    f"{self.folder.path}: a training was started here before. Resume it, or train into another folder."
                )
        self.group.share_text("the folder is fit")

    def record(self, record: Record) -> None:
        """Write a record everywhere and tell the reporter."""
        if not self.group.is_first:
            return
        self.history.append(dataclasses.asdict(record))
        if self.has_events:
            self.events.write(record)
        self.reporter.recorded(record)

    def save(self, learner: Learner, state: State, *, keep: int) -> None:
        """Write a checkpoint; keep that many of the newest, and the best."""
        random = self.group.collect_texts(random_states())
        if not self.group.is_first:
            return
        facts = Facts(FORMAT, state, self.setting, self.history.sync())
        self.events.sync()
        tensors = (model_tensors(learner.model), learner.optimizer.tensors(), learner.averaging.tensors())
        self.checkpoints.save(Checkpoint(*tensors, random, facts))
        self.checkpoints.keep(keep, [state.best.step] if state.best else [])

    def load_last(self, learner: Learner) -> Checkpoint:
        """Put the learner back to where it was at the newest checkpoint, and cut back the records to it.

        Raises:
            BundleError: the checkpoint is damaged or of another model.
        """
        path = self.checkpoints.last()
        if path is None:
            raise BundleError(f"{self.checkpoints.path}: there is no checkpoint to go on from.")
        checkpoint = read_checkpoint(path)
        load_model_tensors(learner.model, checkpoint.model)
        try:
            learner.optimizer.load(checkpoint.optimizer)
            learner.averaging.load(checkpoint.averages)
        except (KeyError, ValueError, RuntimeError) as error:
            raise BundleError(
                f"{path}: the averages of this checkpoint are not those of `training.optimizer` and "
                f"`training.averaging` ({error}). Leave these as they were, or begin a run with `init_from`."
            ) from None
        if self.group.is_first:
            self.history.cut(checkpoint.facts.history_bytes)
            self.events.cut(checkpoint.facts.state.step + 1)
        return checkpoint

    def warn_of_changes(self, before: Setting) -> None:
        """Tell what differs from how the run was computed before."""
        for field in dataclasses.fields(Setting):
            old, new = getattr(before, field.name), getattr(self.setting, field.name)
            if old != new:
                self.reporter.note(
                    f"Warning: `{field.name}` was {old} and is {new} now: the end will not be bit-equal to that "
                    "of a run that was never stopped."
                )

    def explain(self, error: OSError, step: int) -> str:
        """Return what to tell of a file that could not be written."""
        place = f"{error.filename}: " if error.filename else ""
        return (
            f"Training stopped at step {step:,}: {place}{error.strerror or error}. "
            f"The last good checkpoint is {self.checkpoints.last()}. Mend this, then resume."
        )


def describe_setting(device: torch.device, dtype: torch.dtype, group: Group) -> Setting:
    """Return how this process computes."""
    return Setting(device.type, str(dtype).removeprefix("torch."), torch.get_num_threads(), group.size)
