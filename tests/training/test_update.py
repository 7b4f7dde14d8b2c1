"""However an update's rows are cut up, its gradients are those of one big batch."""

import contextlib
import multiprocessing
import os
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_training import RUNTIME, ToyTask, last_checkpoint, make_config, without_times

from heedful.core.errors import TrainingError
from heedful.core.types import Batch, LossSum, Position
from heedful.training import RunFolder, TrainingConfig, read_history, resume, train
from heedful.training.averaging import EmaConfig, LastConfig, build_averaging
from heedful.training.optim import AdamW, AdamWConfig, divide_and_clip, norm_of
from heedful.training.processes import Alone
from heedful.training.update import Updater, count_targets


def compute(task: ToyTask, dtype: torch.dtype = torch.float32, **changes: Any) -> tuple[list[torch.Tensor], float, int]:
    """Return the divided gradients, the loss and the number of micro-batches of a first update."""
    config = make_config(**{"accumulate": 1, "clip_norm": 0, **changes})
    optimizer = AdamW(task.model, config.optimizer)
    updater = Updater(task, optimizer, config, Alone(), torch.device("cpu"), dtype)
    sums = updater.compute(task.batches(Position()), lambda: (0.0, False))
    assert updater.apply(sums, 0.0)[1] is None
    return (
        [each.grad for each in optimizer.parameters.values() if each.grad is not None],
        sums.loss,
        len(sums.positions),
    )


def test_accumulated_batches_are_one_big_batch() -> None:
    parts, loss, number = compute(ToyTask(dropout=0.0), accumulate=3)
    whole, whole_loss, _ = compute(ToyTask(dropout=0.0, merged=3))
    assert number == 3
    assert loss == pytest.approx(whole_loss, rel=1e-6)
    for one, other in zip(parts, whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)


class PenalisedTask(ToyTask):
    """Pulls its embedding towards zero, the more the longer training lasts; its bias learns ten times as fast."""

    def penalty(self, fraction: float) -> torch.Tensor:
        return (2 + fraction) * self.model.embedding.weight.sum()

    def rate_factors(self) -> dict[str, float]:
        return {"output.bias": 10.0}


def test_a_penalty_is_added_once_to_the_mean_loss_of_an_update() -> None:
    plain, _, _ = compute(ToyTask(dropout=0.0), accumulate=3)
    penalised, _, _ = compute(PenalisedTask(dropout=0.0), accumulate=3)
    torch.testing.assert_close(penalised[0], plain[0] + 2)
    for one, other in zip(penalised[1:], plain[1:], strict=True):
        torch.testing.assert_close(one, other)


def test_a_penalty_is_told_how_far_training_is_and_some_parameters_learn_faster(tmp_path: Path) -> None:
    told = []

    class Listening(PenalisedTask):
        def penalty(self, fraction: float) -> torch.Tensor:
            told.append(fraction)
            return 0 * super().penalty(fraction)

    moved = {}
    for kind in (ToyTask, Listening):
        task = kind()
        before = {name: each.detach().clone() for name, each in task.model.named_parameters()}
        schedule = {"kind": "constant", "peak": 0.01}
        train(task, make_config(max_steps=4, schedule=schedule), RUNTIME, RunFolder(tmp_path / kind.__name__))
        moved[kind] = {name: (each - before[name]).abs().max() for name, each in task.model.named_parameters()}
    assert told == [0.25, 0.5, 0.75, 1.0]
    torch.testing.assert_close(moved[Listening]["output.bias"], 10 * moved[ToyTask]["output.bias"], rtol=0.5, atol=0)
    assert moved[Listening]["embedding.weight"] < 2 * moved[ToyTask]["embedding.weight"]


def test_accumulated_batches_in_bf16_leave_float32_gradients_near_those_of_float32() -> None:
    parts, _, _ = compute(ToyTask(dropout=0.0), torch.bfloat16, accumulate=3)
    whole, _, _ = compute(ToyTask(dropout=0.0, merged=3))
    for one, other in zip(parts, whole, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=0.05, atol=0.01)


def test_update_takes_batches_until_it_has_its_targets() -> None:
    task = ToyTask()
    sizes = [count_targets(task.make_batch(0, number)) for number in range(3)]
    assert compute(ToyTask(), update_tokens=sizes[0] + sizes[1])[2] == 2
    assert compute(ToyTask(), update_tokens=sizes[0] + sizes[1] + 1)[2] == 3
    assert compute(ToyTask(), update_tokens=1)[2] == 1


def test_gradients_are_divided_once_and_clipped_to_the_norm() -> None:
    gradients = [torch.tensor([6.0, 0.0]), torch.tensor([[8.0]])]
    assert norm_of(gradients) == pytest.approx(10.0)
    assert divide_and_clip(gradients, count=4.0, norm=10.0, clip_norm=0.0) == 2.5
    assert gradients[0].tolist() == [1.5, 0.0]
    assert divide_and_clip(gradients, count=1.0, norm=2.5, clip_norm=0.5) == 2.5
    assert norm_of(gradients) == pytest.approx(0.5)


def test_optimizer_is_that_of_torch_and_spares_biases_and_norms() -> None:
    ours, theirs = ToyTask().model, ToyTask().model
    config = AdamWConfig(betas=(0.8, 0.95), eps=1e-6, weight_decay=0.3)
    mine = AdamW(ours, config)
    matrices = [each for each in theirs.parameters() if each.ndim >= 2]
    vectors = [each for each in theirs.parameters() if each.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.3}, {"params": vectors, "weight_decay": 0.0}]
    reference = torch.optim.AdamW(groups, lr=0.0, betas=(0.8, 0.95), eps=1e-6, fused=True)
    for rate in (0.1, 0.01, 0.001):
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        mine.step(rate)
        for group in reference.param_groups:
            group["lr"] = rate
        reference.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(one, other)
    assert [each.ndim for each in matrices] == [2]


def test_moving_average_by_hand_and_put_in_place_only_for_the_block() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    weight = model.weight.data
    weight.fill_(2.0)
    averaging = build_averaging(model, EmaConfig(decay=0.5))
    weight.fill_(4.0)
    averaging.follow(1)  # decay is (1 + 1) / (10 + 1)
    first = 2.0 + (4.0 - 2.0) * (1 - 2 / 11)
    weight.fill_(8.0)
    averaging.follow(100)  # decay is 0.5
    with averaging.in_place():
        assert model.weight.item() == pytest.approx((first + 8.0) / 2)
    assert model.weight.item() == 8.0
    assert model.weight.data.data_ptr() == weight.data_ptr()


def test_mean_of_the_last_marks_by_hand() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    averaging = build_averaging(model, LastConfig(k=2))
    for step, value in ((3, 1.0), (5, 2.0), (7, 10.0), (7, 4.0), (9, 8.0)):
        model.weight.data.fill_(value)
        averaging.mark(step)
    assert averaging.average()["weight"].item() == 6.0


# ---------------------------------------------------------------------------------------------------- two processes


class LostTask(ToyTask):
    """Ends its process at once, without a word, at its fifth batch in the second process."""

    def loss(self, batch: Batch) -> LossSum:
        """See `ToyTask.loss`."""
        if self.num_losses == 4 and os.environ["RANK"] == "1":
            os._exit(7)
        return super().loss(batch)


class InterruptedTask(ToyTask):
    """Is asked to stop in the second process, at its ninth batch."""

    def loss(self, batch: Batch) -> LossSum:
        """See `ToyTask.loss`."""
        if self.num_losses == 8 and os.environ["RANK"] == "1":
            os.kill(os.getpid(), 15)
        return super().loss(batch)


def work(rank: int, ports: list[int], path: Path, steps: list[str], answers: Any) -> None:
    """Do what a process started by torchrun does; put a word for each step into the answers."""
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank))
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    torch.set_num_threads(1)
    tasks = {"whole": ToyTask, "lost": LostTask, "interrupted": InterruptedTask, "resumed": ToyTask}
    for step, port in zip(steps, ports, strict=True):
        os.environ["MASTER_PORT"] = str(port)
        name = "parts" if step in ("interrupted", "resumed") else step
        config = two_config(dropout=0.0 if step == "exact" else 0.25)
        task = ToyTask(dropout=0.0) if step == "exact" else tasks[step]()
        try:
            run = resume if step == "resumed" else train
            answers.put((rank, step, run(task, config, RUNTIME, RunFolder(path / name)).reason))
        except TrainingError as error:
            answers.put((rank, step, str(error)))


def two_config(dropout: float) -> TrainingConfig:
    return make_config(max_steps=13, accumulate=2, timeout_minutes=0.5, clip_norm=0.2)


def start_two(path: Path, steps: list[str]) -> dict[tuple[int, str], str]:
    """Run two processes through the steps; return what each said of each step."""
    with contextlib.ExitStack() as stack:
        free = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in steps]
        ports = [each.getsockname()[1] for each in free]
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    processes = [context.Process(target=work, args=(rank, ports, path, steps, answers)) for rank in (0, 1)]
    for each in processes:
        each.start()
    for each in processes:
        each.join(20)
        assert not each.is_alive()
    said = {}
    while not answers.empty():
        rank, step, words = answers.get()
        said[rank, step] = words
    return said


def test_two_processes_train_as_one_and_stop_and_resume_alike(tmp_path: Path) -> None:
    said = start_two(tmp_path, ["exact", "whole", "interrupted", "resumed"])
    assert {words for (_, step), words in said.items() if step != "interrupted"} == {"max_steps"}
    assert [said[rank, "interrupted"] for rank in (0, 1)] == ["signal", "signal"]
    alone = RunFolder(tmp_path / "alone")
    train(ToyTask(dropout=0.0), two_config(dropout=0.0), RUNTIME, alone)
    one, two = last_checkpoint(alone), last_checkpoint(RunFolder(tmp_path / "exact"))
    for name in one.model:
        torch.testing.assert_close(two.model[name], one.model[name], rtol=1e-4, atol=1e-6)
    assert two.facts.state.num_targets == one.facts.state.num_targets  # each row is computed once
    assert len(two.random) == 2 and two.random[0] != two.random[1]
    whole, parts = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "parts")
    for name, tensor in last_checkpoint(whole).model.items():
        assert torch.equal(last_checkpoint(parts).model[name], tensor), name
    assert without_times(read_history(whole.history)) == without_times(read_history(parts.history))


def test_lost_process_ends_in_an_error_not_in_a_wait(tmp_path: Path) -> None:
    said = start_two(tmp_path, ["lost"])
    assert "lost another process of its group" in said[0, "lost"]
    assert (1, "lost") not in said
