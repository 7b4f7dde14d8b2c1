"""Recurrent layers: by hand, against torch's own, against numeric gradients, padded against alone."""

import pytest
import torch
from torch import Tensor, nn

from heedful.layers.recurrence import GruRecurrence, LstmRecurrence
from heedful.layers.recurrent import (
    CELLS,
    CellName,
    GruLayer,
    LstmLayer,
    RecurrentEncoder,
    RecurrentStack,
    reverse_rows,
)

B, T, INPUT, D, L = 3, 5, 7, 2, 2


def rand(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape))) * 0.7


def test_lstm_recurrence_gradients_are_numeric_gradients() -> None:
    inputs = [rand(T, B, 4 * D), rand(B, D), rand(B, D), rand(4 * D, D)]
    assert torch.autograd.gradcheck(LstmRecurrence.apply, [each.requires_grad_() for each in inputs])


def test_gru_recurrence_gradients_are_numeric_gradients() -> None:
    inputs = [rand(T, B, 3 * D), rand(B, D), rand(3 * D, D), rand(D)]
    assert torch.autograd.gradcheck(GruRecurrence.apply, [each.requires_grad_() for each in inputs])


def test_lstm_step_by_hand() -> None:
    layer = LstmLayer(1, 1)
    with torch.no_grad():
        layer.input_weight.copy_(torch.tensor([[0.0], [1.0], [0.0], [2.0]]))  # output, input, forget, candidate
        layer.recurrent_weight.copy_(torch.tensor([[1.0], [0.0], [0.0], [0.0]]))
        layer.bias.zero_()
    hidden, cell = layer.run(layer.project(torch.tensor([[[1.0]]])), (torch.tensor([[3.0]]), torch.tensor([[0.5]])))
    # o = s(3) = 0.95257, i = s(1) = 0.73106, f = s(0) = 0.5, g = tanh(2) = 0.96403
    # cell = 0.5 * 0.5 + 0.73106 * 0.96403 = 0.95476; hidden = 0.95257 * tanh(0.95476) = 0.95257 * 0.74193 = 0.70674
    torch.testing.assert_close(cell.item(), 0.95476, atol=1e-5, rtol=0)
    torch.testing.assert_close(hidden.item(), 0.70674, atol=1e-5, rtol=0)


def test_gru_step_by_hand() -> None:
    layer = GruLayer(1, 1)
    with torch.no_grad():
        layer.input_weight.copy_(torch.tensor([[0.0], [1.0], [1.0]]))  # reset, update, candidate
        layer.recurrent_weight.copy_(torch.tensor([[0.0], [0.0], [2.0]]))
        layer.candidate_bias.fill_(1.0)
    (hidden,) = layer.run(layer.project(torch.tensor([[[1.0]]])), (torch.tensor([[0.5]]),))
    # r = 0.5, z = s(1) = 0.73106, n = tanh(1 + 0.5 * (2 * 0.5 + 1)) = tanh(2) = 0.96403
    # hidden = 0.26894 * 0.96403 + 0.73106 * 0.5 = 0.62480
    torch.testing.assert_close(hidden.item(), 0.62480, atol=1e-5, rtol=0)


def copy_gates(theirs: Tensor, ours: Tensor, order: list[int]) -> None:
    with torch.no_grad():
        ours.copy_(torch.cat([theirs.chunk(len(order))[index] for index in order]))


def as_torch(layer: LstmLayer | GruLayer) -> nn.LSTM | nn.GRU:
    """Return torch's layer, and give ours its weights."""
    torch.manual_seed(0)
    theirs = (nn.LSTM if isinstance(layer, LstmLayer) else nn.GRU)(INPUT, D, batch_first=True)
    order = [3, 0, 1, 2] if isinstance(layer, LstmLayer) else [0, 1, 2]
    copy_gates(theirs.weight_ih_l0, layer.input_weight, order)
    copy_gates(theirs.weight_hh_l0, layer.recurrent_weight, order)
    bias = theirs.bias_hh_l0.detach().clone()
    if isinstance(layer, GruLayer):
        layer.candidate_bias.data.copy_(bias[2 * D :])
        bias[2 * D :] = 0
    copy_gates(theirs.bias_ih_l0 + bias, layer.bias, order)
    return theirs


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_layer_equals_torchs_with_gradients(cell: str) -> None:
    ours = CELLS[cell](INPUT, D)
    theirs = as_torch(ours)
    inputs = torch.randn(B, T, INPUT)
    start = tuple(torch.randn(B, D) for _ in range(ours.num_parts))
    weight = torch.randn(B, T, D)
    first, second = inputs.clone().requires_grad_(), inputs.clone().requires_grad_()
    states = ours.run(ours.project(first), start)
    packed = tuple(part[None] for part in start)
    expected, last = theirs(second, packed if cell == "lstm" else packed[0])
    torch.testing.assert_close(states[0], expected)
    torch.testing.assert_close(states[-1][:, -1], last[-1][0] if cell == "lstm" else last[0])
    (states[0] * weight).sum().backward()
    (expected * weight).sum().backward()
    torch.testing.assert_close(first.grad, second.grad)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_stack_in_pieces_equals_stack_at_once(cell: CellName) -> None:
    stack = RecurrentStack(cell, INPUT, D, L, dropout=0.0)
    inputs = torch.randn(B, T, INPUT)
    whole, end = stack(inputs, stack.initial(B))
    state, pieces = stack.initial(B), []
    for now in inputs.split([1, 3, 1], dim=1):
        piece, state = stack(now, state)
        pieces.append(piece)
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole)
    torch.testing.assert_close(state, end)
    assert all(part.shape == (B, L, D) for part in end)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("is_bidirectional", [True, False])
def test_encoder_reads_a_padded_row_as_if_alone(cell: CellName, *, is_bidirectional: bool) -> None:
    encoder = RecurrentEncoder(cell, INPUT, 6, L, is_bidirectional=is_bidirectional, dropout=0.0)
    lengths = torch.tensor([5, 1, 3])
    inputs = torch.randn(B, T, INPUT)
    values, final = encoder(inputs, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone, alone_final = encoder(inputs[row : row + 1, :length], lengths[row : row + 1])
        torch.testing.assert_close(values[row, :length], alone[0])
        torch.testing.assert_close(tuple(part[row] for part in final), tuple(part[0] for part in alone_final))


def test_backward_direction_is_the_forward_one_on_reversed_rows() -> None:
    encoder = RecurrentEncoder("gru", INPUT, 4, 1, is_bidirectional=True, dropout=0.0)
    mirrored = RecurrentEncoder("gru", INPUT, 4, 1, is_bidirectional=True, dropout=0.0)
    there, back = encoder.layers[0]
    mirrored.layers[0][0].load_state_dict(back.state_dict())
    mirrored.layers[0][1].load_state_dict(there.state_dict())
    lengths = torch.tensor([2, 5, 4])
    inputs = torch.randn(B, T, INPUT)
    values, _ = encoder(inputs, lengths)
    swapped, _ = mirrored(reverse_rows(inputs, lengths), lengths)
    expected = reverse_rows(torch.cat(swapped.split(2, dim=-1)[::-1], dim=-1), lengths)
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(values[row, :length], expected[row, :length])


def test_reverse_rows_leaves_padding_and_undoes_itself() -> None:
    rows, lengths = torch.tensor([[1, 2, 3, 0], [4, 5, 6, 7], [8, 0, 0, 0]]), torch.tensor([3, 4, 1])
    reversed_rows = reverse_rows(rows, lengths)
    assert reversed_rows.tolist() == [[3, 2, 1, 0], [7, 6, 5, 4], [8, 0, 0, 0]]
    assert torch.equal(reverse_rows(reversed_rows, lengths), rows)


def test_bf16_keeps_the_cell_in_float32() -> None:
    layer = LstmLayer(INPUT, D).to(torch.bfloat16)
    hidden, cell = layer.run(layer.project(torch.randn(B, T, INPUT, dtype=torch.bfloat16)), layer.initial(B))
    assert (hidden.dtype, cell.dtype) == (torch.bfloat16, torch.float32)
    hidden.float().sum().backward()
    assert layer.recurrent_weight.grad is not None and layer.recurrent_weight.grad.isfinite().all()
