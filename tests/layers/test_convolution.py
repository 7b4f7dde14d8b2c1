"""The bank of convolutions: by hand, against torch's convolution, and with rows shorter than a filter."""

import pytest
import torch
from torch.nn import functional

from heedful.layers.convolution import ConvolutionBank

B, S, D = 2, 7, 3


def test_by_hand() -> None:
    bank = ConvolutionBank(1, [3], 1)
    with torch.no_grad():
        bank.filters[0].copy_(torch.tensor([[1.0, 10.0, 100.0]]))
        bank.biases[0].fill_(-5.0)
    values, keep = torch.tensor([[[1.0], [2.0], [7.0]]]), torch.tensor([[True, True, False]])
    # 10 * 1 + 100 * 2 - 5, then 1 * 1 + 10 * 2 - 5; the padding's 7 is not seen
    assert bank(values, keep)[0, :2, 0].tolist() == [205.0, 16.0]


@pytest.mark.parametrize("dilation", [1, 3])
def test_equals_torchs_convolution(dilation: int) -> None:
    bank = ConvolutionBank(D, [2, 5], 11, dilation=dilation)
    values = torch.randn(B, S, D)
    expected = []
    for width, weight, bias in zip(bank.widths, bank.filters, bank.biases, strict=True):
        kernel = weight.view(11, width, D).transpose(1, 2)
        padded = functional.pad(values.transpose(1, 2), ((width - 1) // 2 * dilation, width // 2 * dilation))
        expected.append(functional.conv1d(padded, kernel, bias, dilation=dilation))
    actual = bank(values, torch.ones(B, S, dtype=torch.bool))
    torch.testing.assert_close(actual, torch.cat(expected, dim=1).transpose(1, 2).relu())


def test_a_padded_row_equals_the_row_alone_even_if_shorter_than_a_filter() -> None:
    bank = ConvolutionBank(D, [3, 4, 5], 2)
    values = torch.randn(B, S, D)
    keep = torch.arange(S) < torch.tensor([[2], [6]])
    together = bank(values, keep)
    for row, length in enumerate([2, 6]):
        alone = bank(values[row : row + 1, :length], keep[row : row + 1, :length])
        torch.testing.assert_close(together[row, :length], alone[0])
