"""Learning from a trained model: what it finds probable at each target position counts beside the target itself.

Knowledge distillation by symbols (Hinton et al. 2015; for sequences Kim and Rush 2016, section 3.1). Of the teacher's
distribution the few most probable symbols are kept (Tan et al. 2019 keep 8), which is nearly all of it, so that its
answers to a corpus fit on disk. Lines that are the same in every epoch are put to it once.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from heedful.core.config import Config
from heedful.core.types import Batch, SoftTargets
from heedful.data.batches import Batches, LineBatches
from heedful.data.batching import Rows as Indices
from heedful.data.cache import new_folder
from heedful.data.columns import ArrayWriter, Rows, RowsWriter, read_array
from heedful.data.store import id_dtype
from heedful.search.largest import largest
from heedful.tasks.writing import WritingTask

_CHUNK_ROWS = 1024
_PROBS = "<f2"

Tell = Callable[[int], None]
"""Hears how many lines the teacher has answered so far."""


class TeacherConfig(Config):
    """A trained model to learn from; text becomes symbols as it does there.

    Attributes:
        path: its run or bundle, needed for training alone.
        share: of the training loss that is the teacher's; the rest is that of the targets. 0 asks no teacher.
        num_symbols: the teacher's most probable symbols at each position, which are kept.
    """

    path: str
    share: float = Field(default=0.5, ge=0, le=1)
    num_symbols: int = Field(default=8, ge=1, le=1024)


class Teacher:
    """A trained model that is asked what it finds probable.

    Args:
        task: of the model, on its device.
        num_symbols: how many symbols at each position.
    """

    def __init__(self, task: WritingTask, num_symbols: int) -> None:
        self.task = task
        self.vocabulary = task.model.output.weight.shape[0]
        self.num_symbols = min(num_symbols, self.vocabulary)

    def answer(self, batch: Batch) -> tuple[Int[Tensor, "B T K"], Float[Tensor, "B T K"]]:
        """Return the most probable symbols after each position of ``target_input`` and their probabilities; on the CPU,
        0 where there is padding.
        """
        task = self.task
        with task.inference():
            batch = batch.to(task.device)
            hidden = task.model.decode(task.model.encode(batch), batch.target_input)
            keep = batch.target_keep
            found = [self._most_probable(states) for states in torch.split(hidden[keep], _CHUNK_ROWS)]
            shape = (*keep.shape, self.num_symbols)
            ids = torch.zeros(shape, dtype=torch.long, device=keep.device)
            probs = torch.zeros(shape, device=keep.device)
            if found:
                ids[keep] = torch.cat([each for each, _ in found])
                probs[keep] = torch.cat([each for _, each in found])
        return ids.cpu(), probs.cpu()

    def _most_probable(self, states: Float[Tensor, "R D"]) -> tuple[Int[Tensor, "R K"], Float[Tensor, "R K"]]:
        log_probs, ids = largest(self.task.model.output.log_probs(states), self.num_symbols)
        return ids, log_probs.exp()


class TaughtBatches(Batches):
    """Batches with a teacher's word on every target position.

    Args:
        batches: without.
        teacher: to be asked.
        share: of the loss that is the teacher's.
        folder: where its answers are kept, made at the first call; None asks it anew at every batch, which is what
            batches need that are not the same in every epoch.
        tell: hears how far the answers are.
    """

    def __init__(
        self, batches: Batches, teacher: Teacher, share: float, folder: Path | None, tell: Tell = lambda *_: None
    ) -> None:
        self.batches = batches
        self.teacher = teacher
        self.share = share
        self.answers: _Answers | None = None
        if folder is not None:
            assert isinstance(batches, LineBatches) and batches.is_fixed
            if not folder.exists():
                _Answers.write(folder, batches, teacher, tell)
            self.answers = _Answers(folder, teacher)

    def epoch(self, number: int) -> list[Indices]:
        return self.batches.epoch(number)

    def batch(self, rows: Indices, epoch: int) -> Batch:
        batch = self.batches.batch(rows, epoch)
        ids, probs = self.teacher.answer(batch) if self.answers is None else self.answers.of(rows, batch)
        return replace(batch, soft_targets=SoftTargets(ids=ids, probs=probs, share=self.share))


class _Answers:
    """A teacher's answers to the rows of a store, on disk."""

    def __init__(self, folder: Path, teacher: Teacher) -> None:
        self._ids = Rows(folder, "ids", id_dtype(teacher.vocabulary))
        self._probs = Rows(folder, "probs", _PROBS)
        self._place = np.argsort(read_array(folder, "rows", "<i8"))
        self._num_symbols = teacher.num_symbols

    @classmethod
    def write(cls, folder: Path, batches: LineBatches, teacher: Teacher, tell: Tell) -> None:
        """Ask about every row once, in the batches of the first epoch."""
        num_answered = 0
        with new_folder(folder, {}) as draft, contextlib.ExitStack() as stack:
            writers = [
                stack.enter_context(contextlib.closing(RowsWriter(draft, name, dtype)))
                for name, dtype in (("ids", id_dtype(teacher.vocabulary)), ("probs", _PROBS))
            ]
            order = stack.enter_context(contextlib.closing(ArrayWriter(draft, "rows", "<i8")))
            for rows in batches.epoch(0):
                batch = batches.batch(rows, 0)
                for writer, answers in zip(writers, teacher.answer(batch), strict=True):
                    for row in _real(answers, batch):
                        writer.append(row.flatten())
                order.extend(rows)
                num_answered += len(rows)
                tell(num_answered)

    def of(self, rows: Indices, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the answers to the rows of a batch, as `Teacher.answer` does."""
        places = [int(place) for place in self._place[rows]]
        keep = batch.target_keep.numpy()
        return (
            torch.from_numpy(_padded([self._ids[place] for place in places], keep, self._num_symbols, np.int64)),
            torch.from_numpy(_padded([self._probs[place] for place in places], keep, self._num_symbols, np.float32)),
        )


def _real(answers: Tensor, batch: Batch) -> Iterator[NDArray[Any]]:
    """Yield the answers of each row without what pads."""
    for row, keep in zip(answers.numpy(), batch.target_keep.numpy(), strict=True):
        yield row[keep]


def _padded(rows: Sequence[NDArray[Any]], keep: NDArray[np.bool_], width: int, dtype: Any) -> NDArray[Any]:
    """Return rows of ``width`` numbers a position at the places to keep, 0 elsewhere."""
    padded = np.zeros((*keep.shape, width), dtype=dtype)
    padded[keep] = np.concatenate(rows).reshape(-1, width)
    return padded
