"""The costs of layers, measured on this machine as the user asks."""

import sys

import torch

from heedful.analysis.cost_report import CostPlan, CostReport, measure_costs
from heedful.analysis.cost_roofline import StackShape
from heedful.analysis.cost_text import cost_text
from heedful.core.errors import ConfigError

LENGTH, WIDTH, KERNEL, WINDOW = 1024, 128, 3, 16
LEAST_LENGTH, LEAST_WIDTH = 16, 8
MOST_THREADS = 1024


def cost(
    *,
    length: int = LENGTH,
    width: int = WIDTH,
    kernel: int = KERNEL,
    window: int = WINDOW,
    rows: int = 1,
    threads: int | None = None,
    is_quick: bool = False,
) -> CostReport:
    """Measure what layers cost.

    Args:
        length: the longest sequence; shorter ones are halves of it.
        width: of the layers; narrower and wider ones are measured too.
        kernel: positions that a convolution sees.
        window: how far windowed self-attention sees to each side.
        rows: sequences at a time.
        threads: of torch; absent means as it stands.
        is_quick: fewer points, a smaller Transformer and less patience: some seconds.

    Raises:
        ConfigError: a number that is too small, or threads that no machine has.
    """
    least = {"length": (length, LEAST_LENGTH), "width": (width, LEAST_WIDTH), "kernel": (kernel, 3)}
    least |= {"window": (window, 1), "rows": (rows, 1), "threads": (1 if threads is None else threads, 1)}
    for name, (value, bound) in least.items():
        if value < bound:
            raise ConfigError(f"`--{name}` must be at least {bound}, but is {value}.")
    if threads is not None and threads > MOST_THREADS:
        raise ConfigError(f"`--threads` must be at most {MOST_THREADS}, but is {threads}.")
    if threads is not None:
        torch.set_num_threads(threads)
    plan = _plan(length, width, kernel, window, rows, is_quick=is_quick)
    return measure_costs(plan, lambda what: print(f"measuring {what}", file=sys.stderr, flush=True))


def _plan(length: int, width: int, kernel: int, window: int, rows: int, *, is_quick: bool) -> CostPlan:
    halvings = 3 if is_quick else 5
    spread = (1, 2) if is_quick else (1, 2, 4)
    stack_width = min(4 * width, 256 if is_quick else 512)
    return CostPlan(
        lengths=sorted({max(2, length >> halving) for halving in range(halvings)}),
        widths=sorted({max(4, width // factor) for factor in spread} | {width * factor for factor in spread}),
        length=max(2, length // 4),
        width=width,
        kernel=kernel,
        window=window,
        rows=rows,
        path_lengths=[5, 9, 17, 33] if is_quick else [5, 9, 17, 33, 65, 129],
        longest_crossing=length * (4 if is_quick else 16),
        stack=StackShape(
            width=stack_width, num_layers=3 if is_quick else 6, length=min(64, length), rows=8 if is_quick else 32
        ),
        matrix_size=min(8 * stack_width, 1024 if is_quick else 2048),
        copy_megabytes=64 if is_quick else 256,
        budget_s=0.3 if is_quick else 3.0,
    )


def cost_to_text(report: CostReport) -> str:
    """Return a report for people at a terminal."""
    return cost_text(report)
