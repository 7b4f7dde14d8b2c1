"""Multi-head attention (Vaswani et al. 2017, section 3.2.2), within a sequence and from one sequence to another.

The rows of a fused projection are head by head (``H 3 E`` for query, key and value; ``H 2 E`` for key and value), so
one copy brings all heads into the order in which products are batched, and a head is removed by removing its rows.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.attend import attend
from heedful.attention.cache import KeyValueCache, KeyValues
from heedful.attention.dropout import Dropout
from heedful.attention.masks import AttentionMask, causal_keep
from heedful.attention.rotary import Rotary
from heedful.attention.tap import Gates, ScopedTap
from heedful.attention.window import Window
from heedful.core.errors import ConfigError


def split_model_dim(model_dim: int, num_heads: int) -> int:
    """Return the width of a head of a fresh model, ``model_dim / num_heads``: its size does not depend on the number.

    Raises:
        ConfigError: the number of heads does not divide the model's width.
    """
    if num_heads < 1 or model_dim % num_heads:
        fitting = [each for each in range(1, model_dim + 1) if model_dim % each == 0]
        nearest = min(fitting, key=lambda each: abs(each - num_heads))
        raise ConfigError(
            f"`model.num_heads` must divide `model.model_dim` ({model_dim}), but is {num_heads}. Try {nearest}."
        )
    return model_dim // num_heads


class MultiHeadAttention(nn.Module, ABC):
    """What both kinds share: attending with heads, and the output projection.

    A tap sees ``query``, ``key``, ``value`` (``B H T E``), ``scores``, ``weights`` (``B H Q K``) and ``context``
    (``B H Q E``, before gates). With no heads at all the output is the output bias.

    Attributes:
        num_heads: heads it has now.
        head_dim: width of each head.
        output_weight: ``D (H E)``.
        output_bias: ``D``, or None.
    """

    def __init__(self, num_heads: int, head_dim: int, output_dim: int, dropout: float, *, bias: bool) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.dropout = Dropout(dropout)
        self.output_weight = nn.Parameter(torch.empty(output_dim, num_heads * head_dim))
        self.output_bias = nn.Parameter(torch.zeros(output_dim)) if bias else None
        _init_uniform(self.output_weight, fan_in=num_heads * head_dim, fan_out=output_dim)

    @abstractmethod
    def keep_heads(self, heads: Sequence[int]) -> None:
        """Remove all heads but these (in this order); the parameters are new ones, so make optimisers afterwards."""

    def _attend(
        self,
        query: Float[Tensor, "B H Q E"],
        keys: Float[Tensor, "B H K E"],
        values: Float[Tensor, "B H K E"],
        mask: AttentionMask | None,
        tap: ScopedTap | None,
        gates: Gates | None,
        window: Window | None = None,
    ) -> Float[Tensor, "B Q D"]:
        if tap is not None:
            query, keys, values = tap.visit("query", query), tap.visit("key", keys), tap.visit("value", values)
        attend_here = attend if window is None else window.attend
        context = attend_here(query, keys, values, mask=mask, dropout=self.dropout, tap=tap)
        if tap is not None:
            context = tap.visit("context", context)
        context_BQX = context.transpose(1, 2).flatten(2)
        return functional.linear(context_BQX, self._gated_output_weight(gates), self.output_bias)

    def _gated_output_weight(self, gates: Gates | None) -> Tensor:
        """Return the output projection with each head's columns scaled by its gate.

        It is what scaling the head's context would give, at the cost of one small matrix: the gradient of a gate comes
        out of the gradient of the weight, which is computed anyway.
        """
        gate_H = None if gates is None else gates.here()
        if gate_H is None:
            return self.output_weight
        gate_X = gate_H.to(self.output_weight).repeat_interleave(self.head_dim)
        return self.output_weight * gate_X

    def constant(self) -> Float[Tensor, " D"] | None:
        """Return what an attention without heads gives at every position: the output bias; None where there are heads.

        Whoever holds it adds this and need not call it: nothing is left to compute.
        """
        if self.num_heads:
            return None
        return self.output_weight.new_zeros(len(self.output_weight)) if self.output_bias is None else self.output_bias

    def _keep_output_heads(self, heads: Sequence[int]) -> None:
        self.output_weight = _keep_rows(self.output_weight.T, heads, self.head_dim, transposed=True)
        self.num_heads = len(heads)


class SelfAttention(MultiHeadAttention):
    """A sequence that attends to itself.

    Args:
        model_dim: width of the sequence, in and out.
        num_heads: how many heads; 0 is allowed.
        head_dim: width of each.
        dropout: probability for the weights.
        bias: whether the projections have biases.
        rotary: turns queries and keys by their positions.
        window: the most that a position sees; None means everything.
    """

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        head_dim: int,
        dropout: float = 0.0,
        *,
        bias: bool = True,
        rotary: Rotary | None = None,
        window: Window | None = None,
    ) -> None:
        super().__init__(num_heads, head_dim, model_dim, dropout, bias=bias)
        self.rotary = rotary
        self.window = window
        self.input_weight = nn.Parameter(torch.empty(num_heads * 3 * head_dim, model_dim))
        self.input_bias = nn.Parameter(torch.zeros(num_heads * 3 * head_dim)) if bias else None
        _init_uniform(self.input_weight, fan_in=model_dim, fan_out=num_heads * head_dim, gain=0.5**0.5)

    def forward(
        self,
        hidden: Float[Tensor, "B T D"],
        *,
        mask: AttentionMask | None = None,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Return for each position what it gathers from the positions that the mask lets it see."""
        query, keys, values = self._project(hidden, 0).unbind(2)
        return self._attend(query, keys, values, mask, tap, gates, self.window)

    def start(self, num_rows: int) -> KeyValueCache:
        """Return the cache of ``num_rows`` rows that have read nothing."""
        weight = self.input_weight
        return KeyValueCache.empty(num_rows, self.num_heads, self.head_dim, dtype=weight.dtype, device=weight.device)

    def step(
        self,
        hidden: Float[Tensor, "R T D"],
        cache: KeyValueCache,
        *,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "R T D"], KeyValueCache]:
        """Read further positions (usually one), each of which sees itself and all before it.

        Equal to ``forward`` over the whole sequence with the causal mask.
        """
        query, new_keys, new_values = self._project(hidden, cache.length).unbind(2)
        cache = cache.append(new_keys, new_values)
        num_new = hidden.shape[1]
        if num_new == 1 and tap is None and self.window is None:
            return self._attend(query, cache.key_room, cache.value_room, cache.mask, None, gates), cache
        mask = None
        if num_new > 1:
            keep = causal_keep(num_new, cache.length, cache.length - num_new, device=hidden.device)
            mask = AttentionMask(keep=keep[None])
        return self._attend(query, cache.keys, cache.values, mask, tap, gates, self.window), cache

    def keep_heads(self, heads: Sequence[int]) -> None:
        """Remove all heads but these (in this order); the parameters are new ones, so make optimisers afterwards."""
        self.input_weight = _keep_rows(self.input_weight, heads, 3 * self.head_dim)
        if self.input_bias is not None:
            self.input_bias = _keep_rows(self.input_bias, heads, 3 * self.head_dim)
        self._keep_output_heads(heads)

    def _project(self, hidden: Float[Tensor, "B T D"], offset: int) -> Float[Tensor, "B H 3 T E"]:
        """Return query, key and value; the first position stands at ``offset``."""
        fused_BTX = functional.linear(hidden, self.input_weight, self.input_bias)
        fused_BHCTE = _to_heads(fused_BTX, self.num_heads, 3, self.head_dim)
        if self.rotary is None:
            return fused_BHCTE
        query, keys, values = fused_BHCTE.unbind(2)
        return torch.stack([self.rotary(query, offset), self.rotary(keys, offset), values], dim=2)


class CrossAttention(MultiHeadAttention):
    """A sequence that attends to another, the memory.

    Args:
        query_dim: width of the sequence that asks.
        memory_dim: width of the memory.
        num_heads: how many heads; 0 is allowed.
        head_dim: width of each.
        output_dim: width of what is returned; absent means ``query_dim``.
        dropout: probability for the weights.
        bias: whether the projections have biases.
    """

    def __init__(
        self,
        query_dim: int,
        memory_dim: int,
        num_heads: int,
        head_dim: int,
        output_dim: int | None = None,
        dropout: float = 0.0,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_heads, head_dim, query_dim if output_dim is None else output_dim, dropout, bias=bias)
        self.query_weight = nn.Parameter(torch.empty(num_heads * head_dim, query_dim))
        self.query_bias = nn.Parameter(torch.zeros(num_heads * head_dim)) if bias else None
        self.memory_weight = nn.Parameter(torch.empty(num_heads * 2 * head_dim, memory_dim))
        self.memory_bias = nn.Parameter(torch.zeros(num_heads * 2 * head_dim)) if bias else None
        _init_uniform(self.query_weight, fan_in=query_dim, fan_out=num_heads * head_dim, gain=0.5**0.5)
        _init_uniform(self.memory_weight, fan_in=memory_dim, fan_out=num_heads * head_dim, gain=0.5**0.5)

    def project_memory(self, memory: Float[Tensor, "B K D"]) -> KeyValues:
        """Return the keys and values of a memory: once for a source, whatever the number of steps."""
        fused_BKX = functional.linear(memory, self.memory_weight, self.memory_bias)
        fused_BHCKE = _to_heads(fused_BKX, self.num_heads, 2, self.head_dim)
        keys, values = fused_BHCKE.unbind(2)
        return KeyValues(keys=keys, values=values)

    def forward(
        self,
        query: Float[Tensor, "B Q D"],
        memory: KeyValues,
        *,
        mask: AttentionMask | None = None,
        tap: ScopedTap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B Q O"]:
        """Return for each query what it gathers from its row of the memory.

        In a search the hypotheses of a sentence are its queries (Q = N), so the memory is never repeated.
        """
        query_BQX = functional.linear(query, self.query_weight, self.query_bias)
        query_BHQE = _to_heads(query_BQX, self.num_heads, 1, self.head_dim)[:, :, 0]
        return self._attend(query_BHQE, memory.keys, memory.values, mask, tap, gates)

    def keep_heads(self, heads: Sequence[int]) -> None:
        """Remove all heads but these (in this order); the parameters are new ones, so make optimisers afterwards."""
        self.query_weight = _keep_rows(self.query_weight, heads, self.head_dim)
        self.memory_weight = _keep_rows(self.memory_weight, heads, 2 * self.head_dim)
        if self.query_bias is not None and self.memory_bias is not None:
            self.query_bias = _keep_rows(self.query_bias, heads, self.head_dim)
            self.memory_bias = _keep_rows(self.memory_bias, heads, 2 * self.head_dim)
        self._keep_output_heads(heads)


def _to_heads(fused_BTX: Tensor, num_heads: int, num_parts: int, head_dim: int) -> Tensor:
    """Bring a fused projection into the order ``B H part T E`` with one copy."""
    rows, length, _ = fused_BTX.shape
    return fused_BTX.view(rows, length, num_heads, num_parts, head_dim).permute(0, 2, 3, 1, 4).contiguous()


def _init_uniform(weight: nn.Parameter, *, fan_in: int, fan_out: int, gain: float = 1.0) -> None:
    """Glorot and Bengio (2010, eq. 16), with the fans of one projection, not of those fused with it.

    Queries, keys and values start smaller, with a gain of 0.7: scores are products of two projections, and flatter
    weights at the start let a deep post-norm model learn sooner.
    """
    bound = gain * math.sqrt(6 / max(1, fan_in + fan_out))
    nn.init.uniform_(weight, -bound, bound)


def _keep_rows(weight: Tensor, heads: Sequence[int], rows_per_head: int, *, transposed: bool = False) -> nn.Parameter:
    """Return a parameter of the rows of these heads."""
    index = torch.as_tensor(list(heads), dtype=torch.long, device=weight.device)
    rows = (index[:, None] * rows_per_head + torch.arange(rows_per_head, device=weight.device)).flatten()
    kept = weight.detach()[rows]
    return nn.Parameter((kept.T if transposed else kept).clone(memory_format=torch.contiguous_format))
