"""The same line gives the same text, alone or in any company.

Predicts test lines one by one, in batches of 8 and of 64, and shuffled among garbage lines, and counts the lines whose
text differs. A line whose two best hypotheses differ by less than 1e-4 may flip and is counted: 0 of 1,000 is expected.

    python benchmarks/independence.py RUN                    # lines: the test sources of the run's configuration
    python benchmarks/independence.py RUN --lines 200
    python benchmarks/independence.py RUN --dtype bfloat16
"""

import argparse
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from command_line import train
from record import environment, footer, read_results, table, write_results


def garbage(generator: random.Random, count: int) -> list[str]:
    """Return lines that no model was made for: blank, long, repeated, from other scripts, with control characters."""
    kinds = [
        lambda: "",
        lambda: "x" * generator.randint(1, 2000),
        lambda: " ".join(generator.choices("abcdefghij", k=generator.randint(1, 300))),
        lambda: "".join(chr(generator.randint(0x4E00, 0x9FFF)) for _ in range(generator.randint(1, 80))),
        lambda: "".join(
            chr(generator.choice([9, 11, 12, 13, 27, 127, 0x2028])) for _ in range(generator.randint(1, 9))
        ),
        lambda: "\U0001f600" * generator.randint(1, 40),
        lambda: "the " * generator.randint(1, 200),
    ]
    return [generator.choice(kinds)() for _ in range(count)]


def predict(model: Any, lines: Iterable[str], max_rows: int) -> list[str]:
    """Return the texts of the lines."""
    return [each.text for each in model.predict(lines, max_rows=max_rows)]


def one_by_one(model: Any, lines: list[str]) -> list[str]:
    """Predict every line in a call of its own."""
    return [next(iter(model.predict([line]))).text for line in lines]


def among_garbage(model: Any, lines: list[str], seed: int) -> list[str]:
    """Predict the lines shuffled among as many garbage lines; return their texts in the lines' own order."""
    generator = random.Random(seed)
    mixed = [(place, line) for place, line in enumerate(lines)]
    mixed += [(-1, line) for line in garbage(generator, len(lines))]
    generator.shuffle(mixed)
    texts = predict(model, (line for _, line in mixed), 64)
    if len(texts) != len(mixed):
        sys.exit(f"{len(mixed)} lines went in, {len(texts)} came out.")
    found = {place: text for (place, _), text in zip(mixed, texts, strict=True)}
    return [found[place] for place in range(len(lines))]


def main() -> None:
    """Count the lines that differ and write ``results/independence``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="absent: that of quality.py, trained unless it is there")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    arguments = parser.parse_args()

    import heedful
    from heedful.data.prepare import read_split

    run = arguments.run or train("multi30k-en-de", "multi30k-en-de-1")[0]
    model = heedful.load(run, settings=[f"runtime.dtype={arguments.dtype}"])
    examples = read_split(model.config.task.data, "test", Path.cwd())
    lines = [each.source for _, each in zip(range(arguments.lines), examples, strict=False)]
    alone = one_by_one(model, lines)
    rows: list[list[object]] = [["one by one", len(lines), 0]]
    for name, texts in {
        "batches of 8": predict(model, lines, 8),
        "batches of 64": predict(model, lines, 64),
        "shuffled among as many garbage lines": among_garbage(model, lines, seed=1),
    }.items():
        rows.append([name, len(lines), sum(a != b for a, b in zip(alone, texts, strict=True))])
    values = read_results("independence") or {"runs": {}}
    key = f"{run.name}, {arguments.dtype}"
    runs = values["runs"]
    runs[key] = {"rows": rows, "environment": environment()}
    header = ["company", "lines", "lines that differ from one by one"]
    parts = [
        f"\n## {name}\n\n{table(header, part['rows'])}{footer(part['environment'])}" for name, part in runs.items()
    ]
    text = "# Independence of neighbours\n" + "".join(parts)
    print(text)
    if len(lines) >= 1000:
        write_results("independence", values, text)
    if any(row[2] > (1 if arguments.dtype == "float32" else len(lines) // 100) for row in rows):
        sys.exit("Lines depend on their company.")


if __name__ == "__main__":
    main()
