"""One contender as a process of its own: it reads commands as JSON lines on stdin and answers on stdout.

A benchmark starts each contender with the Python of that library's environment, so that their dependencies never meet,
and gives them work in turn. This file needs torch and numpy alone.

Commands::

    {"do": "train", "first": 0, "last": 20}    updates on batches 0 .. 19, in turn
    {"do": "validate"}                         loss on the held-out pairs, smoothing and dropout off
    {"do": "save", "path": "weights.npz"}      weights under their neutral names
    {"do": "decode", "batch_rows": 64, "beam": 5, "limit": 100, "path": "ids.json"}
    {"do": "quit"}
"""

import argparse
import json
import os
import resource
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import torch

from exchange import PAD, SHAPES, Pairs, Shape, Weights, load_weights, save_weights

SMOOTHING = 0.1
BETAS, EPSILON = (0.9, 0.98), 1e-9


def learning_rate(update: int, peak: float = 1e-3, warmup: int = 200) -> float:
    """Return the rate of an update, counted from 1: linear warm-up, then the inverse square root."""
    return peak * min(update / warmup, (warmup / update) ** 0.5)


class Contender(ABC):
    """A library's model with that library's way to train and decode it."""

    def __init__(self, shape: Shape, dtype: str, options: dict[str, Any]) -> None:
        self.shape = shape
        self.dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[dtype]
        self.options = options
        self.num_updates = 0

    @property
    @abstractmethod
    def version(self) -> str:
        """The library and its version."""

    @abstractmethod
    def load(self, weights: Weights) -> None:
        """Take these weights and forget everything learned."""

    @abstractmethod
    def weights(self) -> Weights:
        """Return the weights under their neutral names."""

    @abstractmethod
    def update(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Make one update on a padded batch, source ``B S`` and target ``B T``."""

    @abstractmethod
    def loss(self, source: torch.Tensor, target: torch.Tensor) -> float:
        """Return the sum over real target positions of the cross-entropy in nats, smoothing and dropout off."""

    def decode(self, source: torch.Tensor, beam: int, max_length: int) -> list[list[int]]:
        """Return the best hypothesis of each row, without BOS and EOS."""
        raise NotImplementedError

    def train(self, pairs: Pairs, first: int, last: int) -> None:
        """Make one update on each of the batches from first to before last."""
        for index in range(first, last):
            source, target = pairs.padded(index % len(pairs.batches))
            self.num_updates += 1
            self.update(torch.from_numpy(source), torch.from_numpy(target))


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give every group of the optimiser this rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def _train(contender: Contender, pairs: Pairs, command: dict[str, Any]) -> dict[str, Any]:
    started, cpu_started = time.perf_counter(), time.process_time()
    contender.train(pairs, command["first"], command["last"])
    return {"elapsed_s": time.perf_counter() - started, "cpu_s": time.process_time() - cpu_started}


def _validate(contender: Contender, pairs: Pairs) -> dict[str, Any]:
    nats, count = 0.0, 0
    for index in range(len(pairs.batches)):
        source, target = pairs.padded(index)
        nats += contender.loss(torch.from_numpy(source), torch.from_numpy(target))
        count += int((target[:, 1:] != PAD).sum())
    return {"loss": nats / count, "tokens": count}


def _decode(contender: Contender, pairs: Pairs, command: dict[str, Any]) -> dict[str, Any]:
    """Decode rows sorted by length, ``batch_rows`` at a time; the clock sees sorting, padding and search."""
    rows = list(range(len(pairs.source)))[: command.get("limit")]
    outputs: list[list[int]] = [[] for _ in rows]
    started = time.perf_counter()
    rows.sort(key=lambda row: len(pairs.source[row]))
    for start in range(0, len(rows), command["batch_rows"]):
        chosen = rows[start : start + command["batch_rows"]]
        width = max(len(pairs.source[row]) for row in chosen)
        source = np.full((len(chosen), width), PAD, dtype=np.int64)
        for place, row in enumerate(chosen):
            source[place, : len(pairs.source[row])] = pairs.source[row]
        for row, ids in zip(chosen, contender.decode(torch.from_numpy(source), command["beam"], 100), strict=True):
            outputs[row] = ids
    elapsed_s = time.perf_counter() - started
    Path(command["path"]).write_text(json.dumps(outputs))
    return {"elapsed_s": elapsed_s, "tokens": sum(len(ids) + 1 for ids in outputs)}


def serve(kind: type[Contender]) -> None:
    """Build the contender from the command line's words and obey commands until told to quit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=sorted(SHAPES), required=True)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--train", type=Path)
    parser.add_argument("--held-out", type=Path)
    parser.add_argument("--options", type=json.loads, default={})
    arguments = parser.parse_args()
    # Whatever a library prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    contender = kind(SHAPES[arguments.shape], arguments.dtype, arguments.options)
    contender.load(load_weights(arguments.weights))
    train = Pairs.load(arguments.train) if arguments.train else None
    held_out = Pairs.load(arguments.held_out) if arguments.held_out else None

    def answer(values: dict[str, Any]) -> None:
        answers.write(json.dumps(values) + "\n")
        answers.flush()

    answer({"version": contender.version, "torch": torch.__version__})
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "train":
            answer(_train(contender, train, command))
        elif command["do"] == "validate":
            answer(_validate(contender, held_out))
        elif command["do"] == "decode":
            answer(_decode(contender, held_out, command))
        elif command["do"] == "load":
            contender.load(load_weights(Path(command["path"])))
            answer({})
        elif command["do"] == "save":
            save_weights(Path(command["path"]), contender.weights())
            answer({})
        elif command["do"] == "quit":
            answer({"peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})
            return
