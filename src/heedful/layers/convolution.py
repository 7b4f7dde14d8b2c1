"""Convolutions over text (Kim 2014)."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional


class ConvolutionBank(nn.Module):
    """Filters of several widths side by side, each looking at a window around every position.

    A window of width w and dilation d sees positions d apart, ``(w - 1) // 2`` of them to the left and ``w // 2`` to
    the right. Outside a row's real positions it sees zeros, so that padding changes nothing and a row may be shorter
    than a filter. (Kim's windows lie inside the padded sentence; these may reach over its ends by less than their
    width.)

    Args:
        input_dim: width of the input.
        widths: how many positions the windows see.
        num_filters: how many filters of each width; the output is ``len(widths) * num_filters`` wide.
        dilation: distance of the positions in a window; 1 means neighbours (Yu and Koltun 2016).
    """

    def __init__(self, input_dim: int, widths: Sequence[int], num_filters: int, *, dilation: int = 1) -> None:
        super().__init__()
        self.dilation = dilation
        self.widths = tuple(widths)
        self.output_dim = len(self.widths) * num_filters
        self.filters = nn.ParameterList(nn.Parameter(torch.empty(num_filters, width * input_dim)) for width in widths)
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(num_filters)) for _ in widths)
        for weight in self.filters:
            nn.init.kaiming_uniform_(weight, nonlinearity="relu")

    def forward(self, values_BSD: Float[Tensor, "B S D"], keep_BS: Bool[Tensor, "B S"]) -> Float[Tensor, "B S O"]:
        """Return each filter's response, rectified, at every position."""
        real_BSD = values_BSD * keep_BS[:, :, None]
        responses = []
        for width, weight, bias in zip(self.widths, self.filters, self.biases, strict=True):
            step = self.dilation
            padded = functional.pad(real_BSD, (0, 0, (width - 1) // 2 * step, width // 2 * step))
            # A window per position as one row: a matrix product is faster here than torch's convolution.
            windows = padded.unfold(1, (width - 1) * step + 1, 1)[..., ::step].transpose(2, 3).flatten(2)
            responses.append(functional.linear(windows, weight, bias))
        return torch.cat(responses, dim=-1).relu()
