"""Dropout, forward and backward, beside torch's own.

``python benchmarks/dropout.py [threads]`` writes results/dropout.md.
"""

import sys
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from heedful.attention import Dropout
from record import environment, footer, table, write_results
from stopwatch import best_ms

SIZES = [(512, 256), (2048, 256), (2048, 1024), (12800, 25)]


def run(dropout: Callable[[Tensor], Tensor], values: Tensor, direction: Tensor) -> None:
    """Go forward and backward."""
    torch.autograd.grad(dropout(values), values, direction)


def main() -> None:
    """Measure everything and write the table."""
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    ways = {"torch": partial(functional.dropout, p=0.1), "heedful": Dropout(0.1)}
    rows = []
    for dtype in (torch.bfloat16, torch.float32):
        for size in SIZES:
            values = torch.randn(size, dtype=dtype, requires_grad=True)
            times = best_ms(
                {name: partial(run, way, values, torch.ones(size, dtype=dtype)) for name, way in ways.items()}
            )
            rows.append([str(dtype).removeprefix("torch."), *size, *times.values()])
    about = environment()
    head = f"# Dropout\n\n{torch.get_num_threads()} threads, forward and backward, best of 15.\n\n"
    header = ["type", "rows", "width", "torch, ms", "heedful, ms"]
    write_results("dropout", {**about, "rows": rows}, head + table(header, rows) + footer(about))


if __name__ == "__main__":
    main()
