"""Two synthetic tasks that ask a model to bring back what it read, at lengths it was and was not trained on.

- ``reverse``: a row of letters, to be written backwards.
- ``lookup``: pairs of a key and its value, then one of the keys; its value is to be written.

Lengths are source tokens, 10 to 400. Training sees 5 to 100: rows to be reversed are drawn evenly on the scale of
logarithms, for short ones are learnt first; those to look up in evenly, for only in long ones does a guess at the
values that are there lose much against comparing keys.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LENGTHS = (10, 20, 50, 100, 150, 200, 300, 400)
TRAINED = (5, 100)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
NUM_KEYS = 200


def reverse(generator: random.Random, length: int) -> tuple[str, str]:
    """Return a row of letters and the same row backwards."""
    row = generator.choices(LETTERS, k=length)
    return " ".join(row), " ".join(reversed(row))


def lookup(generator: random.Random, length: int) -> tuple[str, str]:
    """Return keys with their values and a key to look up, ``length`` tokens in all, and that key's value."""
    keys = generator.sample(range(NUM_KEYS), (length - 1) // 2)
    values = generator.choices(LETTERS, k=len(keys))
    asked = generator.randrange(len(keys))
    pairs = " ".join(f"{key} {value}" for key, value in zip(keys, values, strict=True))
    return f"{pairs} {keys[asked]}", values[asked]


def even(generator: random.Random) -> int:
    """Return a length to train on, all equally probable."""
    return generator.randint(*TRAINED)


def even_in_logarithms(generator: random.Random) -> int:
    """Return a length to train on; as many lie between 5 and 10 as between 10 and 20."""
    return round(math.exp(generator.uniform(*map(math.log, TRAINED))))


@dataclass(frozen=True)
class Task:
    """How rows are made, and how long those to train on are."""

    make: Callable[[random.Random, int], tuple[str, str]]
    length: Callable[[random.Random], int]


TASKS = {"reverse": Task(reverse, even_in_logarithms), "lookup": Task(lookup, even)}


def write(task: str, folder: Path, *, num_train: int = 50_000, num_test: int = 200, seed: int = 1) -> None:
    """Write ``train.tsv``, ``dev.tsv`` and ``test.tsv`` (the test with a column for the length)."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = random.Random(f"{task} {seed}")
    make, length_of = TASKS[task].make, TASKS[task].length
    for split, count in (("train", num_train), ("dev", 500)):
        lengths = [length_of(generator) for _ in range(count)]
        rows = [make(generator, length) for length in lengths]
        _write(folder / f"{split}.tsv", "source\ttarget", ["\t".join(row) for row in rows])
    rows = [(str(length), *make(generator, length)) for length in LENGTHS for _ in range(num_test)]
    _write(folder / "test.tsv", "length\tsource\ttarget", ["\t".join(row) for row in rows])


def _write(path: Path, header: str, lines: list[str]) -> None:
    fresh = path.with_suffix(".fresh")
    fresh.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    fresh.replace(path)
