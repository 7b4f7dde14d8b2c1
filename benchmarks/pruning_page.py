"""The page and the picture of ``results/pruning``."""

import statistics
from typing import Any

from heedful.pruning import METHODS
from heedful.runs.pruning_report import SCRATCH
from record import RESULTS, footer, table

MINUTES = {"curves": 30.0, "table": 20.0}
"""Of each pruning, by the part of the benchmark."""


def of_part(values: dict[str, Any], *parts: str) -> list[dict[str, Any]]:
    """Return the rows of a part of the benchmark."""
    return [row for row in values["rows"].values() if row["part"] in parts]


def bleu(row: dict[str, Any], stage: str = "pruned") -> float:
    """Return BLEU on the test data."""
    return float(row["test"][stage]["bleu"])


def render(values: dict[str, Any]) -> str:
    """Return the page of results."""
    parts = ["# Pruning\n", *_curves_page(values), *_table_page(values)]
    if "cost" in values:
        seconds = values["cost"]["seconds"]
        rows = [[name, 1000 * each, each / seconds["no gates"]] for name, each in seconds.items()]
        parts += ["## What gates cost\n", table(["update with", "ms of the processor", "times"], rows)]
    made = [
        part for row in values["rows"].values() for part in (row, row.get("scratch"), row.get("speed_measured")) if part
    ]
    parts.append(footer(*made, *([values["cost"]] if "cost" in values else [])))
    return "\n".join(parts)


def _curves_page(values: dict[str, Any]) -> list[str]:
    rows = of_part(values, "curves")
    if not rows:
        return []
    before = bleu(rows[0], "before")
    numbers = sorted({row["left"] for row in rows}, reverse=True)
    cells = []
    for method in METHODS:
        line: list[Any] = [method]
        for number in numbers:
            found = [bleu(row) for row in rows if row["method"] == method and row["left"] == number]
            spread = f" (±{statistics.stdev(found):.2f}, {len(found)})" if len(found) > 1 else ""
            line.append(f"{statistics.mean(found):.2f}{spread}" if found else None)
        cells.append(line)
    from_scratch = {row["left"]: row["scratch"]["scores"]["bleu"] for row in rows if "scratch" in row}
    if from_scratch:
        cells.append([SCRATCH, *(from_scratch.get(number) for number in numbers)])
    page = [
        f"## Multi30k, 48 heads: test BLEU by heads left (before: {before:.2f})\n",
        table(["method", *map(str, numbers)], cells),
        f"In brackets: standard deviation, number of seeds. Each pruning trained for {MINUTES['curves']:g} minutes on "
        f"{_cores(rows)}. The picture is `pruning.svg`.\n",
    ]
    speeds = [row for row in of_part(values, "curves", "narrowed") if row["method"] == "gates" and row["seed"] == 1]
    header = ["heads left", "inner width", "test BLEU", "lost", "parameters", "ceiling by multiplications"]
    header += [f"measured at batch {size}" for size in ("1", "8", "64")]
    lines = [
        [
            row["left"],
            f"{100 * row.get('inner', 1.0):.0f} %",
            bleu(row),
            before - bleu(row),
            row["parameters"]["after"],
            row["predicted_ceiling"]["pruned"],
            *(row["speedup"]["pruned"][size] for size in ("1", "8", "64")),
        ]
        for row in speeds
    ]
    page += ["## What it saves (gates)\n", table(header, lines)]
    return [*page, *_stages_page(speeds)]


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
    return [title, table(header, lines), f"Each trained for {MINUTES['table']:g} minutes on {_cores(rows)}.\n"]


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
        numbers = sorted({row["left"] for row in rows if row["method"] == method})
        means = [
            statistics.mean(bleu(row) for row in rows if row["method"] == method and row["left"] == number)
            for number in numbers
        ]
        axes.plot(numbers, means, style, label=method)
    axes.axhline(bleu(rows[0], "before"), color="grey", linewidth=1, label="all 48 heads")
    axes.set_xlabel("heads left")
    axes.set_ylabel("test BLEU")
    axes.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "pruning.svg", metadata={"Date": None})
    plt.close(figure)
