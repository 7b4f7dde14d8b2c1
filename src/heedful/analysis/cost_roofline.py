"""The memory wall: what a machine could compute for each byte that it moves, and what three uses of a model ask for.

Under the roof of Williams et al. (2009) a computation of I operations per byte runs at ``min(peak, I x bandwidth)`` at
the most. Training and encoding multiply every weight with many positions and have many operations a byte; a step of
decoding reads all weights for one position, two operations for four bytes, and waits for the memory whatever the peak.
Peak and bandwidth are measured here, with torch's own products and copies, not taken from a data sheet. Bytes are those
that all operations read and write as though nothing stayed in a cache, so that a small model may rise above its roof.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.analysis.cost_counting import count
from heedful.analysis.cost_layers import heads_of
from heedful.analysis.cost_timing import time_in_turns
from heedful.attention.masks import AttentionMask
from heedful.layers.transformer_block import AttentionSizes, BlockSizes
from heedful.layers.transformer_stack import TransformerDecoder, TransformerEncoder


@dataclass(frozen=True)
class Machine:
    """What was measured of this machine, float32.

    Attributes:
        peak_flops: operations a second in a large product of matrices, best of several.
        bandwidth_bytes: a second, the better of copying and of reading for an inner product, best of several.
    """

    peak_flops: float
    bandwidth_bytes: float

    def roof(self, intensity: float) -> float:
        """Return the most operations a second at an intensity in operations per byte."""
        return min(self.peak_flops, intensity * self.bandwidth_bytes)

    @property
    def ridge(self) -> float:
        """The intensity below which memory is the limit."""
        return self.peak_flops / self.bandwidth_bytes


@dataclass(frozen=True)
class Use:
    """One use of a model under the roof.

    Attributes:
        name: of the use.
        operations: counted.
        bytes_moved: counted.
        time_s: median.
    """

    name: str
    operations: int
    bytes_moved: int
    time_s: float

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.operations / self.bytes_moved

    @property
    def flops(self) -> float:
        """Operations a second."""
        return self.operations / self.time_s


@dataclass(frozen=True, kw_only=True)
class StackShape:
    """The Transformer that is used.

    Attributes:
        width: of the model; the feed-forward layers are four times as wide.
        num_layers: blocks.
        length: positions of a sequence, and steps already taken when a step is measured.
        rows: sequences of a batch.
    """

    width: int
    num_layers: int
    length: int
    rows: int


def measure_machine(*, size: int, megabytes: int, budget_s: float) -> Machine:
    """Measure peak and bandwidth.

    Args:
        size: of the square matrices.
        megabytes: of each vector, far more than the caches hold.
        budget_s: for each.
    """
    left, right, product = (torch.randn(size, size) for _ in range(3))
    one, other = (torch.ones(megabytes * 250_000) for _ in range(2))
    works: dict[str, Callable[[], object]] = {
        "product": lambda: torch.mm(left, right, out=product),
        "copy": lambda: other.copy_(one),
        "read": lambda: torch.dot(one, other),
    }
    found = {name: time_in_turns({name: work}, budget_s=budget_s / 2)[name].least_s for name, work in works.items()}
    moved = 2 * one.numel() * one.element_size()
    return Machine(2 * size**3 / found["product"], moved / min(found["copy"], found["read"]))


def measure_uses(shape: StackShape, *, budget_s: float) -> list[Use]:
    """Count and time training, encoding, and one step of decoding for one sequence and for a batch."""
    works = _uses(shape)
    counted = {name: count(work) for name, work in works.items()}
    timed = {name: time_in_turns({name: work}, budget_s=budget_s)[name] for name, work in works.items()}
    return [Use(name, counted[name].operations, counted[name].bytes_moved, timed[name].median_s) for name in works]


def _uses(shape: StackShape) -> dict[str, Callable[[], object]]:
    torch.manual_seed(1)
    sizes, inner_dims = BlockSizes(model_dim=shape.width), [4 * shape.width] * shape.num_layers
    heads = [AttentionSizes(num_heads=heads_of(shape.width), head_dim=shape.width // heads_of(shape.width))]
    encoder = TransformerEncoder(sizes, heads * shape.num_layers, inner_dims)
    decoder = TransformerDecoder(sizes, heads * shape.num_layers, None, inner_dims).eval()
    hidden = torch.randn(shape.rows, shape.length, shape.width, requires_grad=True)
    direction = torch.randn_like(hidden)
    mask = AttentionMask(keep=torch.ones(1, 1, shape.length, dtype=torch.bool))

    def train() -> None:
        torch.autograd.grad(encoder(hidden, mask), list(encoder.parameters()), direction)

    @torch.no_grad()
    def encode() -> None:
        encoder(hidden, mask)

    return {
        f"training, {shape.rows} x {shape.length}": train,
        f"encoding, {shape.rows} x {shape.length}": encode,
        f"decoding, a step of {shape.rows}": _step(decoder, shape, shape.rows),
        "decoding, a step of 1": _step(decoder, shape, 1),
    }


@torch.no_grad()
def _step(decoder: TransformerDecoder, shape: StackShape, rows: int) -> Callable[[], object]:
    """Return the step after ``length`` others."""
    nothing = [None] * shape.num_layers
    before: Tensor = torch.randn(1, shape.length, shape.width).expand(rows, -1, -1)
    caches = []
    for layer in decoder.blocks():
        empty = layer.self_attention.start(rows)
        caches.append(layer.self_attention.step(before, empty)[1])
    newest = torch.randn(rows, 1, shape.width)

    @torch.no_grad()
    def step() -> None:
        decoder.step(newest, caches, nothing)

    return step
