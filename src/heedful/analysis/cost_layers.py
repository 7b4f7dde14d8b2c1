"""The layers of the classic table (Vaswani et al. 2017, table 1), each with formulas and a layer of ours to measure.

Formulas count matrix products, two operations for a multiply-add, projections included. ``n`` is the length, ``d`` the
width, ``k`` the width of a convolution, ``r`` how far a window reaches to each side.
"""

import math
from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.attention.multihead import SelfAttention
from heedful.attention.tap import ScopedTap, Tap
from heedful.attention.window import Window
from heedful.layers.convolution import ConvolutionBank
from heedful.layers.recurrent import CELLS, CellName, RecurrentLayer


class LayerCost(ABC):
    """One row of the table.

    Attributes:
        name: of the layer.
        order: of the operations, as published, without projections.
        order_of_steps: of what must be done one after the other within a layer.
        order_of_path: of the longest path between two positions.
    """

    name: str
    order: str
    order_of_steps: str
    order_of_path: str

    @abstractmethod
    def build(self, width: int) -> nn.Module:
        """Return a fresh layer that keeps the width."""

    @abstractmethod
    def apply(self, layer: nn.Module, inputs: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Run the layer over whole sequences."""

    @abstractmethod
    def formula(self) -> str:
        """Return the operations as a formula, with the constants of this layer."""

    @abstractmethod
    def operations(self, length: int, width: int) -> int:
        """Return what the formula gives for one sequence."""

    @abstractmethod
    def path(self, length: int) -> int:
        """Return how many layer steps lie between the first position and the last."""


class _Watcher(Tap):
    """Wants weights, and leaves them as they are."""

    def wants(self, point: str) -> bool:
        return point.endswith(".weights")

    def visit(self, point: str, value: Tensor) -> Tensor:
        return value


_WATCHED = ScopedTap(_Watcher(), "measured")


class SelfAttentionCost(LayerCost):
    """Self-attention as it runs: the fused kernel for long sequences, which never holds all weights.

    Args:
        is_watched: a tap watches the weights, so that all of them are held: n² numbers for each head.
    """

    order, order_of_steps, order_of_path = "n² d", "1", "1"

    def __init__(self, *, is_watched: bool = False) -> None:
        self.tap = _WATCHED if is_watched else None
        self.name = "self-attention, watched" if is_watched else "self-attention"

    def build(self, width: int) -> SelfAttention:
        heads = heads_of(width)
        return SelfAttention(width, heads, width // heads)

    def apply(self, layer: nn.Module, inputs: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        attended: Tensor = layer(inputs, tap=self.tap)
        return attended

    def formula(self) -> str:
        return "8 n d² + 4 n² d"

    def operations(self, length: int, width: int) -> int:
        return 8 * length * width**2 + 4 * length**2 * width

    def path(self, length: int) -> int:
        return 1


class WindowedSelfAttentionCost(LayerCost):
    """Self-attention within a window, block by block (Beltagy et al. 2020, section 3.1).

    A position needs ``2 r + 1`` keys. Blocks of ``2 r`` queries compute products with ``4 r`` keys each, and sequences
    that are no longer than four windows are attended as a whole.

    Args:
        reach: r.
    """

    name = "windowed self-attention"
    order, order_of_steps, order_of_path = "r n d", "1", "n / r"

    def __init__(self, reach: int) -> None:
        self.reach = reach

    def build(self, width: int) -> SelfAttention:
        heads = heads_of(width)
        return SelfAttention(width, heads, width // heads, window=Window(before=self.reach, after=self.reach))

    def apply(self, layer: nn.Module, inputs: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        attended: Tensor = layer(inputs)
        return attended

    def formula(self) -> str:
        return "8 n d² + 16 r n d"

    def operations(self, length: int, width: int) -> int:
        projections = 8 * length * width**2
        if length <= 4 * (2 * self.reach + 1):
            return projections + 4 * length**2 * width
        block = 2 * self.reach
        return projections + 4 * math.ceil(length / block) * block * 2 * block * width

    def path(self, length: int) -> int:
        return math.ceil((length - 1) / self.reach)


class RecurrentCost(LayerCost):
    """A recurrent layer.

    Args:
        cell: its kind.
    """

    order, order_of_steps, order_of_path = "n d²", "n", "n"

    def __init__(self, cell: CellName) -> None:
        self.cell = cell
        self.name = f"recurrent ({cell.upper()})"
        self.num_gates = {"lstm": 4, "gru": 3}[cell]

    def build(self, width: int) -> RecurrentLayer:
        return CELLS[self.cell](width, width)

    def apply(self, layer: nn.Module, inputs: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        assert isinstance(layer, RecurrentLayer)
        return layer.run(layer.project(inputs), layer.initial(inputs.shape[0]))[0]

    def formula(self) -> str:
        return f"{4 * self.num_gates} n d²"

    def operations(self, length: int, width: int) -> int:
        return 4 * self.num_gates * length * width**2

    def path(self, length: int) -> int:
        return length


class ConvolutionCost(LayerCost):
    """A convolution over neighbours, its window centred on each position.

    Args:
        kernel: k; below 3 a window sees nothing before its position.
    """

    name = "convolution"
    order, order_of_steps, order_of_path = "k n d²", "1", "n / k"

    def __init__(self, kernel: int) -> None:
        self.kernel = kernel

    def build(self, width: int) -> ConvolutionBank:
        return ConvolutionBank(width, [self.kernel], width)

    def apply(self, layer: nn.Module, inputs: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        keep = torch.ones(inputs.shape[:2], dtype=torch.bool)
        filtered: Tensor = layer(inputs, keep)
        return filtered

    def formula(self) -> str:
        return "2 k n d²"

    def operations(self, length: int, width: int) -> int:
        return 2 * self.kernel * length * width**2

    def path(self, length: int) -> int:
        return math.ceil((length - 1) / ((self.kernel - 1) // 2))


class DilatedConvolutionCost(ConvolutionCost):
    """A stack whose deeper layers see positions further apart: the same work, a path that grows with the logarithm.

    A centred window looks ``(k - 1) / 2`` positions back, so that dilations 1, b, b², ... with ``b = (k + 1) / 2``
    reach every position, and do so without leaving the sequence on the way: the published ``log_k n`` is that of
    windows that look back alone. With dilations k^l some pairs of positions near the ends would never meet.
    """

    name = "convolution, dilated"
    order_of_path = "log_k n"

    def build_at(self, width: int, depth: int) -> ConvolutionBank:
        """Return the layer at a depth, counted from 0."""
        return ConvolutionBank(width, [self.kernel], width, dilation=((self.kernel + 1) // 2) ** depth)

    def path(self, length: int) -> int:
        base, depth = (self.kernel + 1) // 2, 0
        while base**depth < length:
            depth += 1
        return depth


def heads_of(width: int) -> int:
    """Return how many heads a layer gets; they do not change the operations."""
    return next(heads for heads in (4, 2, 1) if width % heads == 0)


def layer_costs(*, kernel: int, window: int) -> list[LayerCost]:
    """Return the rows of the table."""
    return [
        SelfAttentionCost(),
        SelfAttentionCost(is_watched=True),
        WindowedSelfAttentionCost(window),
        RecurrentCost("lstm"),
        RecurrentCost("gru"),
        ConvolutionCost(kernel),
        DilatedConvolutionCost(kernel),
    ]
