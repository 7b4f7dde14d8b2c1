"""From hidden states to a distribution over the vocabulary."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional


class OutputLayer(nn.Module):
    """A linear layer from hidden states to logits, whose weight may be an embedding's (Press and Wolf 2017).

    The loss reads ``weight`` and ``bias`` and computes logits itself, in pieces; only a search asks for them whole.

    Args:
        model_dim: width of hidden states.
        vocabulary: number of symbols.
        weight: an embedding's weight ``V D``, to be shared; absent means an own one.
        bias: whether each symbol has a bias of its own.
    """

    def __init__(
        self, model_dim: int, vocabulary: int, *, weight: nn.Parameter | None = None, bias: bool = True
    ) -> None:
        super().__init__()
        if weight is None:
            weight = nn.Parameter(torch.empty(vocabulary, model_dim))
            nn.init.normal_(weight, std=model_dim**-0.5)
        assert weight.shape == (vocabulary, model_dim)
        self.weight = weight
        self.bias = nn.Parameter(torch.zeros(vocabulary)) if bias else None

    def forward(self, hidden: Float[Tensor, "*rows D"]) -> Float[Tensor, "*rows V"]:
        """Return logits, in the type of the hidden states."""
        return functional.linear(hidden, self.weight, self.bias)

    def log_probs(self, hidden: Float[Tensor, "*rows D"]) -> Float[Tensor, "*rows V"]:
        """Return log-probabilities in float32 (in float64 for float64)."""
        logits = functional.linear(hidden, self.weight, self.bias)
        wide = logits if logits.dtype == torch.float64 else logits.float()
        if torch.is_grad_enabled():
            return wide.log_softmax(-1)
        # In place: in a search this is the largest tensor of a step, and fresh memory costs as much as the softmax.
        return torch.log_softmax(wide, -1, out=wide)
