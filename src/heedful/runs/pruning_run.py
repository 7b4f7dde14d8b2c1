"""Pruning a bundle: choose heads while the model learns to do without the others, remove them, tune what is left."""

import itertools
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.errors import ConfigError, TrainingError
from heedful.core.storage import whole_folder
from heedful.core.types import Batch, Position
from heedful.data.example import Example
from heedful.data.prepare import read_split
from heedful.pruning import (
    KINDS,
    Budget,
    Candidate,
    GatedFitting,
    Goal,
    HardConcreteGates,
    HeadGates,
    Heads,
    RankedGates,
    SubsetGates,
    find_heads,
    rank_by_confidence,
    rank_by_gradient,
    reduce_task,
    unit_importance,
    units_to_keep,
)
from heedful.pruning.head_gates import Rank, order_of_closing
from heedful.pruning.heads import KeptHeads
from heedful.runs.config import RunConfig
from heedful.runs.convergence import doubt_convergence
from heedful.runs.loaded import LoadedModel, load
from heedful.runs.preparation import prepare_fitting
from heedful.runs.pruning_comparison import Stage, add_scratch, describe, points_lost
from heedful.runs.pruning_folder import EARLIER, REMOVED, SELECTION, claim, clear_up, set_aside
from heedful.runs.pruning_plan import NUM_CHECKS, Plan, Wish, make_plan, share_tuning, take_dropout
from heedful.runs.pruning_report import AFTER_REMOVAL, AFTER_TUNING, CHOOSING, SCRATCH, Pruning, write_pruning
from heedful.runs.pruning_roles import HeadRoles, read_roles, survey_roles
from heedful.runs.training_run import begin
from heedful.runs.training_run import train as train_anew
from heedful.tasks import Evaluation, Fitting, Task, open_bundle
from heedful.training import ConsoleReporter, Reporter, RunFolder
from heedful.training import train as start_training

SCRATCH_RUN = "scratch"

RANKING_BATCHES = 8
UNIT_BATCHES = 32


def prune(
    path: Path | str,
    out: Path | str,
    *,
    keep: int | None = None,
    keep_fraction: float | None = None,
    max_loss: float | None = None,
    kinds: Sequence[str] = KINDS,
    method: str = "gates",
    inner_fraction: float | None = None,
    data: str | None = None,
    max_minutes: float | None = None,
    max_steps: int | None = None,
    has_scratch: bool = False,
    roles: Path | None = None,
    settings: Iterable[str] = (),
    reporter: Reporter | None = None,
) -> Pruning:
    """Remove heads from a trained Transformer, and tune what is left.

    Args:
        path: a run or bundle.
        out: folder of the new run; it must not exist. Its bundle is the smaller model, ``removed`` in it the one
            before fine-tuning.
        keep: heads that stay; give exactly one of this and the next two.
        keep_fraction: share of the heads that stay.
        max_loss: points of ``training.metric`` on the dev data that may be lost, for as few heads as possible. Up to
            three models are tuned in turn until one keeps that, the one with the fewest heads first; where none does,
            the last is kept, and `Pruning.is_goal_met` is False.
        kinds: ``encoder``, ``decoder``, ``cross``: the attentions whose heads are meant.
        method: ``gates``, ``exact``, ``gradient``, ``confidence`` or ``random``.
        inner_fraction: share of the feed-forward layers' inner units that stays.
        data: a recipe or file whose table ``[data]`` is used; absent means the files the bundle was trained on.
        max_minutes: of choosing heads and fine-tuning in all, however many models are tuned; absent means 20. Ordering
            heads before, which ``gates`` and ``exact`` start from, and measuring are not counted.
        max_steps: updates in all, instead; at least 2.
        has_scratch: also train the same shape from scratch, as the bundle was trained and for as long.
        roles: what ``heedful heads --json`` wrote of the bundle; absent means that roles are looked for over the dev
            data, of which no tree or gold alignment is known.
        settings: ``key=value`` on top of the configuration of training, e.g. ``runtime.seed=2``.
        reporter: is told how it goes; absent means stderr.

    Raises:
        ConfigError: a model without heads to remove, or something that cannot be asked of it.
        BundleError: the bundle is damaged, the data are not those it was trained on, or `out` exists.
        TrainingError: no head could be removed for so little loss.
    """
    wish = Wish(keep, keep_fraction, max_loss, tuple(kinds), method, inner_fraction, max_minutes, max_steps)
    wish.check()
    out = Path(out)
    whole = load(path)
    known = None if roles is None else read_roles(roles, whole)
    num_heads = wish.num_heads(find_heads(whole.model, wish.kinds))
    plan = make_plan(wish, open_bundle(Path(path)), data, tuple(settings))
    plan.check_metric(whole.task.directions)
    if has_scratch and plan.scratch is None:
        raise ConfigError(
            "`--from-scratch` needs to know how the model was trained, but this bundle came from another. Prune the "
            "first one, or leave it out."
        )
    claim(out)
    reporter = reporter or ConsoleReporter()
    try:
        return _Pruner(whole, plan, num_heads, RunFolder(out), reporter).run(known, has_scratch=has_scratch)
    except BaseException:
        left = clear_up(out)
        if left:
            reporter.note(left)
        raise


class _Pruner:
    """One pruning, from a bundle to a smaller one with its report."""

    def __init__(
        self, whole: LoadedModel, plan: Plan, num_heads: int | None, folder: RunFolder, reporter: Reporter
    ) -> None:
        self.whole = whole
        self.plan = plan
        self.num_heads = num_heads
        self.folder = folder
        self.reporter = reporter
        self.stages: list[Stage] = []
        self.kept: KeptHeads = {}

    def run(self, roles: HeadRoles | None, *, has_scratch: bool) -> Pruning:
        """Prune, and write everything."""
        config = self.plan.selection.task
        dev = read_split(config.data, "dev", Path.cwd())[: config.validation.max_lines]
        before = self._measure("before", self.whole.task, dev)
        doubt = doubt_convergence(self.whole.path, self.plan.metric, before.scores()["loss"], self.whole.task)
        if doubt:
            self.reporter.note(f"Warning: {doubt}")
        roles = roles or survey_roles(self.whole, config.data)
        candidates = self._select(before)
        self._tune(candidates, before, dev)
        (self.folder.path / SELECTION / "history.jsonl").rename(self.folder.path / CHOOSING)
        shutil.rmtree(self.folder.path / SELECTION)
        pruning = describe(self.whole, load(self.folder.path), self.plan, self.stages, self.kept, dev, roles)
        write_pruning(pruning, self.folder)
        scratch = self._train_from_scratch(self.plan.scratch) if has_scratch and self.plan.scratch else None
        if scratch is None:
            return pruning
        pruning = add_scratch(pruning, scratch, self._measure(SCRATCH, scratch, dev), self.plan)
        write_pruning(pruning, self.folder)
        return pruning

    # ---------------------------------------------------------------------------------------------- choosing heads

    def _select(self, before: Evaluation) -> list[Candidate]:
        """Return bundles without the heads that were given up, the one with the fewest heads first."""
        fitting = prepare_fitting(self.plan.selection, self.folder.path, self.reporter.note, is_begun=False)
        if self.plan.wish.inner_fraction is not None:
            fitting = self._narrow(fitting, self.plan.wish.inner_fraction)
        heads = find_heads(fitting.task.model, self.plan.wish.kinds)
        # While a loss of score decides, the first validation is to see all heads.
        ends = {} if self.num_heads is not None else {"ramp_share": 1.0, "hold_share": 1.5 / NUM_CHECKS}
        budget = Budget(len(heads), self.num_heads or 0, **ends)
        gates = self._gates(fitting, heads, budget)
        goal = Goal(self.num_heads, self.plan.metric, before.scores()[self.plan.metric], self.plan.wish.max_loss or 0.0)
        gated = GatedFitting(fitting, gates, budget, goal, self.plan.rate)
        self.reporter.note(f"Choosing among {len(heads)} heads with the method `{self.plan.wish.method}`.")
        folder = RunFolder(self.folder.path / SELECTION)
        config = self.plan.selection
        outcome = start_training(gated, config.training, config.runtime, folder, self.reporter)
        if outcome.reason == "signal":
            self.reporter.note("No head was removed yet, and nothing is kept: the same command begins anew.")
            raise KeyboardInterrupt
        if not gated.candidates:
            raise TrainingError(
                f"No head could be removed at a loss of at most {goal.max_loss:g} points of {goal.metric}. "
                "Try more `--max-minutes`, or a larger `--max-loss`."
            )
        return [gated.candidates[number] for number in sorted(gated.candidates)]

    def _gates(self, fitting: Fitting, heads: Heads, budget: Budget) -> HeadGates:
        batches = _first_batches(fitting, RANKING_BATCHES)
        generator = torch.Generator().manual_seed(self.plan.selection.runtime.seed)
        order = torch.randperm(len(heads), generator=generator).float()
        ranks: dict[str, Rank] = {
            "gradient": partial(rank_by_gradient, fitting.task, heads, batches),
            "confidence": partial(rank_by_confidence, fitting.task, heads, batches),
            "random": lambda is_open: order,
        }
        match self.plan.wish.method:
            case "gates":
                return HardConcreteGates(heads, self._order(ranks["gradient"], heads))
            case "exact":
                return SubsetGates(heads, budget.end, self._order(ranks["gradient"], heads))
            case name:
                return RankedGates(heads, budget.end, ranks[name])

    def _order(self, rank: Rank, heads: Heads) -> Float[Tensor, " heads"]:
        self.reporter.note(f"Ordering {len(heads)} heads by gradients first; the time for choosing begins after it.")
        return order_of_closing(rank, len(heads))

    def _narrow(self, fitting: Fitting, fraction: float) -> Fitting:
        """Cut the feed-forward layers' width before heads are chosen, so that the model learns with both."""
        importance = unit_importance(fitting.task, _first_batches(fitting, UNIT_BATCHES))
        narrow = reduce_task(fitting.task, {}, units_to_keep(importance, fraction))
        return Fitting(narrow, fitting.training_data, fitting.dev, fitting.save)

    # ---------------------------------------------------------------------------------------------- fine-tuning

    def _tune(self, candidates: list[Candidate], before: Evaluation, dev: Sequence[Example]) -> None:
        """Fine-tune the smallest model; while it has lost too much, one with more heads."""
        place = self.folder.path / REMOVED
        for candidate, config in share_tuning(self.plan.tuning, candidates):
            self.stages = [each for each in self.stages if each.name == "before"]
            if place.exists():
                set_aside(self.folder.path)
            candidate.path.rename(place)
            self.kept = candidate.kept
            self.stages.append(Stage("gated", candidate.gated))
            removed = self._measure(AFTER_REMOVAL, load(place).task, dev)
            outcome = begin(_of_bundle(config, place), self.folder, self.reporter)
            if outcome.reason == "signal":
                raise KeyboardInterrupt
            tuned = self._measure(AFTER_TUNING, load(self.folder.path).task, dev)
            held = tuned
            self._hold(AFTER_TUNING)
            if self._is_better(removed, tuned):
                held = removed
                self._hold(AFTER_REMOVAL)
                self.reporter.note("Fine-tuning made it no better: the bundle holds the model as it was before.")
                _copy_bundle(place, self.folder.bundle)
            shutil.rmtree(self.folder.path / EARLIER, ignore_errors=True)
            if self._is_near(before, held):
                return
            number = sum(map(len, candidate.kept.values()))
            self.reporter.note(
                f"Fine-tuned, the model with {number} heads still loses more than {self.plan.wish.max_loss:g} points."
            )
        self.reporter.note("The goal is not met. Try more `--max-minutes`, or a larger `--max-loss`.")

    def _hold(self, name: str) -> None:
        """Note which stage's model the bundle holds."""
        self.stages = [replace(each, is_held=each.name == name) for each in self.stages]

    def _is_better(self, one: Evaluation, other: Evaluation) -> bool:
        metric, task = self.plan.metric, self.whole.task
        new, old = one.scores()[metric], other.scores()[metric]
        return new > old if task.directions[metric] else new < old

    def _is_near(self, before: Evaluation, after: Evaluation) -> bool:
        limit = self.plan.wish.max_loss
        return limit is None or points_lost(self.whole.task, self.plan.metric, before, after) <= limit

    # ---------------------------------------------------------------------------------------------- measuring

    def _measure(self, name: str, task: Task, dev: Sequence[Example]) -> Evaluation:
        evaluation = task.evaluate(dev, "dev", search=task.config.validation.search)
        self.stages.append(Stage(name, evaluation))
        return evaluation

    def _train_from_scratch(self, run: RunConfig) -> Task | None:
        """Train the shape that is left as the bundle was trained, from random weights; None where that was stopped."""
        values = run.values()
        values["model"] = take_dropout(open_bundle(self.folder.path).config()["model"], values["model"])
        outcome = train_anew(values, self.folder.path / SCRATCH_RUN, reporter=self.reporter)
        if outcome.reason == "signal":
            self.reporter.note("The training from scratch was stopped, and is left out of the report.")
            return None
        return outcome.load().task


def _first_batches(fitting: Fitting, number: int) -> list[Batch]:
    """Return batches with their targets alone: what a head is worth does not depend on a teacher."""
    placed = itertools.islice(fitting.batches(Position()), number)
    return [replace(each.batch, soft_targets=None) for each in placed]


def _of_bundle(config: RunConfig, bundle: Path) -> RunConfig:
    """Return the configuration of a run that tunes a smaller bundle further."""
    model = load(bundle).task.config.model
    task = config.task.model_copy(update={"model": model})
    return replace(config, task=task, init_from=str(bundle.absolute()))


def _copy_bundle(source: Path, target: Path) -> None:
    with whole_folder(target) as folder:
        for file in source.iterdir():
            shutil.copyfile(file, folder / file.name)
