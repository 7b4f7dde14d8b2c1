"""Train every shipped recipe, measure it on its test data, and fill the table of results. Resumable.

A row that stands in ``results/quality.json`` is skipped; a run that was cut short goes on where it stopped. The machine
should do nothing else. All rows together take about six hours on two cores.

    python benchmarks/quality.py                                   # whatever is missing
    python benchmarks/quality.py --only pronounce                  # one recipe
    python benchmarks/quality.py --only question-type --again      # train it anew
    python benchmarks/quality.py --only pronounce --set training.max_steps=20     # a short try; nothing is written
"""

import argparse
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from command_line import evaluate, facts, forget, heedful, train
from record import data_folder, environment, footer, read_results, table, write_results


@dataclass(frozen=True)
class Recipe:
    """A recipe to measure.

    Attributes:
        name: of the recipe.
        must: what it must reach, in words.
        reference: the published or measured figure to stand beside it.
        seeds: a run for each.
        extra: what else is measured on a run.
    """

    name: str
    must: str
    reference: str
    seeds: tuple[int, ...] = (1,)
    extra: Callable[[Path], dict[str, Any]] | None = None


def without_overlap(folder: Path) -> dict[str, Any]:
    """Return the accuracy on the test questions that do not also stand in the training data, and how many do."""
    import heedful
    from heedful.data import ReadReport, read_examples, read_split

    model = heedful.load(folder)
    data = model.config.task.data
    train_sources = {each.source for each in read_examples(data.train, Path.cwd(), ReadReport())}
    test = read_split(data, "test", Path.cwd())
    predictions = [each.text for each in model.predict(each.source or "" for each in test)]
    kept = [
        predicted == each.label
        for each, predicted in zip(test, predictions, strict=True)
        if each.source not in train_sources
    ]
    return {"accuracy without overlap": 100 * sum(kept) / len(kept), "overlapping lines": len(test) - len(kept)}


def samples(folder: Path) -> dict[str, Any]:
    """Return what the model writes after a short prompt, at three temperatures."""
    written = {}
    for temperature in (0.5, 0.8, 1.0):
        settings = ["search.kind=sampling", f"search.temperature={temperature}", "search.max_length=300"]
        flags = [word for setting in settings for word in ("--set", setting)]
        answer = heedful("predict", str(folder), *flags, input="ROMEO:\n", stdout=subprocess.PIPE)
        written[f"{temperature}"] = answer.stdout.rstrip("\n")
    return {"samples": written}


RECIPES = [
    Recipe("multi30k-en-de", "BLEU >= 41.0, <= 3 M parameters, <= 45 min", "41.02 (Wu et al. 2021, tokenised)"),
    Recipe("multi30k-en-de-recurrent", "BLEU >= 36, <= 60 min", ""),
    Recipe(
        "pronounce", "word error <= 24 %, phoneme error <= 5.8 %", "22.1 / 5.23 (Yolchuyeva et al. 2019, another split)"
    ),
    Recipe(
        "question-type",
        "accuracy >= 88.2, mean of 5 seeds",
        "88.2 rerun, 91.2 in the paper (Kim 2014, no pre-trained vectors)",
        seeds=(1, 2, 3, 4, 5),
        extra=without_overlap,
    ),
    Recipe("en-es", "report", ""),
    Recipe("characters", "<= 1.55 nats per character", "about 1.47 (10 M parameters on a GPU)", extra=samples),
]


def run_name(recipe: Recipe, seed: int, settings: Sequence[str]) -> str:
    """Return a run's name; a try with other settings never touches the run that the table stands on."""
    return f"{'try-' if settings else ''}{recipe.name}-{seed}"


def measure(recipe: Recipe, settings: Sequence[str]) -> dict[str, Any]:
    """Train and evaluate a recipe, a run for each seed."""
    runs = []
    for seed in recipe.seeds:
        folder, command = train(recipe.name, run_name(recipe, seed, settings), [f"runtime.seed={seed}", *settings])
        evaluation = evaluate(folder, "test")
        extra = recipe.extra(folder) if recipe.extra else {}
        runs.append({"seed": seed, "command": command, **facts(folder), "test": evaluation, "extra": extra})
    return {"recipe": recipe.name, "must": recipe.must, "reference": recipe.reference, "runs": runs, **environment()}


def scores(row: dict[str, Any]) -> str:
    """Return the mean of every metric over the seeds, with the spread where there are several."""
    runs = row["runs"]
    parts = []
    values: dict[str, list[float]] = {}
    for run in runs:
        for name, entry in run["test"]["metrics"].items():
            values.setdefault(name, []).append(entry["value"])
        for name, value in run["extra"].items():
            if isinstance(value, float):
                values.setdefault(name, []).append(value)
    for name, found in values.items():
        spread = f" (±{statistics.stdev(found):.2f})" if len(found) > 1 else ""
        parts.append(f"{name} {statistics.mean(found):.2f}{spread}")
    return ", ".join(parts)


def render(values: dict[str, Any]) -> str:
    """Return the page of results."""
    rows = [values["rows"][recipe.name] for recipe in RECIPES if recipe.name in values["rows"]]
    header = [
        "recipe",
        "test scores",
        "asked for",
        "reference",
        "parameters",
        "training minutes",
        "threads",
        "updates",
        "seeds",
    ]
    cells = [
        [
            row["recipe"],
            scores(row),
            row["must"],
            row["reference"],
            row["runs"][0]["parameters"],
            round(statistics.mean(run["minutes"] for run in row["runs"]), 1),
            row["runs"][0]["threads"],
            round(statistics.mean(run["updates"] for run in row["runs"])),
            ", ".join(str(run["seed"]) for run in row["runs"]),
        ]
        for row in rows
    ]
    parts = ["# Quality of the shipped recipes\n", table(header, cells)]
    for row in rows:
        signatures = {
            name: entry["signature"] for name, entry in row["runs"][0]["test"]["metrics"].items() if entry["signature"]
        }
        parts.append(f"## {row['recipe']}\n\n`{row['runs'][0]['command']}`\n")
        parts += [f"- {name}: {signature}" for name, signature in signatures.items()]
        parts += [f"- {name}: {value}" for name, value in row["runs"][0]["extra"].items() if isinstance(value, int)]
        for temperature, text in row["runs"][0]["extra"].get("samples", {}).items():
            parts.append(f"\nA sample at temperature {temperature}:\n\n```text\n{unescape(text)}\n```")
        parts.append(footer(row))
    return "\n".join(parts)


def unescape(text: str) -> str:
    """Return a predicted line with the line breaks it was written with."""
    return text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\")


def main() -> None:
    """Fill ``results/quality`` row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [recipe.name for recipe in RECIPES]
    parser.add_argument("--only", nargs="+", choices=known, default=known)
    parser.add_argument("--again", action="store_true", help="train anew what stands in the table")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="for a try")
    parser.add_argument("--render", action="store_true", help="write the page again from the figures that are there")
    arguments = parser.parse_args()
    data_folder()
    values = read_results("quality") or {"rows": {}}
    for recipe in RECIPES:
        if arguments.render or recipe.name not in arguments.only:
            continue
        if recipe.name in values["rows"] and not arguments.again and not arguments.settings:
            continue
        for seed in recipe.seeds:
            if arguments.again or arguments.settings:
                forget(run_name(recipe, seed, arguments.settings))
        row = measure(recipe, arguments.settings)
        print(f"{recipe.name}: {scores(row)}", flush=True)
        if not arguments.settings:
            values["rows"][recipe.name] = row
            write_results("quality", values, render(values))
    if arguments.render:
        write_results("quality", values, render(values))


if __name__ == "__main__":
    main()
