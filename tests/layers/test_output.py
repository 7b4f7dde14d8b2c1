"""The output layer: its log-probabilities are the same whether gradients are kept or not."""

import pytest
import torch

from heedful.layers.output import OutputLayer


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(3, 2, 8), (70, 8), (0, 8)])
def test_log_probs_do_not_depend_on_gradients(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    layer = OutputLayer(8, 301).to(dtype)
    hidden = torch.randn(shape, dtype=dtype)
    expected = layer.log_probs(hidden)
    with torch.no_grad():
        found = layer.log_probs(hidden)
    assert torch.equal(found, expected)
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert torch.allclose(found.exp().sum(-1), torch.ones(()).to(found.dtype), atol=1e-5)
