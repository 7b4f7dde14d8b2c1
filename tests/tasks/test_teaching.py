"""A teacher's word on training targets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.runs.samples import reversal

from heedful import runs
from heedful.core.types import Batch
from heedful.data.batches import LineBatches
from heedful.runs.config import parse_run
from heedful.runs.preparation import prepare_fitting
from heedful.tasks import TaughtBatches, Teacher, Translation


@pytest.fixture(scope="module")
def teacher(reverser: Path) -> Teacher:
    task = runs.load(reverser).task
    assert isinstance(task, Translation)
    return Teacher(task, 3)


@pytest.fixture
def batches(reverser: Path, tmp_path: Path) -> LineBatches:
    config = parse_run({**reversal(tmp_path), "init_from": str(reverser)})
    found = prepare_fitting(config, tmp_path / "run", lambda note: None, is_begun=True).training_data
    assert isinstance(found, LineBatches)
    return found


def probable(teacher: Teacher, batch: Batch) -> Any:
    """Return the teacher's distributions by the plain way."""
    task = teacher.task
    with task.inference():
        hidden = task.model.decode(task.model.encode(batch), batch.target_input)
        return torch.softmax(task.model.output(hidden), -1)


def test_answers_are_the_most_probable_symbols(teacher: Teacher, batches: LineBatches) -> None:
    batch = batches.batch(np.arange(20), 0)
    ids, probs = teacher.answer(batch)
    expected = probable(teacher, batch)
    keep = batch.target_keep
    assert not keep.all(), "no padding to be seen"
    assert ids.shape == probs.shape == (*keep.shape, 3)
    torch.testing.assert_close(probs[keep], expected.gather(-1, ids)[keep])
    torch.testing.assert_close(probs[keep], expected.topk(3).values[keep])
    assert not probs[~keep].any()


def test_kept_answers_go_with_their_rows(teacher: Teacher, batches: LineBatches, tmp_path: Path) -> None:
    told: list[int] = []
    taught = TaughtBatches(batches, teacher, 0.4, tmp_path / "answers", told.append)
    assert told == sorted(told) and told[-1] == len(batches.store)
    for _ in range(2):  # made, and found on disk
        for rows in taught.epoch(3)[:4]:
            batch = taught.batch(rows, 3)
            soft = batch.soft_targets
            assert soft is not None and soft.share == 0.4
            ids, probs = teacher.answer(batch)
            assert torch.equal(soft.ids, ids)
            torch.testing.assert_close(soft.probs, probs, atol=1e-3, rtol=0)
        taught = TaughtBatches(batches, teacher, 0.4, tmp_path / "answers", lambda _: pytest.fail("asked again"))


def test_without_a_folder_each_batch_is_asked_about(teacher: Teacher, batches: LineBatches) -> None:
    rows = np.array([5, 3])
    soft = TaughtBatches(batches, teacher, 1.0, None).batch(rows, 0).soft_targets
    assert soft is not None
    ids, probs = teacher.answer(batches.batch(rows, 0))
    assert torch.equal(soft.ids, ids) and torch.equal(soft.probs, probs)


def test_a_student_is_drawn_to_its_teacher(teacher: Teacher, batches: LineBatches) -> None:
    """With all of the loss the teacher's and all symbols kept, the loss is the cross-entropy of the distributions."""
    student = Translation(teacher.task.config, teacher.task.codec)
    rows = batches.epoch(0)[0]
    every = Teacher(teacher.task, 1000)
    batch = TaughtBatches(batches, every, 1.0, None).batch(rows, 0)
    expected = probable(every, batch)
    student.model.eval()
    hidden = student.model.decode(student.model.encode(batch), batch.target_input)
    by_hand = -(expected * student.model.output(hidden).log_softmax(-1)).sum(-1)[batch.target_keep].sum()
    loss = student.loss(batch)
    torch.testing.assert_close(loss.total, by_hand)
    assert loss.count == batch.target_keep.sum()
