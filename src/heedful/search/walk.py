"""One path for each row, symbol by symbol: what greedy search and sampling have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.errors import ConfigError
from heedful.core.symbols import BOS_ID, EOS_ID, PAD_ID
from heedful.core.types import Selectable, StepFn
from heedful.search.compaction import rows_to_keep
from heedful.search.constraints import Constraints
from heedful.search.hypothesis import Hypothesis


class Chooser(Selectable, ABC):
    """How the next symbol of each path is chosen."""

    num_paths: int

    @abstractmethod
    def choose(self, log_probs: Float[Tensor, "B N V"], step: int) -> Int[Tensor, "B N"]:
        """Return a symbol for each path."""


class Symbols(NamedTuple):
    """What one step added.

    Attributes:
        lines: the sentence of each row.
        ids: the symbol each of its paths went on with; EOS where it ended now, PAD where it had ended before.
    """

    lines: list[int]
    ids: list[list[int]]


@dataclass(frozen=True, kw_only=True)
class Paths(Selectable):
    """The paths of the sentences still in the batch.

    Attributes:
        lines: which sentence of the call each row is.
        log_prob: summed so far.
        tokens: symbols so far.
        is_open: True until EOS was chosen.
        attention: weights of each step so far, where they are kept.
    """

    lines: Int[Tensor, " B"]
    log_prob: Float[Tensor, "B N"]
    tokens: Int[Tensor, "B N T"]
    is_open: Bool[Tensor, "B N"]
    attention: Float[Tensor, "B N _ S"] | None = None


@torch.no_grad()
def walk(
    step_fn: StepFn,
    memory: Selectable,
    state: Selectable,
    chooser: Chooser,
    constraints: Constraints,
    finished: list[list[Hypothesis]],
    *,
    keep_attention: bool = False,
) -> Iterator[Symbols]:
    """Go on until every path has ended; yield the symbols of each step, and add what ends to `finished`.

    Args:
        step_fn: the model, one step at a time.
        memory: rows are sentences.
        state: before the first step, one row for each sentence.
        chooser: made for these rows.
        constraints: made for these rows.
        finished: an empty list for each sentence.
        keep_attention: give each hypothesis its attention.
    """
    paths, state = _begin(state, constraints, chooser.num_paths)
    ids = torch.full_like(paths.tokens.new_empty(paths.log_prob.shape), BOS_ID)
    while ids.shape[0]:
        output = step_fn(ids, memory, state)
        is_cut = constraints.apply(output.log_probs, paths.tokens)
        ids = chooser.choose(output.log_probs, paths.tokens.shape[2])
        if keep_attention:
            paths = _look(paths, output.attention)
        paths, ids = _extend(paths, ids, output.log_probs, is_cut, finished)
        yield Symbols(paths.lines.tolist(), ids.tolist())
        state = output.state
        kept = rows_to_keep(~paths.is_open.any(dim=1))
        if kept is not None:
            state = state.select(_rows_of(kept, chooser.num_paths))
            memory, constraints, chooser = memory.select(kept), constraints.select(kept), chooser.select(kept)
            paths, ids = paths.select(kept), ids[kept]


def _rows_of(sentences: Int[Tensor, " B"], num_paths: int) -> Int[Tensor, " R"]:
    """Return the state's rows of the sentences."""
    return (sentences[:, None] * num_paths + torch.arange(num_paths, device=sentences.device)).flatten()


def _begin(state: Selectable, constraints: Constraints, num_paths: int) -> tuple[Paths, Selectable]:
    limits = constraints.rows.max_length
    lines = torch.arange(limits.shape[0], device=limits.device)
    shape = (limits.shape[0], num_paths)
    paths = Paths(
        lines=lines,
        log_prob=torch.zeros(shape, dtype=torch.float64, device=limits.device),
        tokens=limits.new_empty(*shape, 0),
        is_open=torch.ones(shape, dtype=torch.bool, device=limits.device),
    )
    return paths, state if num_paths == 1 else state.select(lines.repeat_interleave(num_paths))


def _look(paths: Paths, attention: Tensor | None) -> Paths:
    if attention is None:
        raise ConfigError("The search needs attention, but the step function gives none.")
    step = attention[:, :, None]
    return replace(paths, attention=step if paths.attention is None else torch.cat([paths.attention, step], dim=2))


def _extend(
    paths: Paths, ids: Tensor, log_probs: Tensor, is_cut: Tensor | None, finished: list[list[Hypothesis]]
) -> tuple[Paths, Tensor]:
    """Add the chosen symbols to the open paths, and store the paths that end with them."""
    ids = ids.masked_fill(~paths.is_open, PAD_ID)
    added = log_probs.gather(2, ids[:, :, None]).squeeze(2).masked_fill(~paths.is_open, 0)
    paths = replace(paths, log_prob=paths.log_prob + added)
    ends = ids == EOS_ID
    if ends.any():
        _store(paths, ends, is_cut, finished)
    return replace(paths, tokens=torch.cat([paths.tokens, ids[:, :, None]], dim=2), is_open=paths.is_open & ~ends), ids


def _store(paths: Paths, ends: Tensor, is_cut: Tensor | None, finished: list[list[Hypothesis]]) -> None:
    log_prob = paths.log_prob[ends].tolist()
    complete = [True] * len(log_prob) if is_cut is None else (~is_cut[ends]).tolist()
    attention = [None] * len(log_prob) if paths.attention is None else paths.attention[ends].unbind()
    lines = paths.lines[:, None].expand_as(ends)[ends].tolist()
    columns = (paths.tokens[ends].tolist(), log_prob, log_prob, complete, attention)
    for line, ids, *rest in zip(lines, *columns, strict=True):
        finished[line].append(Hypothesis(tuple(ids), *rest))
