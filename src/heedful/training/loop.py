"""The training loop: validate, decide, update, log, save."""

import dataclasses
import json
import time
from collections.abc import Iterator

import torch
from pydantic import TypeAdapter

from heedful.core.errors import BundleError, TrainingError
from heedful.core.runtime import RuntimeConfig, choose_device, choose_dtype, compute_in, set_seed
from heedful.core.types import PlacedBatch, Trainable, Validation
from heedful.core.weights import model_tensors
from heedful.training.archive import Archive, Learner, describe_setting
from heedful.training.averaging import build_averaging
from heedful.training.config import TrainingConfig
from heedful.training.folder import RunFolder
from heedful.training.guard import watch_loss
from heedful.training.optim import AdamW
from heedful.training.processes import Group, join_group
from heedful.training.progress import Reporter, SilentReporter
from heedful.training.records import RollbackRecord, TrainRecord, UpdateRecord, ValidationRecord
from heedful.training.state import Best, State, Window, random_states_kept, set_random_states
from heedful.training.stopping import (
    Interrupted,
    Reason,
    Signals,
    find_reason,
    fraction_done,
    is_validation_due,
    remember_best,
)
from heedful.training.update import Sums, Updater


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How training ended.

    Attributes:
        reason: the limit that was reached, or ``signal``; a run ended by a signal can be resumed.
        state: where it stood.
    """

    reason: Reason
    state: State

    @property
    def best(self) -> Best | None:
        """The best validation; its model is in the run's bundle."""
        return self.state.best


def train(
    trainable: Trainable,
    config: TrainingConfig,
    runtime: RuntimeConfig,
    folder: RunFolder,
    reporter: Reporter | None = None,
) -> Outcome:
    """Train a model from its present weights, in a folder where nothing was trained before.

    Under ``torchrun`` each process calls this alike; those of several machines need a folder that all of them see.

    The model is moved to the runtime's device and, at the end, holds the weights of the last update. The best model,
    with its averaged weights, was written to the bundle by `Trainable.save_bundle`.

    Raises:
        BundleError: the folder holds checkpoints, or another process trains in it.
        ConfigError: validation gives no score by the name of ``metric``.
        TrainingError: it diverged for good, a process was lost, or the disk is full.
        DataError: there is nothing to train on.
    """
    return _run(trainable, config, runtime, folder, reporter or SilentReporter(), is_resumed=False)


def resume(
    trainable: Trainable,
    config: TrainingConfig,
    runtime: RuntimeConfig,
    folder: RunFolder,
    reporter: Reporter | None = None,
) -> Outcome:
    """Go on from the last checkpoint of a folder, as if training had never stopped.

    On the same kind of CPU with the same threads, dtype and number of processes the end is bit-equal to that of a run
    that was never stopped, where limits and validations are counted in steps or epochs. A run that has ended goes on
    when its limit was raised.

    Raises:
        BundleError: the folder holds no checkpoint, a damaged one or one of another model, or is locked.
        ConfigError: as for `train`.
        TrainingError: as for `train`.
    """
    return _run(trainable, config, runtime, folder, reporter or SilentReporter(), is_resumed=True)


def _run(
    trainable: Trainable,
    config: TrainingConfig,
    runtime: RuntimeConfig,
    folder: RunFolder,
    reporter: Reporter,
    *,
    is_resumed: bool,
) -> Outcome:
    device = choose_device(runtime.device)
    if runtime.threads is not None:
        torch.set_num_threads(runtime.threads)
    with join_group(device, config.timeout_minutes) as group:
        if not group.is_first:
            return Trainer(trainable, config, runtime, folder, SilentReporter(), group).run(is_resumed=is_resumed)
        with folder.lock():
            try:
                return Trainer(trainable, config, runtime, folder, reporter, group).run(is_resumed=is_resumed)
            finally:
                reporter.close()


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the first process found in a validation, for the others to know.

    Attributes:
        was_finished: no signal broke it off.
        best: the best validation so far.
        num_worse: validations since.
        seconds: that the validation took.
    """

    was_finished: bool
    best: Best | None
    num_worse: int
    seconds: float


_VERDICT = TypeAdapter(Verdict)


class Trainer:
    """One process's part of one training."""

    def __init__(
        self,
        trainable: Trainable,
        config: TrainingConfig,
        runtime: RuntimeConfig,
        folder: RunFolder,
        reporter: Reporter,
        group: Group,
    ) -> None:
        device = choose_device(runtime.device)
        self.trainable = trainable
        self.config = config
        self.seed = runtime.seed + group.rank
        self.group = group
        self.dtype = choose_dtype(runtime.dtype, device)
        self.model = trainable.model.to(device)
        self.averaging = build_averaging(self.model, config.averaging)
        optimizer = AdamW(self.model, config.optimizer, trainable.rate_factors())
        self.learner = Learner(self.model, optimizer, self.averaging)
        self.updater = Updater(trainable, optimizer, config, group, device, self.dtype)
        setting = describe_setting(device, self.dtype, group)
        self.archive = Archive(folder, group, reporter, setting, has_events=config.has_tensorboard)
        self.signals = Signals()
        self.state = State()
        self._batches: Iterator[PlacedBatch] = iter(())
        self._num_batches: tuple[int, int | None] = (-1, None)
        self._is_stop_agreed = False
        self._is_saved = False
        self._saved_s = 0.0
        self._started_at = time.monotonic()

    def run(self, *, is_resumed: bool) -> Outcome:
        """Train to the end."""
        with self.signals:
            try:
                self._open(is_resumed=is_resumed)
                reason = self._train()
            except OSError as error:
                raise TrainingError(self.archive.explain(error, self.state.step)) from error
            finally:
                self.archive.events.close()
        self.archive.reporter.note(_describe_end(reason, self.state, self.config.schedule.warmup_steps))
        return Outcome(reason, self.state)

    def _open(self, *, is_resumed: bool) -> None:
        self.trainable.is_better(self.config.metric, 0.0, 0.0)  # An unknown name is told now, not an hour later.
        self.archive.check_folder(is_resumed=is_resumed)
        set_seed(self.seed)
        if is_resumed:
            self._resume()
        else:
            for tensor in model_tensors(self.model).values():
                self.group.share(tensor)
            self._save()
        self.model.train()
        self._batches = self.trainable.batches(self.state.position)
        self._started_at = time.monotonic() - self.state.elapsed_s

    def _resume(self) -> None:
        checkpoint = self.archive.load_last(self.learner)
        if self.group.rank < len(checkpoint.random):
            try:
                set_random_states(checkpoint.random[self.group.rank])
            except (ValueError, KeyError, TypeError, RuntimeError) as error:
                raise BundleError(f"{self.archive.checkpoints.last()}: random.json is damaged ({error}).") from None
        self.state = checkpoint.facts.state
        self._is_saved = True
        self._saved_s = self.state.elapsed_s
        self.archive.reporter.note(f"Resumed at step {self.state.step:,}.")
        self.archive.warn_of_changes(checkpoint.facts.setting)

    def _train(self) -> Reason:
        while True:
            reason: Reason | None = "signal" if self._is_stop_agreed else find_reason(self.config, self.state)
            if self._should_validate(reason):
                self._validate()
                self._save()
                continue
            if reason or self.state.elapsed_s - self._saved_s >= 60 * self.config.save_minutes:
                self._save()
            if reason:
                return reason
            self._update()

    def _save(self) -> None:
        if not self._is_saved:
            self.archive.save(self.learner, self.state, keep=self.config.keep_checkpoints)
            self._is_saved = True
            self._saved_s = self.state.elapsed_s

    # ------------------------------------------------------------------------------------------------ updates

    def _update(self) -> None:
        begun = time.monotonic()
        rate = self._rate()
        sums = self.updater.compute(self._batches, lambda: (time.monotonic() - self._started_at, self.signals.is_asked))
        self._is_stop_agreed = sums.is_stop_asked
        self._advance(sums)
        self.state.norm, fault = self.updater.apply(sums, rate, self._fraction())
        fault = fault or watch_loss(self.state.guard, sums.loss, self.config.guard)
        if fault:
            self._roll_back(fault)
            return
        self.averaging.follow(self.state.step)
        seconds = time.monotonic() - begun
        self._log(sums, rate, seconds)

    def _rate(self) -> float:
        factor = self.state.guard.rate_factor
        return self.config.schedule.rate(self.state.step, self._fraction()) * factor

    def _fraction(self) -> float:
        epoch = self.state.position.epoch
        if self.config.max_epochs is not None and self._num_batches[0] != epoch:
            self._num_batches = (epoch, self.trainable.num_batches(epoch))
        return fraction_done(self.config, self.state, self._num_batches[1])

    def _advance(self, sums: Sums) -> None:
        self._is_saved = False
        self.state.step += 1
        self.state.elapsed_s = sums.elapsed_s
        self.state.num_targets += sums.count
        for position in sums.positions:
            if position.epoch > self.state.position.epoch:
                self.state.epoch_batches = self.state.position.batch + 1
            self.state.position = position

    def _log(self, sums: Sums, rate: float, seconds: float) -> None:
        state, window = self.state, self.state.window
        window.total += sums.total
        window.count += sums.count
        window.seconds += seconds
        epoch = state.position.epoch
        self.archive.reporter.updated(
            UpdateRecord(state.step, epoch, sums.loss, rate, self._fraction(), state.elapsed_s, sums.count, seconds)
        )
        if state.step % self.config.log_every == 0:
            loss = window.total / max(window.count, 1.0)
            speed = window.count / max(window.seconds, 1e-9)
            self.archive.record(
                TrainRecord(state.step, epoch, loss, rate, state.norm, state.num_targets, speed, state.elapsed_s)
            )
            state.window = Window()

    def _roll_back(self, fault: str) -> None:
        broken = self.state
        if broken.guard.num_rollbacks >= self.config.guard.max_rollbacks:
            raise TrainingError(
                f"Training diverged at step {broken.step:,}: {fault}, after {broken.guard.num_rollbacks} returns to an "
                f"earlier checkpoint. The last good one is {self.archive.checkpoints.last()}. Try a lower "
                "`training.schedule` rate, a longer `warmup_steps` or a lower `training.clip_norm`."
            )
        self.state = self.archive.load_last(self.learner).facts.state
        self.state.position = broken.position
        self.state.epoch_batches = broken.epoch_batches
        self.state.elapsed_s = broken.elapsed_s
        self.state.guard.num_rollbacks = broken.guard.num_rollbacks + 1
        self.state.guard.rate_factor = broken.guard.rate_factor * self.config.guard.rate_factor
        self.archive.record(
            RollbackRecord(self.state.step, broken.step, fault, self.state.guard.rate_factor, self.state.elapsed_s)
        )
        self._is_saved = False
        self._save()  # So that neither a second return nor a kill forgets the lower rate.

    # ------------------------------------------------------------------------------------------------ validation

    def _should_validate(self, reason: Reason | None) -> bool:
        if reason == "signal":
            return False
        at_end = reason is not None and self.state.step != self.state.validated_step
        return at_end or is_validation_due(self.config, self.state)

    def _validate(self) -> None:
        """Let the first process validate; all of them then know what it found, or that it was broken off."""
        begun = time.monotonic()
        was_finished = self._validate_here() if self.group.is_first else True
        state = self.state
        own = json.dumps(
            dataclasses.asdict(Verdict(was_finished, state.best, state.num_worse, time.monotonic() - begun))
        )
        verdict = _VERDICT.validate_python(json.loads(self.group.share_text(own)))
        self._is_saved = False
        if not verdict.was_finished:
            self._is_stop_agreed = True
            return
        state.best, state.num_worse = verdict.best, verdict.num_worse
        state.validated_step, state.validated_epoch = state.step, state.position.epoch
        state.validated_s, state.validation_s = state.elapsed_s, verdict.seconds

    def _validate_here(self) -> bool:
        begun = time.monotonic()
        self.averaging.mark(self.state.step)
        with self.averaging.in_place():
            try:
                validation = self._score()
            except Interrupted:
                return False
            is_best = remember_best(self.trainable, self.config.metric, validation.scores, self.state)
            if is_best:
                self.trainable.save_bundle(self.archive.folder.bundle, scores=validation.scores)
        seconds = time.monotonic() - begun
        if validation.told:
            self.archive.reporter.note(validation.told)
        step, epoch, elapsed_s = self.state.step, self.state.position.epoch, self.state.elapsed_s
        self.archive.record(
            ValidationRecord(step, epoch, validation.scores, is_best, elapsed_s, seconds, validation.samples)
        )
        return True

    def _score(self) -> Validation:
        self.model.eval()
        try:
            with random_states_kept(), torch.no_grad(), compute_in(self.model, self.dtype), self.signals.interrupting():
                return self.trainable.validate()
        finally:
            self.model.train()


def _describe_end(reason: Reason, state: State, warmup_steps: int) -> str:
    why = {
        "max_steps": "`training.max_steps` is reached",
        "max_minutes": "`training.max_minutes` is reached",
        "max_epochs": "`training.max_epochs` is reached",
        "patience": "held-out scores got no better for `training.patience` validations",
        "signal": "it was asked to stop; resume it to go on",
    }[reason]
    best = f" The best validation was at step {state.best.step:,}." if state.best else ""
    early = (
        f" That was before the end of the warm-up of {warmup_steps:,} updates, so the learning rate never reached its "
        "peak. Train longer, or try a lower `training.schedule.warmup_steps`."
    )
    return f"Training ended at step {state.step:,}: {why}.{best}{early if state.step < warmup_steps else ''}"
