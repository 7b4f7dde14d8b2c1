"""Role cards: the baseline that every tool can be checked by, and how long the cards of a large model take.

The self-check counts, on the English PUD trees, how often the one offset that is right most often leads from a
dependent to its head. Speed is measured on the same 1,000 sentences with random weights, which take as long as trained
ones: 6 + 6 layers with 8 heads and the sizes of the en-es recipe or of the published base model. At last the trained
Transformers of `quality.py`, `alignment.py` and `pruning.py`, as far as they are there, read the English PUD sentences
and are compared: how many heads look one back and one ahead, what follows syntax, where the rare-token head sits.

    python benchmarks/heads.py                 # all three
    python benchmarks/heads.py --only check
    python benchmarks/heads.py --only speed --threads 1
    python benchmarks/heads.py --only trained
"""

import argparse
import csv
import gzip
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from command_line import RUNS, heedful, spell
from record import data_folder, environment, footer, read_results, table, write_results

EXPECTED = {"nsubj": (33.7, 1632), "obj": (39.1, 877), "amod": (78.4, 1358), "advmod": (49.2, 847)}
"""Counted with other code, dependent to head, subtypes merged: percent and cases."""

SIZES = {"en-es recipe": (256, 1024), "base (Vaswani et al. 2017)": (512, 2048)}
TRAINED = {
    "multi30k-en-de-1": "English to German, captions",
    "en-es-1": "English to Spanish, everyday sentences",
    "en-es-6x8": "the same, 6 + 6 layers",
    "alignment-transformer": "English to French, debates",
}
"""Runs that other benchmarks leave behind."""

LAYERS, HEADS = 6, 8
TOKENIZER_LINES = 20_000
PARTS = ("check", "speed", "trained")


def treebank() -> Path:
    """Return the English PUD trees."""
    return data_folder("ud", "en_pud-ud-test.conllu.gz")


def self_check() -> list[list[Any]]:
    """Return for each relation what comes out and what should; end where they differ."""
    from heedful.analysis.heads_questions import CaseBook, bucket_of
    from heedful.analysis.treebank import read_treebank

    books = {relation: CaseBook() for relation in EXPECTED}
    for tree in read_treebank(treebank()):
        for word in tree.words:
            if word.relation in books and word.head is not None:
                offset = tree.words[word.head].unit - word.unit
                books[word.relation].add(bucket_of(abs(offset)), {offset}, 1 / len(tree.units))
    rows = []
    for relation, (percent, cases) in EXPECTED.items():
        offset, hits = books[relation].baseline()
        found = int(books[relation].num_cases.sum())
        share = 100 * sum(hits) / found
        rows.append([relation, offset, share, percent, found, cases])
        if found != cases or round(share, 1) != percent:
            sys.exit(f"{relation}: {share:.1f} % of {found} cases, but {percent} % of {cases} were expected.")
    return rows


def random_task(model_dim: int, inner_dim: int) -> Any:
    """Return the task of the en-es recipe with 6 + 6 layers of 8 heads, and random weights."""
    import torch

    from heedful.runs import read_run
    from heedful.tasks import task_class
    from heedful.text import Codec

    settings = {
        "model.model_dim": model_dim,
        "model.inner_dim": inner_dim,
        "model.num_heads": HEADS,
        "model.encoder_layers": LAYERS,
        "model.decoder_layers": LAYERS,
    }
    config = read_run("en-es", [f"{key}={value}" for key, value in settings.items()]).task
    with gzip.open(data_folder("tatoeba-en-es", "pairs.tsv.gz"), "rt", encoding="utf-8", newline="\n") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        pairs = [(row["en"], row["es"]) for row, _ in zip(rows, range(TOKENIZER_LINES), strict=False)]
    torch.manual_seed(1)
    return task_class(config)(config, Codec.train(config.text, pairs))


def measure(model_dim: int, inner_dim: int) -> dict[str, Any]:
    """Return what the cards of all heads over the PUD sentences take, trees and page included."""
    import torch

    from heedful.analysis.heads import Line, survey_heads
    from heedful.analysis.heads_summary import HeadsReport
    from heedful.analysis.treebank import read_treebank
    from heedful.runs import write_heads_page

    task = random_task(model_dim, inner_dim)
    with gzip.open(data_folder("ud", "pud-parallel.en-de-es.tsv.gz"), "rt", encoding="utf-8", newline="\n") as file:
        targets = [row["es"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    wall, cpu = time.perf_counter(), time.process_time()
    trees = read_treebank(treebank())
    lines = [Line(tree.text, target, tree) for tree, target in zip(trees, targets, strict=True)]
    frequencies = torch.zeros(task.codec.source_size, dtype=torch.long)
    for line in lines:
        frequencies += torch.bincount(torch.tensor(task.codec.encode_source(line.source)), minlength=len(frequencies))
    cards = survey_heads(task, lines, frequencies=frequencies)
    report = HeadsReport("random", "random", len(lines), "given", "the text itself", 50, tuple(cards))
    page = Path("/tmp") / "heedful-heads-benchmark.html"
    write_heads_page([report], page)
    size = page.stat().st_size
    page.unlink()
    return {
        "heads": len(cards),
        "lines": len(lines),
        "threads": torch.get_num_threads(),
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "page_mb": size / 1e6,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def compare_trained() -> dict[str, Any]:
    """Return the summaries of the role cards of every trained Transformer that there is."""
    found = [run for name in TRAINED if (run := RUNS / name).with_suffix(".done").exists()]
    if not found:
        sys.exit("No trained model is there yet. Run `python benchmarks/quality.py --only multi30k-en-de en-es` first.")
    words = ["heads", *map(str, found), "--treebank", str(treebank()), "--json", "-"]
    bundles = json.loads(heedful(*words, stdout=subprocess.PIPE).stdout)["bundles"]
    summaries = {run.name: each["summary"] for run, each in zip(found, bundles, strict=True)}
    return {"rows": summaries, "said": spell(words), "environment": environment()}


def main() -> None:
    """Run what was asked for and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    if arguments.threads:
        import torch

        torch.set_num_threads(arguments.threads)
    results = read_results("heads")
    chosen = [arguments.only] if arguments.only else PARTS
    if "check" in chosen:
        results["check"] = {"rows": self_check(), "environment": environment()}
    if "speed" in chosen:
        speed = {name: measure(*sizes) for name, sizes in SIZES.items()}
        results["speed"] = {"rows": speed, "environment": environment()}
    if "trained" in chosen:
        results["trained"] = compare_trained()
    write_results("heads", results, render(results))
    print(render(results))


def render(results: dict[str, Any]) -> str:
    """Return the tables that were made so far."""
    parts = ["# Role cards for heads\n"]
    if "check" in results:
        header = ["relation", "best offset", "baseline, %", "expected, %", "cases", "expected cases"]
        parts += ["## Baseline on the English PUD trees, dependent to head\n", table(header, results["check"]["rows"])]
        parts.append(footer(results["check"]["environment"]))
    if "speed" in results:
        header = ["model", "heads", "sentences", "threads", "wall, s", "CPU, s", "page, MB", "peak memory, GiB"]
        rows = [[name, *values.values()] for name, values in results["speed"]["rows"].items()]
        parts += [f"\n## {LAYERS} + {LAYERS} layers, {HEADS} heads, random weights\n", table(header, rows)]
        if any(each["wall_s"] > 1.5 * each["cpu_s"] for each in results["speed"]["rows"].values()):
            parts.append(
                "\nOther programs held the machine meanwhile: the CPU's seconds count, those of the wall do not.\n"
            )
        parts.append(footer(results["speed"]["environment"]))
    if "trained" in results:
        summaries = results["trained"]["rows"]
        names = list(next(iter(summaries.values())))
        rows = [[name, *(summary[name] for summary in summaries.values())] for name in names]
        title = "\n## Trained models over the 1,000 English PUD sentences; targets are their own answers\n"
        parts += [title, table(["", *(TRAINED[name] for name in summaries)], rows)]
        parts += [f"\n`{results['trained']['said']}`\n", footer(results["trained"]["environment"])]
    return "\n".join(parts)


if __name__ == "__main__":
    main()
