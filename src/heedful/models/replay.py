"""Lets a tap see what happens step by step as if it had happened at once.

A model that must go step by step meets each attention T times, with one query each. A tap should not have to know:
it sees ``B H T K`` from every model. So the steps run once while the pieces are collected; the tap sees them joined;
and if it hands back something else, the steps run again with its pieces in their places.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat

import torch
from torch import Tensor

from heedful.attention.tap import ScopedTap, Tap

SHARED_POINTS = ("value",)
"""What is the same at every step, a source's: it is shown once, and what replaces it stands at every step."""


def replay(run: Callable[[ScopedTap | None], Tensor], tap: ScopedTap) -> Tensor:
    """Run steps, showing a tap the queries of all of them at once.

    What the tap replaces is put in place as a whole: a later step's own scores, which it changes, are not shown again.

    Args:
        run: goes through all steps and shows every point once a step, with queries on axis 2.
        tap: the listener.

    Returns:
        What ``run`` gives, with the tap's replacements.
    """
    collected = _Collect(tap)
    result = run(ScopedTap(collected, tap.path))
    replacements: dict[str, Iterator[Tensor]] = {}
    for point, pieces in collected.pieces.items():
        is_shared = point.rpartition(".")[2] in SHARED_POINTS
        whole = pieces[0] if is_shared else torch.cat(pieces, dim=2)
        replacement = tap.tap.visit(point, whole)
        if replacement is not whole:
            sizes = [piece.shape[2] for piece in pieces]
            replacements[point] = repeat(replacement) if is_shared else iter(torch.split(replacement, sizes, dim=2))
    return run(ScopedTap(_Replace(replacements), tap.path)) if replacements else result


@dataclass
class _Collect(Tap):
    """Keeps every piece of the points that another tap wants."""

    listener: ScopedTap
    pieces: dict[str, list[Tensor]] = field(default_factory=dict)

    def wants(self, point: str) -> bool:
        return self.listener.tap.wants(point)

    def visit(self, point: str, value: Tensor) -> Tensor:
        self.pieces.setdefault(point, []).append(value)
        return value


@dataclass
class _Replace(Tap):
    """Gives piece after piece of what is to stand at each point."""

    pieces: dict[str, Iterator[Tensor]]

    def wants(self, point: str) -> bool:
        return point in self.pieces

    def visit(self, point: str, value: Tensor) -> Tensor:
        piece: Tensor = next(self.pieces[point])
        return piece
