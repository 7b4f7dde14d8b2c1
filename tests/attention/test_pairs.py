"""Scores of pairs: against the plain expression, in one part and in many, and against numeric gradients."""

import pytest
import torch

from heedful.attention import pairs
from heedful.attention.pairs import PairScores, score_pairs

B, Q, K, M = 5, 2, 3, 7


def make_inputs() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    sizes = [(B, Q, M), (B, K, M), (M,)]
    return [torch.randn(*size, dtype=torch.float64, generator=generator).requires_grad_() for size in sizes]


@pytest.mark.parametrize("at_once", [1, 2 * Q * K * M, 2**18])
def test_parts_equal_the_plain_expression(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(pairs, "_PAIR_VALUES_AT_ONCE", at_once)
    query, key, vector = make_inputs()
    torch.testing.assert_close(score_pairs(query, key, vector), torch.tanh(query[:, :, None] + key[:, None]) @ vector)
    assert torch.autograd.gradcheck(PairScores.apply, (query, key, vector))


def test_by_hand() -> None:
    scores = score_pairs(
        torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[1.0, 1.0], [-1.0, 0.0]]]), torch.tensor([1.0, 2])
    )
    # tanh(2) + 2 tanh(1) = 0.96403 + 1.52319; tanh(0) + 2 tanh(0) = 0
    torch.testing.assert_close(scores, torch.tensor([[[2.48722, 0.0]]]), atol=1e-5, rtol=0)


def test_no_rows() -> None:
    assert score_pairs(torch.zeros(0, Q, M), torch.zeros(0, K, M), torch.zeros(M)).shape == (0, Q, K)
