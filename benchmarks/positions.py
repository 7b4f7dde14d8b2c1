"""Kinds of positions on one short task, three seeds each: trained on up to 20 letters, tested on up to 40.

The task is to write a row of letters backwards (``recall.reverse``), which cannot be done without knowing where one
is. Sinusoidal and learned positions are added or concatenated; rotary ones and none have nothing to add. Learned tables
have room for every tested length, but training never reaches the far positions. All train for the same number of
updates. Resumable; about half an hour on two cores.

    python benchmarks/positions.py
    python benchmarks/positions.py --only rotary --seeds 1 --steps 100 --try
"""

import argparse
import json
import random
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from bottleneck import recall_scores
from command_line import facts, forget, train
from recall import reverse
from record import CACHE, ROOT, environment, footer, read_results, table, write_results

LONGEST_TRAINED = 20
TESTED = (5, 10, 15, 20, 25, 30, 40)
NUM_TRAIN, NUM_DEV, NUM_TEST = 20_000, 200, 200
SEEDS = (1, 2, 3)
KINDS = {
    "sinusoidal, added": ["model.positions.kind=sinusoidal"],
    "sinusoidal, concatenated": ["model.positions.kind=sinusoidal", "model.has_concatenated_positions=true"],
    "learned, added": ["model.positions.kind=learned", "model.positions.max_positions=64"],
    "learned, concatenated": [
        "model.positions.kind=learned",
        "model.positions.max_positions=64",
        "model.has_concatenated_positions=true",
    ],
    "rotary": ["model.positions.kind=rotary"],
    "none": ["model.positions.kind=none"],
}
"""What each row of the table sets."""


def prepare() -> Path:
    """Return the configuration's path; the data beside it is made at the first call."""
    folder = CACHE / "positions"
    folder.mkdir(parents=True, exist_ok=True)
    generator = random.Random("positions")
    for split, count in (("train", NUM_TRAIN), ("dev", NUM_DEV)):
        rows = [reverse(generator, generator.randint(1, LONGEST_TRAINED)) for _ in range(count)]
        write(folder / f"{split}.tsv", "source\ttarget", ["\t".join(row) for row in rows])
    rows = [(str(length), *reverse(generator, length)) for length in TESTED for _ in range(NUM_TEST)]
    write(folder / "test.tsv", "length\tsource\ttarget", ["\t".join(row) for row in rows])
    text = (ROOT / "benchmarks" / "positions.toml").read_text(encoding="utf-8")
    path = folder / "positions.toml"
    path.write_text(text.replace("DATA_FOLDER", str(folder)), encoding="utf-8")
    return path


def write(path: Path, header: str, lines: list[str]) -> None:
    """Write a table unless it is there."""
    if not path.exists():
        fresh = path.with_suffix(".fresh")
        fresh.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
        fresh.replace(path)


def run_name(kind: str, seed: int, *, is_try: bool = False) -> str:
    """Return a run's name; a try never touches the run that the table stands on."""
    return f"{'try-' if is_try else ''}positions-{kind.replace(', ', '-')}-{seed}"


def measure(kind: str, seed: int, steps: int | None, *, is_try: bool) -> dict[str, Any]:
    """Train one model and score it by length."""
    import heedful

    name = run_name(kind, seed, is_try=is_try)
    if is_try:
        forget(name)
    settings = [*KINDS[kind], f"runtime.seed={seed}", *([f"training.max_steps={steps}"] if steps else [])]
    config = prepare()
    run, command = train(str(config), name, settings)
    lines = (config.parent / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    predictions = heedful.load(run).predict([source for _, source, _ in rows])
    for (length, _, target), predicted in zip(rows, predictions, strict=True):
        groups[length].append((predicted.text, target))
    scores = {length: recall_scores(pairs) for length, pairs in groups.items()}
    return {"kind": kind, "seed": seed, "command": command, "scores": scores, **facts(run), **environment()}


def render(values: dict[str, Any]) -> str:
    """Return the page of results."""
    parts = ["# Kinds of positions\n", f"Letters backwards, trained on up to {LONGEST_TRAINED}, by source length.\n"]
    lengths = [str(length) for length in TESTED]
    for metric, title in (("symbols", "% of letters right at their place"), ("rows", "% of rows right as a whole")):
        cells = []
        for kind in KINDS:
            rows = [values["rows"][key] for seed in SEEDS if (key := f"{kind}/{seed}") in values["rows"]]
            if rows:
                cells.append(
                    [kind, len(rows), *(spread([row["scores"][at][metric] for row in rows]) for at in lengths)]
                )
        parts += [f"## {title}: mean (least to largest)\n", table(["positions", "seeds", *lengths], cells)]
    return "\n".join(parts) + footer(*values["rows"].values())


def spread(scores: list[float]) -> str:
    """Return the mean, with the least and the largest where they differ."""
    mean, least, largest = statistics.fmean(scores), min(scores), max(scores)
    return f"{mean:.1f}" if len(scores) == 1 or least == largest else f"{mean:.1f} ({least:.1f} to {largest:.1f})"


def main() -> None:
    """Fill ``results/positions`` row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--seeds", nargs="+", type=int, choices=SEEDS, default=SEEDS)
    parser.add_argument("--steps", type=int, default=None, help="updates, for a try")
    parser.add_argument("--again", action="store_true", help="train anew what stands in the table")
    parser.add_argument("--try", dest="is_try", action="store_true", help="print the scores, write nothing")
    arguments = parser.parse_args()
    if arguments.steps and not arguments.is_try:
        parser.error("--steps goes with --try: the table's rows all have the same updates")
    values = read_results("positions") or {"rows": {}}
    for kind in arguments.only:
        for seed in arguments.seeds:
            key = f"{kind}/{seed}"
            if key in values["rows"] and not arguments.again and not arguments.is_try:
                continue
            if arguments.again:
                forget(run_name(kind, seed))
            row = measure(kind, seed, arguments.steps, is_try=arguments.is_try)
            print(key, json.dumps(row["scores"]), file=sys.stderr, flush=True)
            if not arguments.is_try:
                values["rows"][key] = row
                write_results("positions", values, render(values))


if __name__ == "__main__":
    main()
