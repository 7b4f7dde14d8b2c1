"""Cross-entropy over a vocabulary, without ever holding the logits of all rows."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from heedful.core.types import LossSum

_CHUNK_ROWS = 1024


def cross_entropy(
    hidden: Float[Tensor, "N D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"] | None,
    targets: Int[Tensor, " N"],
    *,
    label_smoothing: float = 0.0,
    chunk_rows: int = _CHUNK_ROWS,
) -> LossSum:
    """Return the summed cross-entropy of ``softmax(hidden weight^T + bias)`` against the targets, in nats.

    Logits are computed for ``chunk_rows`` rows at a time; their gradient is known at once and is multiplied into those
    of hidden states and weight in the same pass, so the next chunk can use the same memory.

    Args:
        hidden: a state for each symbol to be predicted; only real ones, no padding.
        weight: of the output layer.
        bias: of the output layer, or None.
        targets: the symbols to be predicted.
        label_smoothing: share of the probability spread evenly over the vocabulary (Szegedy et al. 2016, section 7).
        chunk_rows: rows per piece.
    """
    total = _VocabularyLoss.apply(hidden, weight, bias, targets, label_smoothing, chunk_rows)  # type: ignore[no-untyped-call]
    return LossSum(total, total.new_tensor(float(targets.shape[0])))


def classification_loss(
    logits: Float[Tensor, "B C"], labels: Int[Tensor, " B"], *, label_smoothing: float = 0.0
) -> LossSum:
    """Return the summed cross-entropy of ``softmax(logits)`` against the labels, in nats; for few classes."""
    wide = logits if logits.dtype == torch.float64 else logits.float()
    total = functional.cross_entropy(wide, labels, reduction="sum", label_smoothing=label_smoothing)
    return LossSum(total, total.new_tensor(float(labels.shape[0])))


class _VocabularyLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        chunk_rows: int,
    ) -> Tensor:
        wide = torch.float64 if hidden.dtype == torch.float64 else torch.float32
        needs_gradient = any(ctx.needs_input_grad)
        num_rows, vocabulary = hidden.shape[0], weight.shape[0]
        total = torch.zeros((), dtype=wide, device=hidden.device)
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros(weight.shape, dtype=wide, device=weight.device)
        grad_bias = None if bias is None else torch.zeros(bias.shape, dtype=wide, device=bias.device)
        # The mean of a row's logits is its product with the mean of the weight's rows: no pass over the logits.
        mean_weight = weight.to(wide).mean(0)
        mean_bias = 0.0 if bias is None else bias.to(wide).mean()
        buffer = hidden.new_empty(min(chunk_rows, num_rows), vocabulary)
        for begin in range(0, num_rows, chunk_rows):
            rows = slice(begin, begin + chunk_rows)
            states, goals = hidden[rows], targets[rows, None]
            logits = buffer[: states.shape[0]]
            if bias is None:
                torch.mm(states, weight.T, out=logits)
            else:
                torch.addmm(bias, states, weight.T, out=logits)
            goal_logits, highest = logits.gather(1, goals).to(wide), logits.amax(1).to(wide)
            probabilities = torch.softmax(logits, -1, out=logits)
            # The highest probability is at least 1/V, so its logarithm is safe in any type.
            log_sums = highest - probabilities.amax(1).to(wide).log()
            total += log_sums.sum() - (1 - smoothing) * goal_logits.sum()
            if smoothing:
                total -= smoothing * (states.to(wide) @ mean_weight + mean_bias).sum()
            if not needs_gradient:
                continue
            grad_logits = probabilities
            if smoothing:
                grad_logits -= smoothing / vocabulary
            grad_logits.scatter_add_(1, goals, grad_logits.new_full((1, 1), smoothing - 1).expand_as(goals))
            torch.mm(grad_logits, weight, out=grad_hidden[rows])
            grad_weight += grad_logits.T @ states
            if grad_bias is not None:
                grad_bias += grad_logits.sum(0, dtype=wide)
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        ctx.dtypes = weight.dtype, None if bias is None else bias.dtype
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        weight_dtype, bias_dtype = ctx.dtypes
        (scale,) = gradients
        grad_bias = None if grad_bias is None else (grad_bias * scale).to(bias_dtype)
        return (
            grad_hidden * scale.to(grad_hidden.dtype),
            (grad_weight * scale).to(weight_dtype),
            grad_bias,
            None,
            None,
            None,
        )
