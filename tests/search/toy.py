"""A small model that is exactly independent of its neighbours: a random table of second-order transitions."""

from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.core.symbols import BOS_ID, EOS_ID
from heedful.core.types import Selectable, StepOutput


@dataclass(frozen=True)
class ToyMemory(Selectable):
    """Each sentence has its own table ``V V V`` of log-probabilities and its own attention ``V S``."""

    table: Tensor
    attention: Tensor


@dataclass(frozen=True)
class ToyState(Selectable):
    """The symbol before the last."""

    previous: Tensor


def toy(num_sentences: int, vocabulary: int, seed: int, *, sharpness: float = 2.0, source: int = 3) -> ToyMemory:
    """Return tables drawn from a seed, a generator for each sentence."""
    tables, attentions = [], []
    for sentence in range(num_sentences):
        generator = torch.Generator().manual_seed(1000 * seed + sentence)
        logits = sharpness * torch.randn(vocabulary, vocabulary, vocabulary, generator=generator)
        tables.append(logits.log_softmax(dim=2))
        attentions.append(torch.randn(vocabulary, source, generator=generator).softmax(dim=1))
    return ToyMemory(torch.stack(tables), torch.stack(attentions))


def start(memory: ToyMemory) -> ToyState:
    """Return the state before the first step."""
    return ToyState(torch.full((memory.table.shape[0],), BOS_ID))


def step(ids: Tensor, memory: Selectable, state: Selectable) -> StepOutput:
    """Look the next distribution up."""
    assert isinstance(memory, ToyMemory) and isinstance(state, ToyState)
    rows = torch.arange(ids.shape[0])[:, None]
    log_probs = memory.table[rows, state.previous.view_as(ids), ids]
    return StepOutput(log_probs, ToyState(ids.flatten()), memory.attention[rows, ids])


def log_prob_of(memory: ToyMemory, row: int, ids: tuple[int, ...]) -> float:
    """Return the forced log-probability of a whole output, EOS included."""
    path = [BOS_ID, BOS_ID, *ids, EOS_ID]
    return sum(memory.table[row, a, b, c].double().item() for a, b, c in zip(path, path[1:], path[2:], strict=False))
