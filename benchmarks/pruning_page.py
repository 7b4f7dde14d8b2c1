"""The page and the picture of ``results/pruning``."""

import itertools
import statistics
from typing import Any

from heedful.pruning import METHODS
from heedful.runs.pruning_report import SCRATCH
from record import RESULTS, footer, table

MINUTES = {"goals": 30.0, "narrowed": 30.0, "curves": 10.0, "table": 15.0}
"""Of each pruning, by the part of the benchmark."""

LEARNT_METHODS = ("gates", "exact")
ALLOWED = {24: 0.3, 12: 1.0}
"""Points of BLEU that may be lost where so many of 48 heads are left."""


def of_part(values: dict[str, Any], *parts: str) -> list[dict[str, Any]]:
    """Return the rows of a part of the benchmark."""
    return [row for row in values["rows"].values() if row["part"] in parts]


def bleu(row: dict[str, Any], stage: str = "pruned") -> float:
    """Return BLEU on the test data."""
    return float(row["test"][stage]["bleu"])


def lost(row: dict[str, Any]) -> float:
    """Return how many points of BLEU a pruning cost, against the very model that was pruned."""
    return bleu(row, "before") - bleu(row)


def before(rows: list[dict[str, Any]]) -> str:
    """Return BLEU of the whole models of these rows: of one, or of all that were trained anew for some of them."""
    return " or ".join(dict.fromkeys(f"{bleu(row, 'before'):.2f}" for row in rows))


def render(values: dict[str, Any]) -> str:
    """Return the page of results."""
    parts = ["# Pruning\n", *_goals_page(values), *_saving_page(values), *_curves_page(values), *_table_page(values)]
    if "cost" in values:
        seconds = values["cost"]["seconds"]
        rows = [[name, 1000 * each, each / seconds["no gates"]] for name, each in seconds.items()]
        parts += ["## What gates cost\n", table(["update with", "ms of the processor", "times"], rows)]
    made = [
        part for row in values["rows"].values() for part in (row, row.get("scratch"), row.get("speed_measured")) if part
    ]
    parts.append(footer(*made, *([values["cost"]] if "cost" in values else [])))
    return "\n".join(parts)


def _goals_page(values: dict[str, Any]) -> list[str]:
    rows = of_part(values, "goals")
    if not rows:
        return []
    lines: list[list[Any]] = []
    for number, method in itertools.product(ALLOWED, LEARNT_METHODS):
        found = [row for row in rows if row["method"] == method and row["left"] == number]
        scores = [bleu(row) for row in found]
        if scores:
            from_scratch = next((row["scratch"]["scores"]["bleu"] for row in found if "scratch" in row), None)
            spread = statistics.stdev(scores) if len(scores) > 1 else None
            mean_lost = statistics.mean(map(lost, found))
            mean = statistics.mean(scores)
            lines.append([number, method, len(scores), mean, spread, mean_lost, ALLOWED[number], from_scratch])
    header = ["heads left", "method", "seeds", "test BLEU", "±", "lost", "may be lost", SCRATCH]
    return [
        f"## Multi30k, 48 heads: a half and a quarter (test BLEU before: {before(rows)})\n",
        table(header, lines),
        f"Mean over the seeds and its standard deviation. Each pruning took {_minutes(rows)} on "
        f"{_cores(rows)}. The shapes from scratch are those that gates left with seed 1, trained for as "
        "many updates as the whole model; pruning trains on after those, with the whole model as a teacher.\n",
    ]


def _curves_page(values: dict[str, Any]) -> list[str]:
    rows = of_part(values, "curves")
    if not rows:
        return []
    numbers = sorted({row["left"] for row in rows}, reverse=True)
    found = {(row["method"], row["left"]): bleu(row) for row in rows}
    cells = [[method, *(found.get((method, number)) for number in numbers)] for method in METHODS]
    return [
        f"## Multi30k, 48 heads: test BLEU by heads left (before: {before(rows)})\n",
        table(["method", *map(str, numbers)], cells),
        f"One seed; {_minutes(rows)} each on {_cores(rows)}. The picture is `pruning.svg`.\n",
    ]


def _saving_page(values: dict[str, Any]) -> list[str]:
    speeds = [row for row in of_part(values, "goals", "narrowed") if row["method"] == "gates" and row["seed"] == 1]
    if not speeds:
        return []
    header = ["heads left", "inner width", "test BLEU", "lost", "parameters", "ceiling by multiplications"]
    header += [f"measured at batch {size}" for size in ("1", "8", "64")]
    lines = [
        [
            row["left"],
            f"{100 * row.get('inner', 1.0):.0f} %",
            bleu(row),
            lost(row),
            row["parameters"]["after"],
            row["predicted_ceiling"]["pruned"],
            *(row["speedup"]["pruned"][size] for size in ("1", "8", "64")),
        ]
        for row in speeds
    ]
    return ["## What it saves (gates)\n", table(header, lines), *_stages_page(speeds)]


def _stages_page(rows: list[dict[str, Any]]) -> list[str]:
    """Return how the score went on the way, what heads could save at most, and which of them stayed."""
    stages = ("before", "gated", "after removal", "after fine-tuning")
    header = ["heads left", "inner width", *(f"dev BLEU {stage}" for stage in stages), "the same without any heads"]
    cells = []
    for row in rows:
        scores = [row["scores"][stage]["bleu"] if stage in row["scores"] else None for stage in stages]
        ceiling = row["predicted_ceiling"].get("no heads at all")
        cells.append([row["left"], f"{100 * row.get('inner', 1.0):.0f} %", *scores, ceiling, _survivors(row)])
    return ["## On the way, and who survives (gates)\n", table([*header, "survivors by role"], cells)]


def _survivors(row: dict[str, Any]) -> str | None:
    found = row.get("survivors") or {}
    return ", ".join(f"{each['after']} of {each['before']} {role}" for role, each in found.items()) or None


def _minutes(rows: list[dict[str, Any]]) -> str:
    return " or ".join(f"{each:g}" for each in sorted({row["minutes"] for row in rows})) + " minutes"


def _cores(rows: list[dict[str, Any]]) -> str:
    counts = sorted({row["threads"] for row in rows})
    return "one core" if counts == [1] else " or ".join(map(str, counts)) + " cores"


def _table_page(values: dict[str, Any]) -> list[str]:
    rows = of_part(values, "table")
    if not rows:
        return []
    all_heads = dict.fromkeys(rows[0]["kinds"], 0)
    for each in rows[0]["heads"].values():
        all_heads[each["kind"]] += each["before"]
    lines: list[list[Any]] = [[sum(all_heads.values()), *all_heads.values(), bleu(rows[0], "before"), None]]
    for row in rows:
        from_scratch = row["scratch"]["scores"]["bleu"] if "scratch" in row else None
        lines.append([row["left"], *row["kinds"].values(), bleu(row), from_scratch])
    header = ["heads", *(f"of {kind}" for kind in all_heads), "test BLEU", SCRATCH]
    title = "## English to Spanish, 6+6 layers x 8 heads, method gates\n"
    return [title, table(header, lines), f"Each trained for {_minutes(rows)} on {_cores(rows)}.\n"]


def draw(values: dict[str, Any]) -> None:
    """Draw the curves of all methods."""
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "heedful"  # or each drawing of the same figures differs

    rows = of_part(values, "curves")
    if not rows:
        return
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for method, style in zip(METHODS, ("-o", "-s", "--^", "--v", ":x"), strict=True):
        points = sorted((row["left"], bleu(row)) for row in rows if row["method"] == method)
        axes.plot([left for left, _ in points], [score for _, score in points], style, label=method)
    axes.axhline(bleu(rows[0], "before"), color="grey", linewidth=1, label="all 48 heads")
    axes.set_xlabel("heads left")
    axes.set_ylabel("test BLEU")
    axes.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "pruning.svg", metadata={"Date": None})
    plt.close(figure)
