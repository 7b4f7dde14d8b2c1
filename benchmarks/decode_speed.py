"""How fast Heedful and Hugging Face's generate translate Multi30k's test2016 with the same trained weights.

Heedful trains the model once (kept in the cache folder); its weights are then loaded into the Marian class, which is
the same function, so both write the same lines at their natural lengths. Greedy and beam 5, lines sorted by length,
each engine at its best batch size and type; repeats go round the engines in turn. A beam may stop early: Heedful when
the outcome is certain, or likely; Hugging Face when it is likely by its own rule (its default), or at the fifth
finished hypothesis ("first 5").

    python benchmarks/decode_speed.py
    python benchmarks/decode_speed.py --train-updates 20 --limit 40 --repeats 1     # a short try; nothing is written
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import sacrebleu

import multi30k
from exchange import SHAPES, Shape, fresh_weights, save_weights
from record import CACHE, environment, footer, table, write_results
from rivals import Process

ENGINES = {
    "Heedful, bf16": ("heedful", "with_heedful.py", "bfloat16", "{}"),
    "Heedful, bf16, likely stop": ("heedful", "with_heedful.py", "bfloat16", '{"early_stop": "likely"}'),
    "Heedful, float32": ("heedful", "with_heedful.py", "float32", "{}"),
    "Hugging Face, float32": ("hf", "with_marian.py", "float32", '{"attention": "sdpa"}'),
    "Hugging Face, bf16": ("hf", "with_marian.py", "bfloat16", '{"attention": "eager"}'),
    "Hugging Face, bf16, first 5": (
        "hf",
        "with_marian.py",
        "bfloat16",
        '{"attention": "eager", "first_finished": true}',
    ),
}
BEAM_ONLY = ("Heedful, bf16, likely stop", "Hugging Face, bf16, first 5")
"""Engines that differ from others in how a beam stops."""


def trained_weights(shape: Shape, num_updates: int, batch_tokens: int, threads: int) -> Path:
    """Return the file of weights trained for so many updates, made at the first call."""
    path = CACHE / f"decode-{shape.name}-{num_updates}.npz"
    if not path.exists():
        print(f"Training {shape.name} for {num_updates} updates (once)...", file=sys.stderr, flush=True)
        start = CACHE / f"decode-{shape.name}-start.npz"
        CACHE.mkdir(parents=True, exist_ok=True)
        save_weights(start, fresh_weights(shape, seed=1))
        trainer = Process(
            *ENGINES["Heedful, bf16"][:2],
            threads=threads,
            log=log_of("training"),
            dtype="bfloat16",
            shape=shape.name,
            weights=start,
            train=multi30k.pairs("train", batch_tokens=batch_tokens),
            held_out=multi30k.pairs("dev", batch_tokens=batch_tokens),
        )
        trainer.ask("train", first=0, last=num_updates)
        print(f"Validation loss {trainer.ask('validate')['loss']:.3f}", file=sys.stderr, flush=True)
        trainer.ask("save", path=str(path))
        trainer.close()
    return path


def log_of(name: str) -> Path:
    """Return where a process may write what it prints."""
    return Path(tempfile.gettempdir()) / f"heedful-benchmark-decode-{name.replace(' ', '-').replace(',', '')}.log"


def measure(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each engine and search, at the engine's best batch size."""
    shape = SHAPES[arguments.shape]
    weights = trained_weights(shape, arguments.train_updates, arguments.batch_tokens, arguments.threads)
    test = multi30k.pairs("test", batch_tokens=arguments.batch_tokens)
    references = multi30k.lines("test", "de")[: arguments.limit]
    tokenizer = multi30k.tokenizer()
    engines = {}
    for name, (environment_name, script, dtype, options) in ENGINES.items():
        words = {"dtype": dtype, "options": options, "shape": shape.name, "weights": weights, "held_out": test}
        engines[name] = Process(environment_name, script, threads=arguments.threads, log=log_of(name), **words)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for search, beam in (("greedy", 1), ("beam 5", 5)):
            running = {name: engine for name, engine in engines.items() if beam > 1 or name not in BEAM_ONLY}
            times: dict[tuple[str, int], list[float]] = {}
            outputs: dict[str, list[list[int]]] = {}
            for _ in range(arguments.repeats):
                for batch_rows in arguments.batch_rows:
                    for name, engine in running.items():
                        path = Path(folder) / "ids.json"
                        answer = engine.ask(
                            "decode", batch_rows=batch_rows, beam=beam, limit=arguments.limit, path=str(path)
                        )
                        times.setdefault((name, batch_rows), []).append(answer["elapsed_s"])
                        outputs[name] = json.loads(path.read_text())
                        print(f"{search} {batch_rows} {name}: {answer['elapsed_s']:.2f} s", file=sys.stderr, flush=True)
            rows += [row_of(search, name, times, outputs, references, tokenizer) for name in running]
    for engine in engines.values():
        engine.close()
    return rows


def row_of(
    search: str,
    name: str,
    times: dict[tuple[str, int], list[float]],
    outputs: dict[str, list[list[int]]],
    references: list[str],
    tokenizer: Any,
) -> dict[str, Any]:
    """Return what one engine gave in one search."""
    best_rows, elapsed_s = min(
        ((rows, min(seconds)) for (engine, rows), seconds in times.items() if engine == name), key=lambda each: each[1]
    )
    lines = tokenizer.decode(outputs[name])
    oracle = outputs["Hugging Face, float32"]
    return {
        "search": search,
        "engine": name,
        "batch_rows": best_rows,
        "elapsed_s": elapsed_s,
        "lines_per_s": len(lines) / elapsed_s,
        "tokens_per_s": sum(len(ids) + 1 for ids in outputs[name]) / elapsed_s,
        "bleu": sacrebleu.corpus_bleu(lines, [references], lowercase=True).score,
        "same_as_hugging_face_float32": sum(a == b for a, b in zip(outputs[name], oracle, strict=True)) / len(oracle),
        "all_elapsed_s": {f"{rows}": seconds for (engine, rows), seconds in times.items() if engine == name},
    }


def render(values: dict[str, Any]) -> str:
    """Return the page of results."""
    shape = SHAPES[values["shape"]]
    header = [
        "search",
        "engine",
        "best batch",
        "lines/s",
        "target tokens/s",
        "times the best rival",
        "BLEU (lower-cased)",
        "lines as Hugging Face float32",
    ]
    rows = []
    for row in values["rows"]:
        rival = max(
            each["lines_per_s"]
            for each in values["rows"]
            if each["search"] == row["search"] and each["engine"].startswith("Hugging Face")
        )
        rows.append(
            [row["search"], row["engine"], row["batch_rows"], round(row["lines_per_s"], 1), round(row["tokens_per_s"]),
             f"{row['lines_per_s'] / rival:.2f}", round(row["bleu"], 1), f"{row['same_as_hugging_face_float32']:.1%}"]
        )  # fmt: skip
    return (
        "# Decoding speed\n\n"
        f"test2016 of Multi30k ({values['lines']:,} lines), {shape.name} ({shape.num_layers}+{shape.num_layers} "
        f"layers), the same trained weights in both libraries, {values['threads']} threads, lines sorted by length, "
        f"length penalty 1, the fastest of {values['repeats']} repeats at each engine's best batch size.\n\n"
        + table(header, rows)
        + footer(values["environment"])
    )


def main() -> None:
    """Measure and write ``results/decode_speed``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="256-wide", choices=sorted(SHAPES))
    parser.add_argument("--train-updates", type=int, default=1500)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--batch-rows", type=int, nargs="+", default=[16, 64, 128, 256])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=int, help="first lines only; results are printed, not written")
    arguments = parser.parse_args()
    rows = measure(arguments)
    values = {
        "environment": environment(),
        "shape": arguments.shape,
        "train_updates": arguments.train_updates,
        "threads": arguments.threads,
        "repeats": arguments.repeats,
        "lines": len(multi30k.lines("test", "de")[: arguments.limit]),
        "rows": rows,
    }
    text = render(values)
    print(text)
    if arguments.limit is None:
        write_results("decode_speed", values, text)


if __name__ == "__main__":
    main()
