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
    hidden: Float[Tensor, "R D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"] | None,
    targets: Int[Tensor, " R"],
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
        num_rows, vocabulary = hidden.shape[0], weight.shape[0]
        total = torch.zeros((), dtype=wide, device=hidden.device)
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros(weight.shape, dtype=wide, device=weight.device)
        grad_bias = None if bias is None else torch.zeros(bias.shape, dtype=wide, device=bias.device)
        buffer = hidden.new_empty(min(chunk_rows, num_rows), vocabulary)
        for begin in range(0, num_rows, chunk_rows):
            states, goals = hidden[begin : begin + chunk_rows], targets[begin : begin + chunk_rows]
            logits = _logits(states, weight, bias, out=buffer[: states.shape[0]])
            # Single elements are read and written through a flat view: `scatter_` passes over the whole matrix.
            flat, places = logits.view(-1), torch.arange(len(states), device=goals.device) * vocabulary + goals
            goal_logits = flat[places].to(wide)
            probabilities = torch.softmax(logits, -1, out=logits)
            goal_probs = flat[places].to(wide)
            total += (
                _log_sums(states, weight, bias, goal_logits, goal_probs).sum() - (1 - smoothing) * goal_logits.sum()
            )
            if not any(ctx.needs_input_grad):
                continue
            # The gradient of the logits is p, less 1 - smoothing at the goal, less smoothing / V everywhere. The last
            # is the same for all symbols and joins after the loop, which saves a pass over the logits.
            flat[places] = (goal_probs - (1 - smoothing)).to(flat.dtype)
            grad_logits = probabilities
            torch.mm(grad_logits, weight, out=grad_hidden[begin : begin + chunk_rows])
            grad_weight += grad_logits.T @ states
            if grad_bias is not None:
                grad_bias += grad_logits.new_ones(len(states)) @ grad_logits  # several times quicker than `sum`
        if smoothing:
            # The mean of a row's logits is its product with the mean of the weight's rows.
            mean_weight, sum_hidden = weight.mean(0, dtype=wide), hidden.sum(0, dtype=wide)
            total -= smoothing * (sum_hidden @ mean_weight)
            grad_hidden -= (smoothing * mean_weight).to(grad_hidden.dtype)
            grad_weight -= smoothing / vocabulary * sum_hidden
            if bias is not None and grad_bias is not None:
                total -= smoothing * num_rows * bias.mean(dtype=wide)
                grad_bias -= smoothing / vocabulary * num_rows
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


def _logits(states: Tensor, weight: Tensor, bias: Tensor | None, *, out: Tensor) -> Tensor:
    return torch.mm(states, weight.T, out=out) if bias is None else torch.addmm(bias, states, weight.T, out=out)


def _log_sums(
    states: Float[Tensor, "R D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"] | None,
    goal_logits: Float[Tensor, " R"],
    goal_probs: Float[Tensor, " R"],
) -> Float[Tensor, " R"]:
    """Return the logarithm of each row's sum of exponentials: the goal's logit less its log-probability.

    A goal that is as good as impossible has no logarithm; such rows are few, and their logits are computed again.
    """
    log_sums = goal_logits - goal_probs.log()
    (hopeless,) = torch.where(goal_probs < 1e-30)
    if len(hopeless):
        logits = functional.linear(states[hopeless], weight, bias)
        log_sums[hopeless] = logits.to(goal_logits.dtype).logsumexp(-1)
    return log_sums
