"""The report of a pruning, on one page and as JSON: who survived, what it cost, and what it saved."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from heedful.core.storage import write_whole
from heedful.runs.report import report_run
from heedful.training import RunFolder, Section, curves_section, read_history, table, table_section

FILE = "pruning.json"
CHOOSING = "choosing.jsonl"
"""History of the training in which heads were chosen."""

AFTER_REMOVAL = "after removal"
AFTER_TUNING = "after fine-tuning"
SCRATCH = "same shape from scratch"


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
        held: the stage whose model the bundle holds: fine-tuned, unless that made it worse; empty where the bundle was
            trained further.
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
        caption = "" if self.held else "As when the heads were removed; the bundle was trained further."
        return table_section("Scores", ["data", "model", *names], rows, caption=caption)

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


def write_pruning(pruning: Pruning, folder: RunFolder) -> None:
    """Write the report into the folder of the run that tuned the smaller model, as a page and as JSON."""
    content = json.dumps(pruning.to_values(), indent=1, ensure_ascii=False) + "\n"
    write_whole(folder.path / FILE, content.encode())
    report_run(folder, [*pruning.sections(), *_choosing(folder)])


def pruning_sections(folder: RunFolder) -> list[Section]:
    """Return what the report of a run that goes on after a pruning says of that; nothing where there was none."""
    file = folder.path / FILE
    if not file.is_file():
        return []
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        known = {each.name: values[each.name] for each in fields(Pruning) if each.name != "path"}
        pruning = TypeAdapter(Pruning).validate_python({**known, "path": folder.path, "held": ""})
        return [*pruning.sections(), *_choosing(folder)]
    except (OSError, ValueError, LookupError, TypeError):
        return [table_section("Pruning", ["what became of it"], [[f"`{FILE}` is damaged, and left out."]])]


def _choosing(folder: RunFolder) -> list[Section]:
    history = folder.path / CHOOSING
    return [curves_section(read_history(history), "Choosing heads")] if history.exists() else []
