"""What pruning did to a model, measured: scores, heads, size, arithmetic and speed, before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heedful.data.example import Example
from heedful.data.prepare import read_split
from heedful.models.interfaces import AttentionSite, Generates
from heedful.pruning import Lengths, count_operations, find_heads, reduce_task
from heedful.pruning.heads import KeptHeads
from heedful.runs.loaded import LoadedModel
from heedful.runs.pruning_plan import Plan
from heedful.runs.pruning_report import SCRATCH, Pruning
from heedful.runs.pruning_roles import HeadRoles
from heedful.runs.speed import measure_speed
from heedful.search import BeamConfig
from heedful.tasks import Evaluation, Task


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


def describe(
    whole: LoadedModel,
    pruned: LoadedModel,
    plan: Plan,
    stages: Sequence[Stage],
    kept: KeptHeads,
    dev: Sequence[Example],
    roles: HeadRoles,
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
        test=_test_scores({"before": whole.task, "pruned": pruned.task}, plan),
        parameters={"before": whole.task.num_parameters, "after": pruned.task.num_parameters},
        operations={name: _describe_operations(each, lengths) for name, each in models.items()},
        speed=compare_speed(whole.task, pruned.task, dev, is_narrowed=is_narrowed),
    )


def add_scratch(pruning: Pruning, scratch: Task, evaluation: Evaluation, plan: Plan) -> Pruning:
    """Return a report with the scores of the same shape trained from scratch, whose evaluation is of the dev data."""
    scores = {**pruning.scores, SCRATCH: evaluation.scores()}
    return replace(pruning, scores=scores, test={**pruning.test, **_test_scores({SCRATCH: scratch}, plan)})


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


def _test_scores(tasks: Mapping[str, Task], plan: Plan) -> dict[str, dict[str, float]]:
    data = plan.tuning.task.data
    if data.test is None:
        return {}
    examples = read_split(data, "test", Path.cwd())
    return {name: task.evaluate(examples, "test").scores() for name, task in tasks.items()}
