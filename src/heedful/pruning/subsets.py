"""Subsets of a given size, drawn at random in a way that has gradients: Gumbel top-k, relaxed.

Adding Gumbel noise to keys and taking the k highest draws k items without replacement, with probabilities by the keys
(Vieira 2014; Kool et al. 2019). Repeating a softmax that steps aside from what it has already taken relaxes that
(Plötz and Roth 2018, section 4; Xie and Ermon 2019, section 3). Li, Cotterell and Sachan (2021), "Differentiable Subset
Pruning of Transformer Heads", section 3, learn the keys of heads with it.
"""

import torch
from jaxtyping import Float
from torch import Tensor

_SMALLEST = 1e-6


def gumbel(like: Float[Tensor, " heads"]) -> Float[Tensor, " heads"]:
    """Return noise from the standard Gumbel distribution."""
    return -torch.empty_like(like).exponential_().clamp(min=_SMALLEST).log()


def relaxed_top(keys: Float[Tensor, " heads"], size: int, temperature: float) -> Float[Tensor, " heads"]:
    """Return how far each item is among the highest: numbers from 0 on that sum to the size; some may pass 1 while the
    temperature is high.

    Args:
        keys: of the items, noise included.
        size: how many are taken.
        temperature: towards 0 the numbers become 0 and 1.
    """
    taken = torch.zeros_like(keys)
    logits = keys / temperature
    for _ in range(size):
        share = torch.softmax(logits, 0)
        taken = taken + share
        logits = logits + torch.log((1 - share).clamp(min=_SMALLEST)) / temperature
    return taken


def top(keys: Float[Tensor, " heads"], size: int) -> Float[Tensor, " heads"]:
    """Return 1 for the highest, exactly so many, and 0 for the others; of equals the earlier."""
    taken = torch.zeros_like(keys)
    taken[keys.detach().sort(descending=True, stable=True).indices[:size]] = 1.0
    return taken


def straight_through(keys: Float[Tensor, " heads"], size: int, temperature: float) -> Float[Tensor, " heads"]:
    """Return the highest as 0 and 1, with the gradient of their relaxation (Bengio et al. 2013)."""
    relaxed = relaxed_top(keys, size, temperature)
    return top(keys, size) + relaxed - relaxed.detach()
