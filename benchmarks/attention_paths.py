"""Which way of attending is quickest, by type, length and use: what ``attend`` chooses by.

``python benchmarks/attention_paths.py [threads]`` writes results/attention_paths.md. Ways: *short* (two products with a
softmax between, ``attention/short.py``) and *fused* (torch's scaled_dot_product_attention); *plain* is every step left
to torch, as for a model that is watched.
"""

import sys
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from heedful.attention.attend import _attend_fused
from heedful.attention.masks import AttentionMask, padding_keep
from heedful.attention.short import attend_short
from heedful.attention.weights import masked_softmax
from record import environment, footer, table, write_results
from stopwatch import best_ms

NUM_HEADS, HEAD_DIM = 4, 64
SHAPES = [(128, 25, 25), (32, 100, 100), (16, 200, 200), (8, 400, 400), (4, 800, 800), (1, 3200, 3200)]
STEPS = [(64, 1, 30), (64, 5, 30), (1, 5, 30), (16, 1, 500), (1, 1, 2000)]
"""Rows, queries and keys: whole sequences, and single steps (one query, or one for each of five hypotheses)."""

Way = Callable[[Tensor, Tensor, Tensor], Tensor]


def train_once(way: Way, inputs: tuple[Tensor, Tensor, Tensor], direction: Tensor) -> None:
    """Go forward and backward."""
    torch.autograd.grad(way(*inputs), inputs, direction)


def predict_once(way: Way, inputs: tuple[Tensor, Tensor, Tensor]) -> None:
    """Go forward alone."""
    with torch.inference_mode():
        way(*inputs)


def measure(dtype: torch.dtype, rows: int, num_queries: int, num_keys: int, *, training: bool) -> dict[str, float]:
    """Return milliseconds by way."""
    query = torch.randn(rows, NUM_HEADS, num_queries, HEAD_DIM, dtype=dtype, requires_grad=training)
    keys, values = (
        torch.randn(rows, NUM_HEADS, num_keys, HEAD_DIM, dtype=dtype, requires_grad=training) for _ in range(2)
    )
    mask = AttentionMask.padding(padding_keep(torch.randint(num_keys // 2, num_keys + 1, (rows,)), num_keys))
    ways: dict[str, Way] = {
        "plain": lambda query, keys, values: masked_softmax(query @ keys.mT * HEAD_DIM**-0.5, mask) @ values,
        "short": lambda query, keys, values: attend_short(query, keys, values, mask),
        "fused": lambda query, keys, values: _attend_fused(query, keys, values, mask, None),
    }
    inputs = (query, keys, values)
    if training:
        direction = torch.randn_like(query)
        return best_ms({name: partial(train_once, way, inputs, direction) for name, way in ways.items()})
    return best_ms({name: partial(predict_once, way, inputs) for name, way in ways.items()})


def main() -> None:
    """Measure everything and write the table."""
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    rows = []
    for dtype in (torch.bfloat16, torch.float32):
        for use, shapes in (("training", SHAPES), ("prediction", SHAPES), ("one step", STEPS)):
            for shape in shapes:
                times = measure(dtype, *shape, training=use == "training")
                rows.append([str(dtype).removeprefix("torch."), use, *shape, *times.values()])
                print(rows[-1], file=sys.stderr, flush=True)
    about = environment()
    text = table(["type", "use", "rows", "queries", "keys", "plain, ms", "short, ms", "fused, ms"], rows)
    head = f"# Ways of attending\n\n{NUM_HEADS} heads of {HEAD_DIM}, {torch.get_num_threads()} threads, best of 15.\n\n"
    write_results("attention_paths", {**about, "rows": rows}, head + text + footer(about))


if __name__ == "__main__":
    main()
