"""How fast Heedful and other libraries train one architecture on the same Multi30k batches, in turn, in one run.

Every contender is a process in its own environment, begins with the same weights (checked: the same held-out loss
before the first update) and makes the same updates on the same length-grouped batches; rounds of updates go round the
contenders in rotating order, so that a slow minute of the machine falls on all alike. Tokens are target tokens, padding
not counted, end token counted. For a library with several attention implementations a short trial picks the fastest.

    python benchmarks/train_speed.py                                     # both sizes, an epoch each (about 20 minutes)
    python benchmarks/train_speed.py --shapes 128-wide --max-updates 20  # a short try; nothing is written
"""

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import multi30k
from exchange import SHAPES, Pairs, Shape, fresh_weights, save_weights
from record import environment, footer, table, write_results
from rivals import Process


@dataclass(frozen=True)
class Entry:
    """A contender: environment, script, type, and the options among which a trial chooses."""

    environment: str
    script: str
    dtype: str
    options: tuple[str, ...] = ("{}",)


ATTENTIONS = ('{"attention": "eager"}', '{"attention": "sdpa"}')
ENTRIES = {
    "Heedful, bf16": Entry("heedful", "with_heedful.py", "bfloat16"),
    "Heedful, float32": Entry("heedful", "with_heedful.py", "float32"),
    "Hugging Face Marian, float32": Entry("hf", "with_marian.py", "float32", ATTENTIONS),
    "Hugging Face Marian, bf16 autocast": Entry("hf", "with_marian.py", "bfloat16", ATTENTIONS),
    "JoeyNMT, float32": Entry("joey", "with_joeynmt.py", "float32"),
    "JoeyNMT, bf16 autocast": Entry("joey", "with_joeynmt.py", "bfloat16"),
}


@dataclass
class Runner:
    """A contender at work, and what its rounds gave."""

    name: str
    process: Process
    option: str
    initial_loss: float = 0.0
    final_loss: float = 0.0
    elapsed_s: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def tokens_per_s(self) -> float:
        """Return target tokens per second over all rounds."""
        return sum(self.tokens) / sum(self.elapsed_s)

    def spread(self) -> tuple[float, float]:
        """Return the speeds of the slowest and the fastest round."""
        speeds = [tokens / elapsed_s for tokens, elapsed_s in zip(self.tokens, self.elapsed_s, strict=True)]
        return min(speeds), max(speeds)


def bf16_peak_flops(threads: int) -> float:
    """Return the bf16 operations per second of the best of several large matrix products."""
    torch.set_num_threads(threads)
    best = 0.0
    for size in (1024, 2048, 4096):
        left, right = (torch.randn(size, size).bfloat16() for _ in range(2))
        for _ in range(6):
            started = time.perf_counter()
            left @ right
            best = max(best, 2 * size**3 / (time.perf_counter() - started))
    return best


def start(name: str, entry: Entry, words: dict[str, Any], threads: int, trial_updates: int) -> Runner:
    """Start a contender at the option that a short trial finds fastest, warm and with fresh weights."""
    tried: list[tuple[float, Runner]] = []
    for option in entry.options:
        log = Path(tempfile.gettempdir()) / f"heedful-benchmark-{name.replace(' ', '-').replace(',', '')}.log"
        process = Process(
            entry.environment, entry.script, threads=threads, log=log, dtype=entry.dtype, options=option, **words
        )
        process.ask("train", first=0, last=2)
        elapsed_s = process.ask("train", first=2, last=2 + trial_updates)["elapsed_s"]
        tried.append((elapsed_s, Runner(name, process, option)))
    tried.sort(key=lambda each: each[0])
    for _, slower in tried[1:]:
        slower.process.close()
    runner = tried[0][1]
    runner.process.ask("load", path=str(words["weights"]))
    runner.initial_loss = runner.process.ask("validate")["loss"]
    return runner


def measure(shape: Shape, arguments: argparse.Namespace, peak: float) -> dict[str, Any]:
    """Let all contenders train one shape; return its rows."""
    train = multi30k.pairs("train", batch_tokens=arguments.batch_tokens)
    pairs = Pairs.load(train)
    num_updates = min(arguments.max_updates or 10**9, arguments.epochs * len(pairs.batches))
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "weights.npz"
        save_weights(weights, fresh_weights(shape, seed=1))
        words = {
            "shape": shape.name,
            "weights": weights,
            "train": train,
            "held_out": multi30k.pairs("dev", batch_tokens=arguments.batch_tokens),
        }
        runners = []
        for name in arguments.contenders:
            print(f"{shape.name}: starting {name}", file=sys.stderr, flush=True)
            runners.append(start(name, ENTRIES[name], words, arguments.threads, arguments.trial_updates))
        losses = [runner.initial_loss for runner in runners]
        if max(losses) - min(losses) > 1e-3:
            sys.exit(f"The contenders do not compute the same function before training: {losses}.")
        rounds = take_turns(runners, pairs, num_updates, arguments.rounds)
        rows = [finish(runner, shape, rounds, peak) for runner in runners]
    return {"shape": shape.name, "parameters": shape.num_parameters(), "updates": num_updates, "rows": rows}


def take_turns(runners: list[Runner], pairs: Pairs, num_updates: int, num_rounds: int) -> list[tuple[int, ...]]:
    """Make the updates in rounds, each round begun by another contender; return each round's counts."""
    bounds = [num_updates * place // num_rounds for place in range(num_rounds + 1)]
    all_counts = []
    for place, (first, last) in enumerate(itertools.pairwise(bounds)):
        if first == last:
            continue
        counts = pairs.counts(first, last)
        all_counts.append(counts)
        shift = place % len(runners)
        for runner in runners[shift:] + runners[:shift]:
            runner.elapsed_s.append(runner.process.ask("train", first=first, last=last)["elapsed_s"])
            runner.tokens.append(counts[1])
        speeds = ", ".join(f"{runner.name} {runner.tokens_per_s():,.0f}" for runner in runners)
        print(f"update {last} of {num_updates}: target tokens/s {speeds}", file=sys.stderr, flush=True)
    return all_counts


def finish(runner: Runner, shape: Shape, rounds: list[tuple[int, ...]], peak: float) -> dict[str, Any]:
    """Validate and close a contender; return its row."""
    runner.final_loss = runner.process.ask("validate")["loss"]
    memory = runner.process.close()["peak_memory_mib"]
    flops = sum(shape.flops_of(*counts) for counts in rounds)
    slowest, fastest = runner.spread()
    return {
        "contender": runner.name,
        "version": runner.process.greeting["version"],
        "option": runner.option,
        "tokens_per_s": runner.tokens_per_s(),
        "slowest_round": slowest,
        "fastest_round": fastest,
        "median_round": statistics.median(t / s for t, s in zip(runner.tokens, runner.elapsed_s, strict=True)),
        "tokens": sum(runner.tokens),
        "elapsed_s": sum(runner.elapsed_s),
        "initial_loss": runner.initial_loss,
        "validation_loss": runner.final_loss,
        "peak_memory_mib": memory,
        "share_of_bf16_peak": flops / sum(runner.elapsed_s) / peak,
    }


def render(values: dict[str, Any]) -> str:
    """Return the page of results."""
    parts = [
        "# Training speed\n",
        "One architecture (post-norm Transformer encoder-decoder, tied embeddings, dropout 0.1 everywhere, label "
        "smoothing 0.1, Adam) on the same Multi30k batches of at most "
        f"{values['batch_tokens']:,} positions, {values['threads']} threads, contenders in turn in one run. Tokens are "
        "target tokens, padding not counted, end token counted. The validation loss (nats per target token, smoothing "
        "off) is after equal updates from equal weights. Share of peak: operations of the formula in `exchange.py` on "
        "real tokens, against the best bf16 matrix product measured in the same run "
        f"({values['bf16_peak_gflops']:,.0f} GFLOP/s).\n",
    ]
    for part in values["shapes"]:
        shape = SHAPES[part["shape"]]
        parts.append(
            f"## {shape.name}: {shape.num_layers}+{shape.num_layers} layers, {shape.inner_dim} inner, "
            f"{shape.num_heads} heads, {part['parameters']:,} parameters, {part['updates']} updates\n"
        )
        best = max(row["tokens_per_s"] for row in part["rows"])
        header = [
            "",
            "target tokens/s",
            "slowest to fastest round",
            "of the best",
            "validation loss",
            "peak memory, MiB",
            "share of bf16 peak",
        ]
        rows = [
            [
                f"{row['contender']} ({row['version']})",
                round(row["tokens_per_s"]),
                f"{row['slowest_round']:,.0f} to {row['fastest_round']:,.0f}",
                f"{row['tokens_per_s'] / best:.2f}",
                f"{row['validation_loss']:.3f}",
                round(row["peak_memory_mib"]),
                f"{row['share_of_bf16_peak']:.1%}",
            ]
            for row in sorted(part["rows"], key=lambda row: -row["tokens_per_s"])
        ]
        parts.append(table(header, rows))
        parts.append(summary(part["rows"]))
    return "\n".join(parts) + footer(values["environment"])


def summary(rows: list[dict[str, Any]]) -> str:
    """Say how many times faster Heedful is, and whether the losses agree."""
    own = [row for row in rows if row["contender"].startswith("Heedful")]
    others = [row for row in rows if row not in own]
    if not own or not others:
        return ""
    best = max(own, key=lambda row: row["tokens_per_s"])
    lines = []
    for label, chosen in (
        ("float32 rival", [row for row in others if "float32" in row["contender"]]),
        ("rival at any setting", others),
    ):
        if chosen:
            rival = max(chosen, key=lambda row: row["tokens_per_s"])
            times = best["tokens_per_s"] / rival["tokens_per_s"]
            lines.append(f"{best['contender']}: {times:.2f} times the best {label} ({rival['contender']}).")
    losses = [row["validation_loss"] for row in rows]
    lines.append(f"Validation losses lie within {max(losses) - min(losses):.3f} nat.")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write ``results/train_speed``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", default=["256-wide", "128-wide"], choices=sorted(SHAPES))
    parser.add_argument("--contenders", nargs="+", default=list(ENTRIES)[:-1], choices=list(ENTRIES), metavar="NAME")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--max-updates", type=int, help="stop early; results are printed, not written")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--trial-updates", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    peak = bf16_peak_flops(arguments.threads)
    shapes = [measure(SHAPES[name], arguments, peak) for name in arguments.shapes]
    values = {
        "environment": environment(),
        "threads": arguments.threads,
        "batch_tokens": arguments.batch_tokens,
        "bf16_peak_gflops": peak / 1e9,
        "shapes": shapes,
    }
    text = render(values)
    print(text)
    if not arguments.max_updates:
        write_results("train_speed", values, text)


if __name__ == "__main__":
    main()
