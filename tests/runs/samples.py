"""Small tasks that a model learns in seconds."""

import itertools
from pathlib import Path
from typing import Any

TINY_TRANSFORMER = {
    "kind": "transformer",
    "model_dim": 32,
    "num_heads": 2,
    "inner_dim": 48,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "norm": "pre",
    "positions": "sinusoidal",
    "dropout": 0.0,
}


def words() -> list[str]:
    """Return every word of 1 to 4 of 4 letters, in an order without pattern."""
    found = ["".join(each) for size in range(1, 5) for each in itertools.product("abcd", repeat=size)]
    return sorted(found, key=lambda word: hash_of(word))


def hash_of(word: str) -> int:
    """Return a number that does not change from one Python to the next."""
    return sum(ord(letter) * 7919**place for place, letter in enumerate(word, start=1)) % 10007


def write_tsv(path: Path, rows: list[tuple[str, str]], header: tuple[str, str] = ("source", "target")) -> Path:
    """Write a table of two columns."""
    path.write_text("".join(f"{left}\t{right}\n" for left, right in [header, *rows]), "utf-8")
    return path


def reversal(folder: Path, **training: Any) -> dict[str, Any]:
    """Return the configuration of a run that learns to turn words around."""
    rows = [(word, word[::-1]) for word in words()]
    source = {"kind": "tsv", "source": "source", "target": "target"}
    train, test = write_tsv(folder / "train.tsv", rows[40:]), write_tsv(folder / "test.tsv", rows[:40])
    return {
        "task": "translation",
        "description": "words turned around",
        "data": {
            "train": {**source, "path": str(train)},
            "dev": {**source, "path": str(test)},
            "test": {**source, "path": str(test)},
            "batching": {"batch_tokens": 200},
        },
        "text": {"source": {"kind": "character"}, "is_joint": True, "max_source_length": 12},
        "model": TINY_TRANSFORMER,
        "search": {"kind": "beam", "beam_size": 3},
        "metrics": ["cer", "sequence_error"],
        "training": {
            "max_steps": 280,
            "validate_every": 140,
            "schedule": {"kind": "cosine", "peak": 0.01, "warmup_steps": 20},
            "averaging": {"kind": "ema", "decay": 0.95},
            "has_tensorboard": False,
            **training,
        },
        "runtime": {"dtype": "float32", "threads": 1, "device": "cpu"},
    }
