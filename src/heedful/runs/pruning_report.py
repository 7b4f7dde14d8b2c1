"""What pruning did, on one page and as JSON: who survived, what it cost, and what it saved."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.core.storage import write_whole
from heedful.data.example import Example
from heedful.data.prepare import read_split
from heedful.models.interfaces import AttentionSite, Generates
from heedful.pruning import Lengths, count_operations, find_heads, reduce_task
from heedful.pruning.heads import KeptHeads
from heedful.runs.loaded import LoadedModel
from heedful.runs.pruning_plan import Plan
from heedful.runs.pruning_roles import HeadRoles
from heedful.runs.report import report_run
from heedful.runs.speed import measure_speed
from heedful.search import BeamConfig
from heedful.tasks import Evaluation, Task
from heedful.training import RunFolder, Section, curves_section, table, table_section

FILE = "pruning.json"
AFTER_REMOVAL = "after removal"
AFTER_TUNING = "after fine-tuning"
SCRATCH = "same shape from scratch"


@dataclass(frozen=True)
class Stage:
    """A score on the way.

    Attributes:
        name: ``before``, ``gated``, `AFTER_REMOVAL`, `AFTER_TUNING`, `SCRATCH`.
        evaluation: on the dev data.
        is_held: the bundle holds this model.
    """

    name: str
    evaluation: Evaluation
    is_held: bool = False


@dataclass(frozen=True)
class Pruning:
    """What pruning did.

    Attributes:
        path: the new run's folder.
        method: how heads were chosen.
        metric: the score that counts.
        max_loss: points of it that were allowed to be lost; None where the number of heads was the goal.
        lost: points of it that the model in the bundle lost on the dev data; below 0 where it gained.
        heads: for each attention by its path: kind, layer, heads before and after, which were kept, and the roles of
            each head that there was before.
        survivors: heads before and after by family of roles, a head with several in each.
        roles_from: where the roles come from.
        inner: for each block by its path, inner units before and after.
        scores: every score of each stage on the dev data, by stage.
        held: the stage whose model the bundle holds: fine-tuned, unless that made it worse.
        test: the same on the test data, before and after; empty where there are none.
        parameters: before and after.
        operations: multiplications a line, of the whole model, the pruned one, and without any heads at all.
        speed: lines a second by batch size, of the same models.
    """

    path: Path
    method: str
    metric: str
    max_loss: float | None
    lost: float
    heads: dict[str, dict[str, Any]]
    survivors: dict[str, dict[str, int]]
    roles_from: str
    inner: dict[str, dict[str, int]]
    scores: dict[str, dict[str, float]]
    held: str
    test: dict[str, dict[str, float]]
    parameters: dict[str, int]
    operations: dict[str, dict[str, float]]
    speed: dict[str, dict[int, float]]

    @property
    def num_heads(self) -> tuple[int, int]:
        """Heads before and after, of all attentions."""
        return sum(each["before"] for each in self.heads.values()), sum(each["after"] for each in self.heads.values())

    @property
    def is_goal_met(self) -> bool:
        """Whether as little was lost as was asked for; a number of heads is always met."""
        return self.max_loss is None or self.lost <= self.max_loss

    @property
    def goal(self) -> str | None:
        """What became of the largest loss that was allowed; None where the number of heads was the goal."""
        if self.max_loss is None:
            return None
        told = "met" if self.is_goal_met else "not met"
        return f"goal {told}: {self.lost:.4g} points of {self.metric} lost on dev, at most {self.max_loss:g} allowed"

    def ceiling(self, name: str) -> float:
        """Return how many times less one of the models computes than the whole one."""
        return self.operations["before"]["total"] / max(self.operations[name]["total"], 1e-9)

    def to_values(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        own = {key: value for key, value in vars(self).items() if key != "path"}
        ceilings = {name: self.ceiling(name) for name in self.operations}
        return {"run": str(self.path), **own, "is_goal_met": self.is_goal_met, "predicted_ceiling": ceilings}

    def to_text(self) -> str:
        """Return the report for a terminal."""
        before, after = self.num_heads
        rows = [f"{self.path}: {after} of {before} heads left ({self.method})"]
        rows += [self.goal] if self.goal else []
        rows += [f"  {kind:8} {text}" for kind, text in self._by_kind().items()]
        left = ", ".join(f"{each['after']} of {each['before']} {role}" for role, each in self.survivors.items())
        rows.append(f"survived: {left}")
        width = max(26, *(len(f"dev, {self._told(stage)}") for stage in self.scores))
        rows.append(f"{'':{width}} {'  '.join(f'{name:>9}' for name in next(iter(self.scores.values())))}")
        for split, stages in (("dev", self.scores), ("test", self.test)):
            for stage, scores in stages.items():
                title = f"{split}, {self._told(stage)}"
                rows.append(f"{title:{width}} " + "  ".join(f"{value:9.4g}" for value in scores.values()))
        rows.append(f"parameters {self.parameters['before']:,} -> {self.parameters['after']:,}")
        for name in [each for each in self.operations if each != "before"]:
            speeds = ", ".join(f"{each:.2f} x at batch {size}" for size, each in self._speedups(name).items())
            rows.append(f"{name}: {self.ceiling(name):.2f} x by arithmetic; measured {speeds}")
        rows.append(f"report: {self.path / 'report.html'}")
        return "\n".join(rows)

    def _told(self, stage: str) -> str:
        """Return a stage's name as it is told."""
        return f"{stage} (the bundle)" if stage == self.held else stage

    def _by_kind(self) -> dict[str, str]:
        found: dict[str, list[str]] = {}
        for each in self.heads.values():
            found.setdefault(each["kind"], []).append(f"{each['after']}/{each['before']}")
        return {kind: " ".join(parts) for kind, parts in found.items()}

    def _speedups(self, name: str) -> dict[int, float]:
        return {size: each / self.speed["before"][size] for size, each in self.speed.get(name, {}).items()}

    def sections(self) -> list[Section]:
        """Return the sections of the report."""
        goal = [table_section("Goal", ["what became of it"], [[self.goal]])] if self.goal else []
        return [
            *goal,
            self._heads_section(),
            self._roles_section(),
            self._scores_section(),
            self._size_section(),
            self._speed_section(),
        ]

    def _heads_section(self) -> Section:
        header = ["attention", "layer", "heads before", "heads left", "which, and their roles", "removed"]
        rows = []
        for each in self.heads.values():
            told = [f"{head}: {_join(roles) or 'none'}" for head, roles in enumerate(each["roles"])]
            left = "; ".join(told[head] for head in each["kept"])
            gone = "; ".join(told[head] for head in range(each["before"]) if head not in each["kept"])
            rows.append([each["kind"], each["layer"], each["before"], each["after"], left, gone])
        return table_section("Heads", header, rows, caption=f"Layers and heads count from 0. Roles: {self.roles_from}.")

    def _roles_section(self) -> Section:
        rows = [[role, each["before"], each["after"]] for role, each in self.survivors.items()]
        caption = "A head with roles of several kinds counts in each."
        return table_section("Who survived", ["role", "heads before", "heads left"], rows, caption=caption)

    def _scores_section(self) -> Section:
        names = list(next(iter(self.scores.values())))
        rows = [
            [split, self._told(stage), *(scores[name] for name in names)]
            for split, stages in (("dev", self.scores), ("test", self.test))
            for stage, scores in stages.items()
        ]
        return table_section("Scores", ["data", "model", *names], rows)

    def _size_section(self) -> Section:
        rows: list[list[object]] = [
            ["parameters", *self.parameters.values()],
            ["bytes (float32)", *(4 * each for each in self.parameters.values())],
        ]
        sizes = table(["what", "before", "after"], rows)
        inner = [[path, each["before"], each["after"]] for path, each in self.inner.items()]
        return Section("Size", sizes + table(["inner units of", "before", "after"], inner))

    def _speed_section(self) -> Section:
        sizes = list(self.speed["before"]) if self.speed else []
        rows = []
        for name, each in self.operations.items():
            measured = [self.speed[name][size] / self.speed["before"][size] for size in sizes]
            rows.append([name, each["attention"] / 1e6, each["total"] / 1e6, self.ceiling(name), *measured])
        header = ["model", "million multiplications a line, of heads", "in all", "ceiling, times"]
        text = table([*header, *(f"measured at batch {size}" for size in sizes)], rows)
        return Section("Arithmetic and speed", text)


def _join(parts: Iterable[object]) -> str:
    return ", ".join(map(str, parts))


def describe(
    whole: LoadedModel,
    pruned: LoadedModel,
    plan: Plan,
    stages: Sequence[Stage],
    kept: KeptHeads,
    dev: Sequence[Example],
    roles: HeadRoles,
    scratch: Task | None = None,
) -> Pruning:
    """Measure what is left and put everything together.

    Args:
        whole: before.
        pruned: after.
        plan: how it was pruned.
        stages: scores on the way.
        kept: the heads that stayed, by the path of their attention.
        dev: held-out examples, from which the usual length of a line is taken.
        roles: of the whole model's heads.
        scratch: the same shape trained from scratch, if it was.
    """
    is_narrowed = plan.wish.inner_fraction is not None
    models = _compared(whole.task, pruned.task, is_narrowed=is_narrowed)
    lengths = usual_lengths(whole.task, dev)
    after = {site.path: site for site in pruned.model.attention_sites()}
    blocks = pruned.model.blocks()
    held = next(stage for stage in stages if stage.is_held)
    sites = whole.model.attention_sites()
    return Pruning(
        path=pruned.path,
        method=plan.wish.method,
        metric=plan.metric,
        max_loss=plan.wish.max_loss,
        lost=points_lost(whole.task, plan.metric, stages[0].evaluation, held.evaluation),
        heads={site.path: _describe_site(site, after[site.path], kept, roles) for site in sites},
        survivors=roles.survivors(kept),
        roles_from=roles.source,
        inner={
            path: {"before": block.feed_forward.inner_dim, "after": blocks[path].feed_forward.inner_dim}
            for path, block in whole.model.blocks().items()
        },
        scores={stage.name: stage.evaluation.scores() for stage in stages},
        held=held.name,
        test=_test_scores({"before": whole.task, "pruned": pruned.task, SCRATCH: scratch}, plan),
        parameters={"before": whole.task.num_parameters, "after": pruned.task.num_parameters},
        operations={name: _describe_operations(each, lengths) for name, each in models.items()},
        speed=compare_speed(whole.task, pruned.task, dev, is_narrowed=is_narrowed),
    )


def compare_speed(
    whole: Task, pruned: Task, dev: Sequence[Example], *, is_narrowed: bool
) -> dict[str, dict[int, float]]:
    """Return lines a second by batch size: of the whole model, the pruned one, and those that bound what can be saved.

    Args:
        whole: before.
        pruned: after.
        dev: lines to be predicted, all to outputs of the usual length.
        is_narrowed: feed-forward layers were cut too.
    """
    writes = isinstance(whole.model, Generates)
    lines = [each.source if each.source is not None else (each.target or "")[:12] for each in dev]
    num_symbols = round(usual_lengths(whole, dev).target) if writes else None
    found = measure_speed(_compared(whole, pruned, is_narrowed=is_narrowed), lines, num_symbols)
    return {name: each.lines_per_s for name, each in found.items()}


def points_lost(task: Task, metric: str, before: Evaluation, after: Evaluation) -> float:
    """Return by how many points a score became worse; below 0 where it became better."""
    old, new = before.scores()[metric], after.scores()[metric]
    return old - new if task.directions[metric] else new - old


def _compared(whole: Task, pruned: Task, *, is_narrowed: bool) -> dict[str, Task]:
    """Return the models whose speed is compared: without any heads they show how much heads could save at most."""
    no_heads = {site.path: () for site in find_heads(whole.model).sites}
    models = {"before": whole, "pruned": pruned, "no heads at all": reduce_task(whole, no_heads)}
    if is_narrowed:
        models["no heads at all, narrowed"] = reduce_task(pruned, no_heads)
    return models


def usual_lengths(task: Task, examples: Sequence[Example]) -> Lengths:
    """Return the mean length of some examples in symbols, and how many hypotheses the task's search keeps."""
    rows = [task.encode(each) for each in examples[:500]]
    count = max(len(rows), 1)
    search = task.search
    return Lengths(
        source=sum(len(row.source or ()) for row in rows) / count,
        target=sum(max(len(row.target or ()) - 1, 0) for row in rows) / count,
        num_hypotheses=search.beam_size if isinstance(search, BeamConfig) else 1,
    )


def _describe_operations(task: Task, lengths: Lengths) -> dict[str, float]:
    found = count_operations(task.model, lengths)
    return {**vars(found), "total": found.total}


def _describe_site(before: AttentionSite, after: AttentionSite, kept: KeptHeads, roles: HeadRoles) -> dict[str, Any]:
    which = list(kept.get(before.path, range(before.num_heads)))
    sizes = {"before": before.num_heads, "after": after.num_heads}
    names = [roles.names(before.path, head) for head in range(before.num_heads)]
    return {"kind": before.kind, "layer": before.layer, **sizes, "kept": which, "roles": names}


def _test_scores(tasks: Mapping[str, Task | None], plan: Plan) -> dict[str, dict[str, float]]:
    data = plan.tuning.task.data
    if data.test is None:
        return {}
    examples = read_split(data, "test", Path.cwd())
    return {name: task.evaluate(examples, "test").scores() for name, task in tasks.items() if task is not None}


def write_pruning(pruning: Pruning, folder: RunFolder, history: Sequence[Any]) -> None:
    """Write the report into the run's folder, as a page and as JSON.

    Args:
        pruning: what was done.
        folder: of the run that tuned the smaller model.
        history: of the training in which heads were chosen.
    """
    content = json.dumps(pruning.to_values(), indent=1, ensure_ascii=False) + "\n"
    write_whole(folder.path / FILE, content.encode())
    report_run(folder, [*pruning.sections(), curves_section(history, "Choosing heads")])
