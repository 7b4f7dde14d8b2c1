"""Which heads did it: by how much each symbol of an answer loses probability when one head is silent.

Measured, not estimated: the answer is forced through the model once for every head.
"""

from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attention.tap import Gates
from heedful.core.types import Batch
from heedful.models.interfaces import AttentionSite, Classifies, Generates, Model


def silence(sites: Sequence[AttentionSite], heads: Iterable[tuple[str, int]]) -> Gates:
    """Return gates that silence these heads, each a site's path and a number, and leave all others open."""
    sizes = {each.path: each.num_heads for each in sites}
    factors: dict[str, Tensor] = {}
    for path, head in heads:
        factors.setdefault(path, torch.ones(sizes[path]))[head] = 0.0
    return Gates(factors)


@torch.no_grad()
def answer_log_probs(model: Model, batch: Batch, gates: Gates | None = None) -> Float[Tensor, "B T"]:
    """Return the log-probability of each position of the batch's targets (or of its label), given those before."""
    if isinstance(model, Classifies):
        assert batch.labels is not None
        return model.classify(batch, gates=gates).float().log_softmax(-1).gather(-1, batch.labels[:, None])
    assert isinstance(model, Generates)
    hidden = model.decode(model.encode(batch, gates=gates), batch.target_input, gates=gates)
    log_probs = model.output.log_probs(hidden)
    return log_probs.gather(-1, batch.target_output[:, :, None])[:, :, 0]


def losses_of_silence(
    model: Model, batch: Batch, heads: Sequence[tuple[str, int]]
) -> tuple[Float[Tensor, " T"], Float[Tensor, "H T"]]:
    """Return the log-probabilities of a batch of one row, and what each is lessened by as each head is silent."""
    sites = model.attention_sites()
    before = answer_log_probs(model, batch)
    after = [answer_log_probs(model, batch, silence(sites, [head])) for head in heads]
    losses = torch.cat([before - each for each in after]) if after else before[:0]
    return before[0].cpu(), losses.cpu()
