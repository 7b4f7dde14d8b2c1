"""Decoders of the recurrent encoder-decoder: when they look at the source, and what they make of what they see.

All read embedded target symbols and give readouts, the vectors that predict the next symbol. ``decode`` reads a whole
target, ``step`` one position of N hypotheses over each sentence's one memory; both compute the same.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.attention.masks import AttentionMask
from heedful.attention.tap import Gates, ScopedTap, scope_gates, scope_tap
from heedful.layers.recurrent import RecurrentStack, RecurrentState
from heedful.layers.single_head import SingleHeadAttention
from heedful.models.interfaces import AttentionSite, Memory, State
from heedful.models.replay import replay

SITE = "cross_attention"
"""The name of the attention inside a decoder, for taps and gates."""


@dataclass(frozen=True, kw_only=True)
class RecurrentMemory(Memory):
    """A source as read by a recurrent encoder.

    Attributes:
        values: the encoder's outputs, ``B S D``, in the order of the source whatever order it was read in.
        prepared: what the score makes of them once, or None without attention.
        mask: which positions are real.
        final: the encoder's last states, parts ``B L D``.
    """

    values: Float[Tensor, "B S D"]
    prepared: Tensor | None
    mask: AttentionMask
    final: RecurrentState


@dataclass(frozen=True, kw_only=True)
class DecoderState(State):
    """What a recurrent decoder carries from step to step.

    Attributes:
        recurrent: the stack's states, parts ``R L D``.
        length: positions read.
        readout: the readout of the step before, ``R O``, where it is fed back, else None.
    """

    recurrent: RecurrentState
    length: int = 0
    readout: Tensor | None = None


class RecurrentDecoder(nn.Module, ABC):
    """A stack of recurrent layers that starts from the encoder's last states.

    Args:
        stack: the layers.
        output_dim: width of the readouts.
    """

    def __init__(self, stack: RecurrentStack, output_dim: int) -> None:
        super().__init__()
        self.stack = stack
        self.output_dim = output_dim

    def start(self, memory: RecurrentMemory, num_hypotheses: int) -> DecoderState:
        """Return the state before the first step, ``num_hypotheses`` rows for each sentence."""
        return DecoderState(recurrent=tuple(part.repeat_interleave(num_hypotheses, dim=0) for part in memory.final))

    @abstractmethod
    def sites(self, path: str, memory_dim: int) -> list[AttentionSite]:
        """List the attentions of the decoder, which stands at ``path``, over a memory of that width."""

    @abstractmethod
    def prepare(self, values_BSD: Float[Tensor, "B S D"]) -> Tensor | None:
        """Do once per source what every step needs of the encoder's outputs; None where no step looks at them."""

    @abstractmethod
    def decode(
        self,
        embedded_BTI: Float[Tensor, "B T I"],
        memory: RecurrentMemory,
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B T O"]:
        """Read whole targets; return the readout of every position."""

    @abstractmethod
    def step(
        self,
        embedded_BNI: Float[Tensor, "B N I"],
        memory: RecurrentMemory,
        state: DecoderState,
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "B N O"], DecoderState]:
        """Read one position of each hypothesis; return its readout and the new state."""

    def advance(
        self, inputs_BNI: Float[Tensor, "B N I"], state: DecoderState
    ) -> tuple[Float[Tensor, "B N D"], RecurrentState]:
        """Take the stack one position on, for every hypothesis."""
        hidden_R1D, recurrent = self.stack(inputs_BNI.reshape(-1, 1, inputs_BNI.shape[-1]), state.recurrent)
        return hidden_R1D.view(*inputs_BNI.shape[:2], -1), recurrent


class FixedVectorDecoder(RecurrentDecoder):
    """Knows of the source only the state it starts from (Sutskever et al. 2014).

    The readout is that of `LuongDecoder` without a context, so that the two differ by the attention alone.
    """

    def __init__(self, stack: RecurrentStack, hidden_dim: int, output_dim: int) -> None:
        super().__init__(stack, output_dim)
        self.readout = nn.Linear(hidden_dim, output_dim)

    def sites(self, path: str, memory_dim: int) -> list[AttentionSite]:
        return []

    def prepare(self, values_BSD: Float[Tensor, "B S D"]) -> None:
        return None

    def decode(
        self,
        embedded_BTI: Float[Tensor, "B T I"],
        memory: RecurrentMemory,
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B T O"]:
        hidden_BTD, _ = self.stack(embedded_BTI, memory.final)
        return torch.tanh(self.readout(hidden_BTD))

    def step(
        self,
        embedded_BNI: Float[Tensor, "B N I"],
        memory: RecurrentMemory,
        state: DecoderState,
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "B N O"], DecoderState]:
        hidden_BND, recurrent = self.advance(embedded_BNI, state)
        return torch.tanh(self.readout(hidden_BND)), DecoderState(recurrent=recurrent, length=state.length + 1)


class AttentiveDecoder(RecurrentDecoder):
    """Looks at the source at every step."""

    def __init__(self, stack: RecurrentStack, attention: SingleHeadAttention, output_dim: int) -> None:
        super().__init__(stack, output_dim)
        self.attention = attention

    def sites(self, path: str, memory_dim: int) -> list[AttentionSite]:
        is_local = self.attention.locality is not None
        site = AttentionSite(f"{path}.{SITE}", "cross", layer=0, num_heads=1, head_dim=memory_dim, is_local=is_local)
        return [site]

    def prepare(self, values_BSD: Float[Tensor, "B S D"]) -> Tensor:
        return self.attention.prepare(values_BSD)

    def look(
        self, query_BQD: Tensor, memory: RecurrentMemory, step: int | None, tap: ScopedTap | None, gates: Gates | None
    ) -> Float[Tensor, "B Q D"]:
        """Return the context of each query: a target's positions, or hypotheses at the position ``step``."""
        assert memory.prepared is not None
        context: Tensor = self.attention(
            query_BQD,
            memory.prepared,
            memory.values,
            memory.mask,
            step=step,
            tap=scope_tap(tap, SITE),
            gates=scope_gates(gates, SITE),
        )
        return context

    def decode_by_steps(
        self, embedded_BTI: Tensor, memory: RecurrentMemory, tap: ScopedTap | None, gates: Gates | None
    ) -> Float[Tensor, "B T O"]:
        """Read whole targets position by position, where a position needs what came of the one before."""

        def run(tap_now: ScopedTap | None) -> Tensor:
            state, readouts = self.start(memory, 1), []
            for embedded_BI in embedded_BTI.unbind(1):
                readout, state = self.step(embedded_BI[:, None], memory, state, tap=tap_now, gates=gates)
                readouts.append(readout)
            return torch.cat(readouts, dim=1)

        return run(None) if tap is None else replay(run, tap)


class LuongDecoder(AttentiveDecoder):
    """Steps, then attends with the new state (Luong et al. 2015, section 3): ``tanh(W [context; hidden])``, equation 5.

    No step needs the context of another, so that a whole target runs through the stack at once, and all its
    positions attend at once.
    """

    def __init__(
        self, stack: RecurrentStack, attention: SingleHeadAttention, hidden_dim: int, memory_dim: int, output_dim: int
    ) -> None:
        super().__init__(stack, attention, output_dim)
        self.readout = nn.Linear(memory_dim + hidden_dim, output_dim)

    def read_out(
        self, hidden_BQD: Tensor, memory: RecurrentMemory, step: int | None, tap: ScopedTap | None, gates: Gates | None
    ) -> Float[Tensor, "B Q O"]:
        """Attend with each hidden state and join it with its context."""
        context_BQD = self.look(hidden_BQD, memory, step, tap, gates)
        return torch.tanh(self.readout(torch.cat((context_BQD, hidden_BQD), dim=-1)))

    def decode(
        self,
        embedded_BTI: Float[Tensor, "B T I"],
        memory: RecurrentMemory,
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B T O"]:
        hidden_BTD, _ = self.stack(embedded_BTI, memory.final)
        return self.read_out(hidden_BTD, memory, None, tap, gates)

    def step(
        self,
        embedded_BNI: Float[Tensor, "B N I"],
        memory: RecurrentMemory,
        state: DecoderState,
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "B N O"], DecoderState]:
        hidden_BND, recurrent = self.advance(embedded_BNI, state)
        readout_BNO = self.read_out(hidden_BND, memory, state.length, tap, gates)
        return readout_BNO, DecoderState(recurrent=recurrent, length=state.length + 1)


class InputFeedingDecoder(LuongDecoder):
    """Feeds each readout into the next step, so that past alignments are known (Luong et al. 2015, section 3.3).

    The stack reads ``[embedded; readout]``.
    """

    def start(self, memory: RecurrentMemory, num_hypotheses: int) -> DecoderState:
        state = super().start(memory, num_hypotheses)
        return replace(state, readout=state.recurrent[0].new_zeros(state.recurrent[0].shape[0], self.output_dim))

    def decode(
        self,
        embedded_BTI: Float[Tensor, "B T I"],
        memory: RecurrentMemory,
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B T O"]:
        return self.decode_by_steps(embedded_BTI, memory, tap, gates)

    def step(
        self,
        embedded_BNI: Float[Tensor, "B N I"],
        memory: RecurrentMemory,
        state: DecoderState,
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "B N O"], DecoderState]:
        assert state.readout is not None
        fed_BNO = state.readout.view(*embedded_BNI.shape[:2], -1)
        hidden_BND, recurrent = self.advance(torch.cat((embedded_BNI, fed_BNO), dim=-1), state)
        readout_BNO = self.read_out(hidden_BND, memory, state.length, tap, gates)
        return readout_BNO, DecoderState(
            recurrent=recurrent, length=state.length + 1, readout=readout_BNO.flatten(0, 1)
        )


class BahdanauDecoder(AttentiveDecoder):
    """Attends with the state before, then steps (Bahdanau et al. 2015, section 3.1 and appendix A.2).

    The stack reads ``[embedded; context]``; the readout is a maxout layer over pairs (Goodfellow et al. 2013) of the
    new state, the symbol and the context. (The appendix takes the old state there, the paper's equation 4 the new
    one.) The order asks for a step at a time.
    """

    def __init__(
        self,
        stack: RecurrentStack,
        attention: SingleHeadAttention,
        hidden_dim: int,
        embedding_dim: int,
        memory_dim: int,
        output_dim: int,
    ) -> None:
        super().__init__(stack, attention, output_dim)
        self.readout = nn.Linear(hidden_dim + embedding_dim + memory_dim, 2 * output_dim)

    def decode(
        self,
        embedded_BTI: Float[Tensor, "B T I"],
        memory: RecurrentMemory,
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B T O"]:
        return self.decode_by_steps(embedded_BTI, memory, tap, gates)

    def step(
        self,
        embedded_BNI: Float[Tensor, "B N I"],
        memory: RecurrentMemory,
        state: DecoderState,
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "B N O"], DecoderState]:
        before_BND = state.recurrent[0][:, -1].reshape(*embedded_BNI.shape[:2], -1)
        context_BND = self.look(before_BND, memory, state.length, tap, gates)
        hidden_BND, recurrent = self.advance(torch.cat((embedded_BNI, context_BND), dim=-1), state)
        pairs = self.readout(torch.cat((hidden_BND, embedded_BNI, context_BND), dim=-1))
        return pairs.unflatten(-1, (-1, 2)).amax(dim=-1), DecoderState(recurrent=recurrent, length=state.length + 1)
