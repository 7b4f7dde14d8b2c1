"""Prune trained Transformers by every method, to several numbers of heads, and fill the tables. Resumable.

Seven parts. ``goals``: the Multi30k model of ``quality.py`` (4+4 layers x 4 heads x 3 kinds) to a half and a quarter of
its heads by gates and exact, three seeds. ``narrowed``: with narrower feed-forward layers besides. ``curves``: BLEU by
heads left for all methods, in less time. ``table``: heads left of each kind against BLEU, as in Voita et al. 2019
(table 2), on a 6+6 x 8-head model, English to Spanish. ``scratch``: shapes that pruning left, trained from random
weights as the whole models were, for as many updates, whatever time these take. ``speed``: that of the pruned models
once more, on one core of a machine that does nothing else. ``cost``: what gates cost an update, in seconds of the
processor.

A row that stands in ``results/pruning.json`` is skipped. With the default minutes all takes about sixteen hours on one
core; two can work at different rows.

    python benchmarks/pruning.py
    python benchmarks/pruning.py --only goals --methods gates --heads 24 --seeds 1
    python benchmarks/pruning.py --only curves --methods random --heads 24 --try --set training.max_steps=20
"""

import argparse
import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from command_line import RUNS, default_threads, evaluate, facts, heedful, spell, train
from heedful.pruning import METHODS
from heedful.runs.pruning_report import SCRATCH
from pruning_page import ALLOWED, LEARNT_METHODS, MINUTES, draw, render
from record import data_folder, environment, read_results, write_results

CURVE_HEADS = (36, 24, 12, 6)
HEAD_DIM = 32
"""Of both models."""

TRY = "try-"
"""How the name of a run begins that is not kept."""

NARROWED = ((24, 0.5), (12, 0.5))
TABLE_HEADS = (144, 96, 64, 48, 32, 16)
SCRATCH_OF = {"goals/gates/24/1": "multi30k-en-de", "goals/gates/12/1": "multi30k-en-de", "table/gates/16/1": "en-es"}
"""Rows whose shapes are trained from scratch too, with the recipe."""

NUM_VALIDATIONS = 9
"""Of a training from scratch; the whole model's had as many."""

TABLE_SETTINGS = [
    "model.encoder_layers=6",
    "model.decoder_layers=6",
    "model.num_heads=8",
    "training.max_minutes=30",
]
PARTS = ("goals", "narrowed", "curves", "table", "scratch", "speed", "cost")


def prune(run: Path, name: str, words: Sequence[str]) -> dict[str, Any]:
    """Return what ``heedful prune --json`` says; a pruning that was broken off begins anew."""
    out = RUNS / name
    if (out / "pruning.json").exists() and not name.startswith(TRY):
        return json.loads((out / "pruning.json").read_text(encoding="utf-8"))
    shutil.rmtree(out, ignore_errors=True)
    answer = heedful("prune", str(run), "--out", str(out), "--json", *words, stdout=subprocess.PIPE)
    return json.loads(answer.stdout)


def row_of(found: dict[str, Any], said: str, **about: Any) -> dict[str, Any]:
    """Return the part of a pruning's report that the tables need."""
    kinds: dict[str, int] = {}
    for each in found["heads"].values():
        kinds[each["kind"]] = kinds.get(each["kind"], 0) + each["after"]
    kept = ("scores", "held", "test", "parameters", "predicted_ceiling", "heads")
    return {
        **about,
        "said": said,
        "kinds": kinds,
        "speedup": relative(found["speed"]),
        **{key: found[key] for key in kept},
        "survivors": found.get("survivors"),
        "threads": default_threads(),
        **environment(),
    }


def run_name(key: str, *, is_try: bool = False) -> str:
    """Return the name of the run that a row stands on."""
    return f"{TRY if is_try else ''}prune-{key.replace('/', '-')}"


def measure(values: dict[str, Any], key: str, run: Path, words: list[str], arguments: Any, **about: Any) -> None:
    """Fill one row, unless it is there."""
    if key in values["rows"]:
        return
    name = run_name(key, is_try=arguments.is_try)
    words = [*words, *(word for setting in arguments.settings for word in ("--set", setting))]
    found = prune(run, name, words)
    about["minutes"] = arguments.minutes or MINUTES[about["part"]]
    row = row_of(found, spell(["prune", str(run), "--out", name, *words]), **about)
    test = row["test"].get("pruned", row["scores"][row["held"]])
    print(f"{key}: {test}", flush=True)
    if not arguments.is_try:
        values["rows"][key] = row
        save(values)


def whole_model(values: dict[str, Any], recipe: str, name: str, settings: Sequence[str] = ()) -> Path:
    """Train the model that is to be pruned, unless it is there, and keep what its training took."""
    run, _ = train(recipe, name, settings)
    values.setdefault("whole", {})[recipe] = facts(run)
    return run


def goals(values: dict[str, Any], arguments: Any) -> None:
    """Prune the Multi30k model to a half and a quarter of its heads."""
    run = whole_model(values, "multi30k-en-de", "multi30k-en-de-1")
    for number in [each for each in ALLOWED if each in arguments.heads]:
        for method in [each for each in LEARNT_METHODS if each in arguments.methods]:
            for seed in arguments.seeds:
                words = [
                    "--keep",
                    str(number),
                    "--method",
                    method,
                    "--seed",
                    str(seed),
                    *minutes_of("goals", arguments),
                ]
                about = {"part": "goals", "method": method, "left": number, "seed": seed}
                measure(values, f"goals/{method}/{number}/{seed}", run, words, arguments, **about)


def narrowed(values: dict[str, Any], arguments: Any) -> None:
    """Prune heads of the Multi30k model, and narrow its feed-forward layers in the same run."""
    run = whole_model(values, "multi30k-en-de", "multi30k-en-de-1")
    for number, fraction in [each for each in NARROWED if each[0] in arguments.heads]:
        words = ["--keep", str(number), "--inner-fraction", f"{fraction:g}", *minutes_of("narrowed", arguments)]
        about = {"part": "narrowed", "method": "gates", "left": number, "seed": 1, "inner": fraction}
        measure(values, f"narrowed/{number}/{fraction:g}", run, words, arguments, **about)


def curves(values: dict[str, Any], arguments: Any) -> None:
    """Prune the Multi30k model by every method, for a shorter time."""
    run = whole_model(values, "multi30k-en-de", "multi30k-en-de-1")
    for number in [each for each in CURVE_HEADS if each in arguments.heads]:
        for method in arguments.methods:
            words = ["--keep", str(number), "--method", method, *minutes_of("curves", arguments)]
            about = {"part": "curves", "method": method, "left": number, "seed": 1}
            measure(values, f"curves/{method}/{number}", run, words, arguments, **about)


def minutes_of(part: str, arguments: Any) -> list[str]:
    """Return the words that limit a pruning's time."""
    return ["--max-minutes", f"{arguments.minutes or MINUTES[part]:g}"]


def voita_table(values: dict[str, Any], arguments: Any) -> None:
    """Prune a 6+6 x 8-head model from all heads to few."""
    run = whole_model(values, "en-es", "en-es-6x8", TABLE_SETTINGS)
    for number in TABLE_HEADS[1:]:
        words = ["--keep", str(number), *minutes_of("table", arguments)]
        about = {"part": "table", "method": "gates", "left": number, "seed": 1}
        measure(values, f"table/gates/{number}/1", run, words, arguments, **about)


def scratch(values: dict[str, Any], arguments: Any) -> None:
    """Train shapes that pruning left from random weights, for as many updates as the whole model."""
    for key, recipe in SCRATCH_OF.items():
        pruned = values["rows"].get(key)
        if pruned is None or pruned["left"] not in arguments.heads or "scratch" in pruned:
            continue
        counts: dict[str, list[int]] = {}
        for each in pruned["heads"].values():
            counts.setdefault(each["kind"], []).append(each["after"])
        shape = ", ".join(f"{kind} = {numbers}" for kind, numbers in counts.items())
        settings = TABLE_SETTINGS if pruned["part"] == "table" else []
        settings = [*settings, f"model.num_heads={{{shape}}}", f"model.head_dim={HEAD_DIM}"]
        whole = values["whole"][recipe]
        settings += [f"training.max_steps={whole['updates']}", "training.max_minutes=null"]
        settings += [f"training.validate_every={whole['updates'] // NUM_VALIDATIONS}", "training.validate_minutes=null"]
        settings += arguments.settings
        name = f"{TRY if arguments.is_try else ''}scratch-{key.replace('/', '-')}"
        run, command = train(recipe, name, settings)
        scores = {name: each["value"] for name, each in evaluate(run, "test")["metrics"].items()}
        print(f"{SCRATCH}, {key}: {scores}", flush=True)
        if not arguments.is_try:
            pruned["scratch"] = {"scores": scores, **facts(run), **environment(), "said": command}
            save(values)


def speed(values: dict[str, Any], arguments: Any) -> None:
    """Measure again how quickly those of the pruned models predict that are still there."""
    import torch

    import heedful
    from heedful.data import read_split
    from heedful.runs.pruning_comparison import compare_speed

    torch.set_num_threads(1)
    for key, row in values["rows"].items():
        run = RUNS / run_name(key)
        if not run.exists() or row["left"] not in arguments.heads:
            continue
        whole = heedful.load(RUNS / ("en-es-6x8" if row["part"] == "table" else "multi30k-en-de-1"))
        dev = read_split(whole.config.task.data, "dev", Path.cwd())
        rates = compare_speed(whole.task, heedful.load(run).task, dev, is_narrowed="inner" in row)
        ratios = relative(rates)
        print(f"{key}: {ratios}", flush=True)
        if not arguments.is_try:
            row.update(speedup=ratios, speed_measured=environment())
            save(values)


def relative(rates: dict[str, dict[Any, float]]) -> dict[str, dict[str, float]]:
    """Return how many times as quick as the whole model each model is, by batch size."""
    return {
        name: {str(size): each / rates["before"][size] for size, each in sizes.items()} for name, sizes in rates.items()
    }


def cost(values: dict[str, Any], arguments: Any) -> None:
    """Measure seconds of the processor for an update without gates and with both learnt kinds."""
    if "cost" in values and not arguments.is_try:
        return
    from itertools import islice

    import torch

    import heedful
    from heedful.core.runtime import compute_in, set_seed
    from heedful.data import read_split
    from heedful.pruning import HardConcreteGates, SubsetGates, find_heads
    from heedful.tasks.rows import group_rows

    torch.set_num_threads(1)
    run, _ = train("multi30k-en-de", "multi30k-en-de-1")
    model = heedful.load(run)
    task = model.task
    rows = [task.encode(each) for each in read_split(model.config.task.data, "dev", Path.cwd())]
    batches = [task.stack(group) for group in islice(group_rows(rows), 12)]
    heads = find_heads(task.model)
    task.model.train()
    exact = SubsetGates(heads, 24)
    exact.advance(24.0)
    kinds = {"no gates": None, "gates": HardConcreteGates(heads), "exact": exact}
    seconds: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(5):
        for name, gates in kinds.items():
            set_seed(1)
            begun = time.process_time()
            for batch in batches:
                with compute_in(task.model, torch.bfloat16):
                    if gates is None:
                        loss = task.loss(batch).total
                    else:
                        with task.bound(gates=heads.gates(gates.sample())):
                            loss = task.loss(batch).total
                        penalty = gates.advance(24.0)
                        loss = loss if penalty is None else loss + penalty
                    loss.backward()
            seconds[name].append((time.process_time() - begun) / len(batches))
    found = {name: statistics.median(each) for name, each in seconds.items()}
    print("seconds of the processor an update:", {name: round(each, 4) for name, each in found.items()}, flush=True)
    if not arguments.is_try:
        values["cost"] = {"seconds": found, **environment()}
        save(values)


def save(values: dict[str, Any]) -> None:
    """Write figures, page and picture."""
    write_results("pruning", values, render(values))
    draw(values)


def main() -> None:
    """Fill ``results/pruning`` row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--heads", nargs="+", type=int, default=[*CURVE_HEADS, *TABLE_HEADS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--minutes", type=float, help=f"of each pruning; absent: {MINUTES}")
    parser.add_argument("--try", dest="is_try", action="store_true", help="write nothing")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="for a try")
    parser.add_argument("--render", action="store_true", help="write page and picture from the figures that are there")
    arguments = parser.parse_args()
    data_folder()
    values = read_results("pruning") or {"rows": {}}
    if arguments.render:
        write_results("pruning", values, render(values))
        draw(values)
        return
    for name, part in (
        ("goals", goals),
        ("narrowed", narrowed),
        ("curves", curves),
        ("table", voita_table),
        ("scratch", scratch),
        ("speed", speed),
        ("cost", cost),
    ):
        if name in arguments.only:
            part(values, arguments)


if __name__ == "__main__":
    main()
