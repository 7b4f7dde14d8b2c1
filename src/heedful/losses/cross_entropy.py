"""Cross-entropy over a vocabulary, without ever holding the logits of all rows."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from heedful.core.types import LossSum, SoftTargets

_CHUNK_ROWS = 1024


@dataclass(frozen=True)
class Goals:
    """The distribution that is wanted at each row.

    Attributes:
        symbols: those that are named; the first of a row may stand among its others once more.
        probs: of these; 0 for one that repeats the first.
        rest: what is spread evenly over the whole vocabulary. With `probs` it sums to 1.
    """

    symbols: Int[Tensor, "R K"]
    probs: Float[Tensor, "R K"]
    rest: Float[Tensor, " R"]

    @classmethod
    def of(cls, targets: Int[Tensor, " R"], label_smoothing: float, soft: SoftTargets | None) -> "Goals":
        """Return what is wanted of targets, smoothed, and of a teacher's word on them."""
        smooth = torch.full(targets.shape, label_smoothing, dtype=torch.float64, device=targets.device)
        if soft is None:
            return cls(targets[:, None], (1 - smooth)[:, None], smooth)
        taught = soft.share * soft.probs.double()
        rest = (1 - soft.share) * smooth + (soft.share - taught.sum(-1)).clamp(min=0.0)
        is_target = soft.ids == targets[:, None]
        own = (1 - soft.share) * (1 - smooth) + taught.masked_fill(~is_target, 0.0).sum(-1)
        others = taught.masked_fill(is_target, 0.0)
        return cls(torch.cat([targets[:, None], soft.ids], -1), torch.cat([own[:, None], others], -1), rest)


def cross_entropy(
    hidden: Float[Tensor, "R D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"] | None,
    targets: Int[Tensor, " R"],
    *,
    label_smoothing: float = 0.0,
    soft: SoftTargets | None = None,
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
        soft: a teacher's word on each row, ``R K``. Its share of the loss is the cross-entropy against the teacher
            (Hinton et al. 2015, section 2; without temperature), what its symbols lack to 1 spread evenly.
        chunk_rows: rows per piece.
    """
    goals = Goals.of(targets, label_smoothing, soft)
    total = _VocabularyLoss.apply(hidden, weight, bias, goals, chunk_rows)  # type: ignore[no-untyped-call]
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
        goals: Goals,
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
            chunk = slice(begin, begin + chunk_rows)
            states, wanted = hidden[chunk], goals.probs[chunk].to(wide)
            logits = _logits(states, weight, bias, out=buffer[: states.shape[0]])
            # Single elements are read and written through a flat view: `scatter_` passes over the whole matrix.
            flat = logits.view(-1)
            places = goals.symbols[chunk] + torch.arange(len(states), device=hidden.device)[:, None] * vocabulary
            wanted_logits = flat[places].to(wide)
            probabilities = torch.softmax(logits, -1, out=logits)
            found = flat[places].to(wide)
            total += _log_sums(states, weight, bias, wanted_logits[:, 0], found[:, 0]).sum()
            total -= (wanted * wanted_logits).sum()
            if not any(ctx.needs_input_grad):
                continue
            # The gradient of the logits is p less what is wanted of the named symbols, less rest / V everywhere. The
            # last joins after the loop, which saves a pass over the logits. The first symbol of a row is written last,
            # as it may stand among the others once more.
            change = (found - wanted).to(flat.dtype)
            flat[places[:, 1:]] = change[:, 1:]
            flat[places[:, 0]] = change[:, 0]
            grad_logits = probabilities
            torch.mm(grad_logits, weight, out=grad_hidden[chunk])
            grad_weight += grad_logits.T @ states
            if grad_bias is not None:
                grad_bias += grad_logits.new_ones(len(states)) @ grad_logits  # several times quicker than `sum`
        # The mean of a row's logits is its product with the mean of the weight's rows.
        rest, mean_weight = goals.rest.to(wide), weight.mean(0, dtype=wide)
        sum_hidden = rest @ hidden.to(wide)
        total -= sum_hidden @ mean_weight
        grad_hidden -= torch.outer(rest, mean_weight).to(grad_hidden.dtype)
        grad_weight -= sum_hidden / vocabulary
        if bias is not None and grad_bias is not None:
            total -= rest.sum() * bias.mean(dtype=wide)
            grad_bias -= rest.sum() / vocabulary
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
