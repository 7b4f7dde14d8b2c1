"""The two recurrences over a whole sequence, each with its backward pass written by hand.

Autograd over a loop of small operations spends most of its time in bookkeeping. Here the part of every gate that does
not depend on the past arrives ready (one matrix product for all positions), the loop does one product and a few
elementwise operations a position, and the backward loop fewer still: the local derivatives of all positions are
computed at once, outside it, and so is the gradient of the recurrent weight.

Inside, time is axis 0, so that a position is contiguous.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class LstmRecurrence(torch.autograd.Function):
    """Long short-term memory (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000).

    With gates output, input, forget and candidate (in this order along ``4D``)::

        o, i, f = sigmoid(...),  g = tanh(...)  of  projected_t + W hidden_(t-1)
        cell_t = f * cell_(t-1) + i * g,   hidden_t = o * tanh(cell_t)

    The cell is a long sum and stays float32 whatever the type of the rest (unless that is wider).
    """

    @staticmethod
    def forward(ctx: Any, projected_TBG: Tensor, hidden_BD: Tensor, cell_BD: Tensor, weight_GD: Tensor) -> Any:
        """Return the hidden and the cell states of all positions, ``T B D`` each."""
        steps, rows, _ = projected_TBG.shape
        size = hidden_BD.shape[-1]
        gates = torch.empty_like(projected_TBG, memory_format=torch.contiguous_format)
        hidden = projected_TBG.new_empty(steps + 1, rows, size)
        cell = cell_BD.new_empty(steps + 1, rows, size)
        squashed = torch.empty_like(hidden[1:])
        hidden[0], cell[0] = hidden_BD, cell_BD
        recurrent = weight_GD.t()
        for t in range(steps):
            now = torch.addmm(projected_TBG[t], hidden[t], recurrent, out=gates[t])
            now[:, : 3 * size].sigmoid_()
            now[:, 3 * size :].tanh_()
            o, i, f, g = now.view(rows, 4, size).unbind(1)
            torch.mul(cell[t], f, out=cell[t + 1])
            cell[t + 1].add_(i * g)
            torch.mul(o, squashed[t].copy_(cell[t + 1]).tanh_(), out=hidden[t + 1])
        ctx.save_for_backward(gates, hidden, cell, squashed, weight_GD)
        ctx.set_materialize_grads(False)
        return hidden[1:], cell[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_hidden: Tensor | None, grad_cell: Tensor | None) -> Any:
        gates, hidden, cell, squashed, weight_GD = ctx.saved_tensors
        steps, rows, width = gates.shape
        size = width // 4
        o, i, f, g = gates.view(steps, rows, 4, size).unbind(2)
        local = torch.empty_like(gates).view(steps, rows, 4, size)
        torch.mul(o - o * o, squashed, out=local[:, :, 0])
        torch.mul(i - i * i, g, out=local[:, :, 1])
        torch.mul(f - f * f, cell[:-1].to(f.dtype), out=local[:, :, 2])
        torch.mul(i, 1 - g * g, out=local[:, :, 3])
        through_tanh = o * (1 - squashed * squashed)
        grad_gates = torch.empty_like(local)
        d_hidden, d_cell = torch.zeros_like(hidden[0]), torch.zeros_like(cell[0])
        for t in reversed(range(steps)):
            if grad_hidden is not None:
                d_hidden += grad_hidden[t]
            if grad_cell is not None:
                d_cell += grad_cell[t]
            d_cell += d_hidden * through_tanh[t]
            torch.mul(d_hidden, local[t, :, 0], out=grad_gates[t, :, 0])
            torch.mul(d_cell.to(gates.dtype).unsqueeze(1), local[t, :, 1:], out=grad_gates[t, :, 1:])
            d_cell *= f[t]
            torch.mm(grad_gates[t].view(rows, width), weight_GD, out=d_hidden)
        flat = grad_gates.view(steps * rows, width)
        grad_weight = flat.t() @ hidden[:-1].reshape(steps * rows, size) if ctx.needs_input_grad[3] else None
        return grad_gates.view(steps, rows, width), d_hidden, d_cell, grad_weight


class GruRecurrence(torch.autograd.Function):
    """Gated recurrent unit (Cho et al. 2014), in the form whose reset gate acts after the product with ``W_n``.

    With gates reset, update and candidate (in this order along ``3D``)::

        r, z = sigmoid(projected_t + W hidden_(t-1)),   n = tanh(projected_t + r * (W_n hidden_(t-1) + b_n))
        hidden_t = (1 - z) * n + z * hidden_(t-1)
    """

    @staticmethod
    def forward(ctx: Any, projected_TBG: Tensor, hidden_BD: Tensor, weight_GD: Tensor, bias_D: Tensor) -> Tensor:
        """Return the hidden states of all positions, ``T B D``."""
        steps, rows, width = projected_TBG.shape
        size = hidden_BD.shape[-1]
        gates = torch.empty_like(projected_TBG, memory_format=torch.contiguous_format)
        hidden = projected_TBG.new_empty(steps + 1, rows, size)
        inner = torch.empty_like(hidden[1:])
        hidden[0] = hidden_BD
        recurrent = weight_GD.t()
        product = projected_TBG.new_empty(rows, width)
        for t in range(steps):
            torch.mm(hidden[t], recurrent, out=product)
            now = gates[t]
            torch.add(projected_TBG[t, :, : 2 * size], product[:, : 2 * size], out=now[:, : 2 * size]).sigmoid_()
            r, z, n = now.view(rows, 3, size).unbind(1)
            torch.add(product[:, 2 * size :], bias_D, out=inner[t])
            torch.addcmul(projected_TBG[t, :, 2 * size :], r, inner[t], out=n).tanh_()
            torch.lerp(n, hidden[t], z, out=hidden[t + 1])
        ctx.save_for_backward(gates, hidden, inner, weight_GD)
        return hidden[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_hidden: Tensor) -> Any:
        gates, hidden, inner, weight_GD = ctx.saved_tensors
        steps, rows, width = gates.shape
        size = width // 3
        r, z, n = gates.view(steps, rows, 3, size).unbind(2)
        # Every gradient at a position is a factor times that of its hidden state. In the order candidate (as the
        # input sees it), reset, update, candidate (as the recurrent product sees it): columns 1.. go back in time.
        local = gates.new_empty(steps, rows, 4, size)
        torch.mul(1 - z, 1 - n * n, out=local[:, :, 0])
        torch.mul(local[:, :, 0], inner * (r - r * r), out=local[:, :, 1])
        torch.mul(hidden[:-1] - n, z - z * z, out=local[:, :, 2])
        torch.mul(local[:, :, 0], r, out=local[:, :, 3])
        grads = torch.empty_like(local)
        d_hidden = torch.zeros_like(hidden[0])
        for t in reversed(range(steps)):
            d_hidden += grad_hidden[t]
            torch.mul(d_hidden.unsqueeze(1), local[t], out=grads[t])
            d_hidden = torch.addmm(d_hidden * z[t], grads[t, :, 1:].reshape(rows, width), weight_GD)
        back = grads[:, :, 1:].reshape(steps * rows, width)
        grad_weight = back.t() @ hidden[:-1].reshape(steps * rows, size) if ctx.needs_input_grad[2] else None
        grad_bias = back[:, 2 * size :].sum(0) if ctx.needs_input_grad[3] else None
        grad_projected = torch.cat((grads[:, :, 1:3], grads[:, :, :1]), dim=2).view(steps, rows, width)
        return grad_projected, d_hidden, grad_weight, grad_bias
