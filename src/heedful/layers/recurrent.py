"""Recurrent layers (LSTM and GRU), stacks of them, and encoders that read in one or both directions.

Batch first everywhere. A layer's state is a tuple of tensors with the batch on axis 0, the hidden state first:
``(hidden,)`` for a GRU, ``(hidden, cell)`` for an LSTM. A stack's state has the layers on axis 1: ``B L D``.
"""

import math
from abc import ABC, abstractmethod
from typing import Literal, cast

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.dropout import Dropout
from heedful.layers.recurrence import GruRecurrence, LstmRecurrence

RecurrentState = tuple[Tensor, ...]
"""The parts of a state, hidden first."""

CellName = Literal["lstm", "gru"]


class RecurrentLayer(nn.Module, ABC):
    """One layer, one direction.

    What a layer makes of its input does not depend on the past, so it is computed for all positions at once
    (``project``); ``run`` then goes through time. A caller whose input depends on the past runs one position at a time.

    Args:
        input_dim: width of the input.
        hidden_dim: width of the state and of the output.
        num_gates: how many vectors of ``hidden_dim`` the input and the state are projected to.
    """

    num_parts: int
    """How many tensors a state has."""

    def __init__(self, input_dim: int, hidden_dim: int, num_gates: int) -> None:
        super().__init__()
        self.hidden_dim = hidden_dim
        width = num_gates * hidden_dim
        self.input_weight = nn.Parameter(torch.empty(width, input_dim))
        self.bias = nn.Parameter(torch.zeros(width))
        self.recurrent_weight = nn.Parameter(torch.empty(width, hidden_dim))
        with torch.no_grad():
            bound = 1 / math.sqrt(hidden_dim)
            self.input_weight.uniform_(-bound, bound)
            for gate in self.recurrent_weight.chunk(num_gates):
                nn.init.orthogonal_(gate)  # keeps the length of what travels through time (Saxe et al. 2014)

    def project(self, inputs: Float[Tensor, "*rows I"]) -> Float[Tensor, "*rows G"]:
        """Return the part of every gate that comes from the input."""
        return functional.linear(inputs, self.input_weight, self.bias)

    @abstractmethod
    def run(self, projected_BTG: Float[Tensor, "B T G"], state: RecurrentState) -> RecurrentState:
        """Go through time from a state (parts ``B D``); return the states after every position (parts ``B T D``)."""

    def initial(self, rows: int) -> RecurrentState:
        """Return a state of zeros; whatever the weights' type, parts after the hidden state are float32 or wider."""
        hidden = self.bias.new_zeros(rows, self.hidden_dim)
        wide = hidden.to(torch.promote_types(hidden.dtype, torch.float32))
        return (hidden, *[wide] * (self.num_parts - 1))


class LstmLayer(RecurrentLayer):
    """Long short-term memory; see `LstmRecurrence`.

    The forget gate's bias starts at 1, so that a fresh layer remembers (Jozefowicz et al. 2015, section 4).
    """

    num_parts = 2

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__(input_dim, hidden_dim, num_gates=4)
        with torch.no_grad():
            self.bias[2 * hidden_dim : 3 * hidden_dim] = 1.0

    def run(self, projected_BTG: Float[Tensor, "B T G"], state: RecurrentState) -> RecurrentState:
        hidden, cell = state
        states: RecurrentState = LstmRecurrence.apply(  # type: ignore[no-untyped-call]
            projected_BTG.transpose(0, 1), hidden, cell, self.recurrent_weight
        )
        return tuple(part.transpose(0, 1) for part in states)


class GruLayer(RecurrentLayer):
    """Gated recurrent unit; see `GruRecurrence`."""

    num_parts = 1

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__(input_dim, hidden_dim, num_gates=3)
        self.candidate_bias = nn.Parameter(torch.zeros(hidden_dim))

    def run(self, projected_BTG: Float[Tensor, "B T G"], state: RecurrentState) -> RecurrentState:
        hidden: Tensor = GruRecurrence.apply(  # type: ignore[no-untyped-call]
            projected_BTG.transpose(0, 1), state[0], self.recurrent_weight, self.candidate_bias
        )
        return (hidden.transpose(0, 1),)


CELLS: dict[str, type[LstmLayer] | type[GruLayer]] = {"lstm": LstmLayer, "gru": GruLayer}


class RecurrentStack(nn.Module):
    """Layers one above the other, in one direction, with dropout between them (Zaremba et al. 2014).

    Args:
        cell: kind of layer.
        input_dim: width of the input of the first layer.
        hidden_dim: width of every state and of the output.
        num_layers: how many.
        dropout: share of a layer's output that the next one does not see.
    """

    def __init__(self, cell: CellName, input_dim: int, hidden_dim: int, num_layers: int, dropout: float) -> None:
        super().__init__()
        dims = [input_dim] + [hidden_dim] * (num_layers - 1)
        self.layers = nn.ModuleList(CELLS[cell](dim, hidden_dim) for dim in dims)
        self.dropout = Dropout(dropout)

    def _levels(self) -> list[RecurrentLayer]:
        """Return the layers, typed as what they are."""
        return [cast(RecurrentLayer, layer) for layer in self.layers]

    def initial(self, rows: int) -> RecurrentState:
        """Return a state of zeros, parts ``B L D``."""
        return _stack_layers([layer.initial(rows) for layer in self._levels()])

    def forward(
        self, inputs: Float[Tensor, "B T I"], state: RecurrentState
    ) -> tuple[Float[Tensor, "B T D"], RecurrentState]:
        """Go through time from a state (parts ``B L D``).

        Returns:
            The top layer's hidden state at every position, and the state after the last.
        """
        values, last = inputs, []
        for index, layer in enumerate(self._levels()):
            below = self.dropout(values) if index else values
            states = layer.run(layer.project(below), tuple(part[:, index] for part in state))
            values = states[0]
            last.append(tuple(part[:, -1] for part in states))
        return values, _stack_layers(last)


class RecurrentEncoder(nn.Module):
    """Reads padded rows, in one direction or in both, as if each row stood alone.

    The backward direction starts at each row's own last real position. In both directions at once, each layer reads
    the joined outputs of the one below (Graves et al. 2013); every direction is ``output_dim / directions`` wide, so
    that the output has the same width either way.

    Args:
        cell: kind of layer.
        input_dim: width of the input.
        output_dim: width of the output and of the final states, directions joined.
        num_layers: how many.
        is_bidirectional: read from both ends.
        dropout: between layers.
    """

    def __init__(
        self,
        cell: CellName,
        input_dim: int,
        output_dim: int,
        num_layers: int,
        *,
        is_bidirectional: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        directions = 2 if is_bidirectional else 1
        self.output_dim = output_dim
        dims = [input_dim] + [output_dim] * (num_layers - 1)
        self.layers = nn.ModuleList(
            nn.ModuleList(CELLS[cell](dim, output_dim // directions) for _ in range(directions)) for dim in dims
        )
        self.dropout = Dropout(dropout)

    def _levels(self) -> list[list[RecurrentLayer]]:
        """Return the layers of each level, the one that reads onward first, typed as what they are."""
        return [[cast(RecurrentLayer, layer) for layer in cast(nn.ModuleList, level)] for level in self.layers]

    def forward(
        self, inputs: Float[Tensor, "B S I"], lengths: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B S D"], RecurrentState]:
        """Read every row from a state of zeros.

        Returns:
            The top layer's output (what stands at padding means nothing), and every layer's states after the last
            position that each direction reads, parts ``B L D``.
        """
        values, finals = inputs, []
        for index, (onward, *backward) in enumerate(self._levels()):
            below = self.dropout(values) if index else values
            read = [_read(onward, below, lengths)]
            for layer in backward:
                reverse, final = _read(layer, reverse_rows(below, lengths), lengths)
                read.append((reverse_rows(reverse, lengths), final))
            values = torch.cat([outputs for outputs, _ in read], dim=-1)
            finals.append(tuple(torch.cat(parts, dim=-1) for parts in zip(*(final for _, final in read), strict=True)))
        return values, _stack_layers(finals)


def _read(layer: RecurrentLayer, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, RecurrentState]:
    """Run a layer over padded rows; return all hidden states and the state at each row's last real position."""
    states = layer.run(layer.project(inputs), layer.initial(inputs.shape[0]))
    rows = torch.arange(inputs.shape[0], device=inputs.device)
    return states[0], tuple(part[rows, (lengths - 1).clamp(min=0)] for part in states)


def reverse_rows(values: Shaped[Tensor, "B S *rest"], lengths: Int[Tensor, " B"]) -> Shaped[Tensor, "B S *rest"]:
    """Return each row with its real positions in reverse order, and the padding where it was. Its own inverse."""
    position_BS = torch.arange(values.shape[1], device=values.device).expand(values.shape[:2])
    mirrored_BS = lengths[:, None] - 1 - position_BS
    index_BS = torch.where(mirrored_BS >= 0, mirrored_BS, position_BS)
    return values[torch.arange(values.shape[0], device=values.device)[:, None], index_BS]


def _stack_layers(states: list[RecurrentState]) -> RecurrentState:
    return tuple(torch.stack(parts, dim=1) for parts in zip(*states, strict=True))
