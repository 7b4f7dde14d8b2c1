"""Small tasks with random weights and ragged batches, one of each kind of Transformer."""

from typing import Any

import torch

from heedful.core.config import parse_config
from heedful.core.types import Batch
from heedful.data.example import Example
from heedful.tasks import TASKS, Task
from heedful.tasks.rows import stack_rows
from heedful.text import Codec, LabelSet

LINES = ["a bad cab", "dab", "bc a cd", "d", "abc dcb", "c a b d", "bad"]
SIZES = {"model_dim": 12, "inner_dim": 16, "num_heads": 3, "dropout": 0.0}
SHORT = {"kind": "greedy", "max_length": 9}
PAIRS = {"kind": "tsv", "path": "x", "source": "s", "target": "t"}
TRANSFORMER = {**SIZES, "kind": "transformer", "encoder_layers": 2, "decoder_layers": 2}
LANGUAGE_MODEL = {**SIZES, "kind": "transformer_language_model", "num_layers": 2}

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "transformer": ("translation", {"data": {"train": PAIRS}, "model": TRANSFORMER, "search": SHORT}),
    "windowed": (
        "translation",
        {
            "data": {"train": PAIRS},
            "model": {**TRANSFORMER, "attention_window": 1, "norm": "pre", "positions": "rotary"},
            "search": SHORT,
        },
    ),
    "language_model": (
        "language_modelling",
        {"data": {"train": {"kind": "lines", "path": "x"}}, "model": LANGUAGE_MODEL, "search": SHORT},
    ),
    "classifier": (
        "classification",
        {
            "data": {"train": {"kind": "tsv", "path": "x", "source": "s", "label": "t"}},
            "model": {"kind": "classifier", "encoder": {**SIZES, "kind": "transformer"}, "pooling": "attention"},
        },
    ),
}


def make_task(name: str) -> tuple[Task, list[Example], Batch]:
    """Return a task, examples for it, and all of them as a batch."""
    kind, values = MODELS[name]
    config = parse_config(TASKS[kind].config_class, {"task": kind, "text": {"source": {"kind": "character"}}, **values})
    examples = [
        Example(
            source=None if kind == "language_modelling" else line,
            target=None if kind == "classification" else line[::-1],
            label=f"{len(line) > 4}" if kind == "classification" else None,
            line=number,
        )
        for number, line in enumerate(LINES, start=1)
    ]
    codec = Codec.train(config.text, [(each.source, each.target) for each in examples])
    labels = LabelSet.collect(each.label for each in examples if each.label) if kind == "classification" else None
    torch.manual_seed(5)
    task = TASKS[kind](config, codec, labels)
    for parameter in task.model.parameters():
        if parameter.ndim == 1:  # biases and norms start at constants that would hide faults
            torch.nn.init.normal_(parameter, mean=parameter.mean().item(), std=0.3)
    task.model.eval()
    return task, examples, stack_rows([task.encode(each) for each in examples])
