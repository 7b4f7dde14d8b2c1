"""Where a fixed vector breaks and attention does not: scores by source length, for five models, each trained briefly.

Two settings: (i) package descriptions English to German (debian-ddtp), the shipped recipes ``bottleneck-*``, which
split by package so that neighbouring paragraphs stay together; of each length as many test lines as there are, 200 at
most; (ii) synthetic recall (``recall.py``), trained on up to 100 tokens and tested on up to 400. The claim is that of
Bahdanau et al. 2015, section 5.2. Resumable, as ``quality.py``; about three hours in all on one core. No row has more
than 15 minutes; the table says how many each had, for what is learnt to perfection in four needs no more.

    python benchmarks/bottleneck.py
    python benchmarks/bottleneck.py --only reverse --models dot --minutes 0.5 --try
"""

import argparse
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sacrebleu

import recall
from command_line import facts, forget, train
from record import CACHE, ROOT, environment, footer, read_results, table, write_results

BINS = (10, 20, 30, 50, 80, 10**9)
BIN_NAMES = ("1-10", "11-20", "21-30", "31-50", "51-80", "81+")
TESTED_PER_BIN = 200
TASKS = ("descriptions", "reverse", "lookup")
CONFIGS = ROOT / "benchmarks" / "bottleneck"
MODELS = {
    "fixed vector": "fixed-vector",
    "dot": "dot",
    "bilinear": "bilinear",
    "additive": "additive",
    "Transformer": "transformer",
}


def bin_of(text: str) -> str:
    """Return the bin of a source by its number of words."""
    length = len(text.split())
    return next(name for name, limit in zip(BIN_NAMES, BINS, strict=True) if length <= limit)


def prepare_recall(task: str, model: str, minutes: float) -> Path:
    """Return the configuration of a synthetic task for a model; its data is made at the first call."""
    folder = CACHE / "bottleneck" / task
    if not (folder / "test.tsv").exists():
        recall.write(task, folder)
    text = (CONFIGS / f"{task}.toml").read_text() + "\n" + (CONFIGS / f"{MODELS[model]}.toml").read_text()
    path = folder / f"{MODELS[model]}.toml"
    path.write_text(text.replace("DATA_FOLDER", str(folder)).replace("MAX_MINUTES", f"{minutes}"), encoding="utf-8")
    return path


@dataclass(frozen=True)
class Line:
    """A test line: its length class, what is read and what should be written."""

    length: str
    source: str
    target: str


def read_recall(task: str) -> list[Line]:
    """Return the test lines of a synthetic task."""
    rows = (CACHE / "bottleneck" / task / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [Line(*row.split("\t")) for row in rows]


def read_descriptions(model: Any) -> list[Line]:
    """Return the test lines of the descriptions, at most so many of each length, chosen by hash."""
    from heedful.data.prepare import read_split

    examples = read_split(model.config.task.data, "test", Path.cwd())
    examples.sort(key=lambda each: hashlib.sha1(each.source.encode(), usedforsecurity=False).digest())
    groups: dict[str, list[Line]] = {name: [] for name in BIN_NAMES}
    for each in examples:
        name = bin_of(each.source)
        if len(groups[name]) < TESTED_PER_BIN:
            groups[name].append(Line(name, each.source, each.target))
    return [line for name in BIN_NAMES for line in groups[name]]


def scores_by_length(task: str, lines: list[Line], predictions: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return the scores of each length: BLEU and chrF, or the share of right symbols and right rows."""
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for line, predicted in zip(lines, predictions, strict=True):
        groups[line.length].append((predicted, line.target))
    return {
        length: (text_scores if task == "descriptions" else recall_scores)(pairs) for length, pairs in groups.items()
    }


def text_scores(pairs: list[tuple[str, str]]) -> dict[str, float]:
    """Return BLEU and chrF of predicted and right lines."""
    hypotheses, references = [list(each) for each in zip(*pairs, strict=True)]
    return {
        "bleu": sacrebleu.corpus_bleu(hypotheses, [references], lowercase=True).score,
        "chrf": sacrebleu.corpus_chrf(hypotheses, [references]).score,
        "lines": len(pairs),
    }


def recall_scores(pairs: list[tuple[str, str]]) -> dict[str, float]:
    """Return the percentages of symbols right at their place, and of rows right as a whole."""
    symbols = right = 0
    for predicted, target in pairs:
        expected = target.split()
        symbols += len(expected)
        right += sum(a == b for a, b in zip(predicted.split(), expected, strict=False))
    rows_right = sum(predicted.split() == target.split() for predicted, target in pairs)
    return {"symbols": 100 * right / symbols, "rows": 100 * rows_right / len(pairs), "lines": len(pairs)}


def measure(task: str, model: str, minutes: float, *, is_try: bool) -> dict[str, Any]:
    """Train one model on one task and score it by length."""
    import heedful

    name = run_name(task, model, is_try=is_try)
    if is_try:
        forget(name)
    is_real = task == "descriptions"
    config = f"bottleneck-{MODELS[model]}" if is_real else str(prepare_recall(task, model, minutes))
    run, command = train(config, name, [f"training.max_minutes={minutes}"])
    loaded = heedful.load(run)
    lines = read_descriptions(loaded) if is_real else read_recall(task)
    predictions = [each.text for each in loaded.predict(line.source for line in lines)]
    scores = scores_by_length(task, lines, predictions)
    return {"model": model, "command": command, "scores": scores, **facts(run), **environment()}


def run_name(task: str, model: str, *, is_try: bool = False) -> str:
    """Return a run's name; a try never touches the run that the table stands on."""
    return f"{'try-' if is_try else ''}bottleneck-{task}-{MODELS[model]}"


def render(values: dict[str, Any]) -> str:
    """Return the page of results."""
    parts = ["# The bottleneck of a fixed vector\n"]
    for task, metric, title in (
        ("descriptions", "bleu", "Package descriptions, BLEU (lower-cased) by source words"),
        ("descriptions", "chrf", "Package descriptions, chrF by source words"),
        ("reverse", "symbols", "Reversal, % of symbols right at their place, by source tokens (trained on up to 100)"),
        ("lookup", "rows", "Look-up, % of values right, by source tokens (trained on up to 100)"),
    ):
        rows = [values["rows"][key] for model in MODELS if (key := f"{task}/{model}") in values["rows"]]
        if not rows:
            continue
        lengths = list(BIN_NAMES) if task == "descriptions" else [str(length) for length in recall.LENGTHS]
        cells = [
            [
                row["model"],
                *(round(row["scores"][length][metric], 1) for length in lengths),
                row["parameters"],
                round(row["minutes"], 1),
            ]
            for row in rows
        ]
        parts += [f"## {title}\n", table(["", *lengths, "parameters", "minutes"], cells), footer(*rows)]
    parts.append("![Scores by source length](../../docs/images/bottleneck.png)\n")
    return "\n".join(parts)


def draw(values: dict[str, Any], path: Path) -> None:
    """Draw the tables as one picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = [
        ("descriptions", "chrf", "Descriptions, English to German (chrF)", "source words"),
        ("reverse", "symbols", "Reversal (% of symbols right)", "source tokens, trained on up to 100"),
        ("lookup", "rows", "Look-up (% right)", "source tokens, trained on up to 100"),
    ]
    figure, axes = pyplot.subplots(1, 3, figsize=(13, 4), layout="constrained")
    for axis, (task, metric, title, label) in zip(axes, panels, strict=True):
        lengths = list(BIN_NAMES) if task == "descriptions" else [str(length) for length in recall.LENGTHS]
        for place, model in enumerate(MODELS):
            row = values["rows"].get(f"{task}/{model}")
            if row:
                heights = [row["scores"][length][metric] for length in lengths]
                axis.plot(lengths, heights, marker="osD^v"[place], label=model)
        axis.set(title=title, xlabel=label, ylim=(0, None))
        axis.grid(alpha=0.3)
    axes[0].legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main() -> None:
    """Fill ``results/bottleneck`` row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--minutes", type=float, default=14.0, help="of training for each row")
    parser.add_argument("--again", action="store_true", help="train anew what stands in the table")
    parser.add_argument("--try", dest="is_try", action="store_true", help="print the scores, write nothing")
    arguments = parser.parse_args()
    values = read_results("bottleneck") or {"rows": {}}
    for task in arguments.only:
        for model in arguments.models:
            key = f"{task}/{model}"
            if key in values["rows"] and not arguments.again and not arguments.is_try:
                continue
            if arguments.again:
                forget(run_name(task, model))
            row = measure(task, model, arguments.minutes, is_try=arguments.is_try)
            print(key, json.dumps(row["scores"]), file=sys.stderr, flush=True)
            if not arguments.is_try:
                values["rows"][key] = row
                write_results("bottleneck", values, render(values))
    if values["rows"]:
        draw(values, ROOT / "docs" / "images" / "bottleneck.png")


if __name__ == "__main__":
    main()
