import pytest
import torch
import torch.nn.functional as F

from heedful.layers.feed_forward import FeedForward

D, M = 3, 5


def test_relu_by_hand() -> None:
    layer = FeedForward(1, 2)
    with torch.no_grad():
        layer.inner.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        layer.outer.weight.copy_(torch.tensor([[2.0, 3.0]]))
        layer.outer.bias.fill_(0.5)
    torch.testing.assert_close(layer(torch.tensor([[[4.0], [-1.0]]])), torch.tensor([[[8.5], [3.5]]]))


@pytest.mark.parametrize(
    ("activation", "gate"), [("glu", torch.sigmoid), ("reglu", F.relu), ("geglu", F.gelu), ("swiglu", F.silu)]
)
def test_gated_variants_equal_their_definition(activation: str, gate: object) -> None:
    layer = FeedForward(D, M, activation=activation)
    hidden = torch.randn(2, 7, D)
    of_gate, of_value = layer.inner.weight.split(M)
    expected = (gate(hidden @ of_gate.T) * (hidden @ of_value.T)) @ layer.outer.weight.T
    torch.testing.assert_close(layer(hidden), expected)


@pytest.mark.parametrize("activation", ["gelu", "swiglu"])
def test_a_removed_unit_equals_one_that_nobody_reads(activation: str) -> None:
    layer = FeedForward(D, M, activation=activation)
    torch.nn.init.normal_(layer.inner.bias)
    hidden = torch.randn(2, 7, D)
    with torch.no_grad():
        layer.outer.weight[:, [0, 3]] = 0.0
    expected = layer(hidden)
    layer.keep_units([1, 2, 4])
    assert layer.inner_dim == 3 and layer.inner.weight.shape == (6 if activation == "swiglu" else 3, D)
    torch.testing.assert_close(layer(hidden), expected)


def test_dropout_is_between_the_products() -> None:
    torch.manual_seed(2)
    layer = FeedForward(D, 1000, dropout=0.5)
    with torch.no_grad():
        layer.inner.weight.zero_()
        layer.inner.bias.fill_(1.0)
        layer.outer.weight.fill_(1 / 1000)
    outputs = layer(torch.randn(1, 9, D))
    assert outputs.std() > 0.005
    assert (outputs.mean() - 1).abs() < 0.05
