"""Is attention an explanation? The four checks on a classifier, and how accounts agree for trained models. Resumable.

The checks (Wiegreffe and Pinter 2019) train the shipped recipe ``sentiment`` and its variants, 30 small models, about
half an hour on two cores. Agreement is measured on runs that other benchmarks have trained; one that is not there is
left out until it is.

    python benchmarks/explanation.py
    python benchmarks/explanation.py --only checks --set training.max_epochs=1      # a short try; nothing is written
"""

import argparse
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from command_line import RUNS, heedful, spell
from heedful.data.opening import numbered_lines
from record import CACHE, data_folder, environment, footer, read_results, table, write_results

SEEDS = 5
LINES = 100
FINISHED_BY = {
    "multi30k-en-de-1": "Transformer, English-German captions",
    "multi30k-en-de-recurrent-1": "GRU with additive attention, English-German captions",
    "alignment-transformer": "Transformer, English-French debates",
    "alignment-recurrent": "GRU with additive attention, English-French debates",
}
"""Runs of `quality.py` and `alignment.py`."""


def checks(settings: list[str]) -> dict[str, Any]:
    """Carry out the four checks."""
    out = CACHE / "runs" / ("try-explanation" if settings else "explanation")
    if settings:
        subprocess.run(["rm", "-rf", str(out)], check=True)
    flags = [word for setting in settings for word in ("--set", setting)]
    words = ["explain", "sentiment", "--out", str(out), "--seeds", str(SEEDS), "--json", *flags]
    answer = heedful(*words, stdout=subprocess.PIPE)
    return {"said": spell(words), "found": json.loads(answer.stdout), **environment()}


def agreement(run: Path, source: str) -> dict[str, Any]:
    """Compare the accounts of a trained model over test lines."""
    words = ["explain", str(run), "-", "--lines", str(LINES), "--json"]
    answer = heedful(*words, input=source, stdout=subprocess.PIPE)
    return {"said": spell(words), "found": json.loads(answer.stdout), **environment()}


def test_lines(name: str) -> str:
    """Return test sources and targets for a run, tab-separated."""
    if name.startswith("multi30k"):
        sides = [data_folder("multi30k", f"test_2016_flickr.{language}.gz") for language in ("en", "de")]
        pairs = zip(*([line for _, line in numbered_lines(str(side))] for side in sides), strict=True)
    elif name.startswith("alignment"):
        path = data_folder("word-alignment", "hansards.en-fr.tsv.gz")
        pairs = (tuple(line.split("\t")[2:4]) for _, line in numbered_lines(str(path)) if line.startswith("test"))
    else:
        path = data_folder("classification", "sst2.tsv.gz")
        pairs = ((line.split("\t")[2], "") for _, line in numbered_lines(str(path)) if line.startswith("test"))
    rows = [source + ("\t" + target if target else "") for source, target in pairs]
    return "".join(f"{row}\n" for row in rows[:: max(1, len(rows) // LINES)][:LINES])


def render(values: dict[str, Any]) -> str:
    """Return the page of results."""
    parts = ["# Is attention an explanation?\n"]
    if "checks" in values:
        found = values["checks"]["found"]
        rows = [
            [each["name"], f"{each['score']:.2f}", _number(each["outputs_apart"]), _number(each["weights_apart"])]
            for each in found["trials"]
        ]
        title = f"## The four checks: sentiment of sentences (SST-2, {found['lines']:,} test sentences)\n"
        parts += [title, *(f"- {each}" for each in found["conclusions"]), ""]
        parts += [table(["model", found["metric"], "outputs apart (TVD)", "weights apart (JSD, nats)"], rows)]
        parts += [f"`{values['checks']['said']}`\n", footer(values["checks"])]
    for name, part in values.get("agreement", {}).items():
        pairs = {(each["one"], each["other"]): each for each in part["found"]["pairs"]}
        methods = list(dict.fromkeys(name for pair in pairs for name in pair))
        rows = [
            [row, *(_tau(pairs[column, row]) if (column, row) in pairs else "" for column in methods[:-1])]
            for row in methods[1:]
        ]
        parts.append(f"## How accounts agree: {part['title']}\n\nKendall's tau-b and its 95 % interval over lines.\n")
        parts += [table(["", *methods[:-1]], rows), f"`{part['said']}` ({part['found']['attention']})\n", footer(part)]
    return "\n".join(parts)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _tau(each: dict[str, Any]) -> str:
    return f"{each['tau']:.2f} [{each['low']:.2f}, {each['high']:.2f}]"


def main() -> None:
    """Fill ``results/explanation`` part by part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ["checks", "agreement"]
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--again", action="store_true", help="do anew what stands in the table")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="for a try")
    parser.add_argument("--render", action="store_true", help="write the page again from the figures that are there")
    arguments = parser.parse_args()
    data_folder()
    values = read_results("explanation")

    def keep(place: dict[str, Any], key: str, make: Callable[[], dict[str, Any]]) -> None:
        if arguments.render or (key in place and not arguments.again and not arguments.settings):
            return
        found = make()
        print(f"{key}: {found['found'].get('conclusions', found['found'].get('pairs'))}", flush=True)
        if not arguments.settings:
            place[key] = found
            write_results("explanation", values, render(values))

    if "checks" in arguments.only:
        keep(values, "checks", lambda: checks(arguments.settings))
    if "agreement" in arguments.only and not arguments.settings:
        runs = {RUNS / name: title for name, title in FINISHED_BY.items()}
        runs[RUNS / "explanation" / "attention-1"] = "LSTM with one attention, sentiment"
        for run, title in runs.items():
            if (run.with_suffix(".done")).exists() or (run / "finished").exists():
                key = run.name
                lines = test_lines(key)
                keep(
                    values.setdefault("agreement", {}),
                    key,
                    lambda run=run, lines=lines, title=title: {"title": title, **agreement(run, lines)},
                )
    if arguments.render:
        write_results("explanation", values, render(values))


if __name__ == "__main__":
    main()
