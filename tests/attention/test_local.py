import math

import pytest
import torch

from heedful.attention import masked_softmax
from heedful.attention.local import LOCALITIES, AnyLocalityConfig, Locality, build_locality
from heedful.core.config import Config, parse_config

B, Q, K, D = 3, 2, 11, 5
LENGTHS = torch.tensor([11, 4, 0])


class Holder(Config):
    locality: AnyLocalityConfig


def make(kind: str, dim: int = D, reach: int = 2) -> Locality:
    config = parse_config(Holder, {"locality": {"kind": kind, "reach": reach}}).locality
    return build_locality(config, dim).double()


@pytest.mark.parametrize("kind", LOCALITIES)
def test_steps_equal_the_whole(kind: str) -> None:
    torch.manual_seed(3)
    locality, query = make(kind), torch.randn(B, 4, D, dtype=torch.float64)
    whole, scores = locality(query, 0, LENGTHS, K), torch.randn(B, 4, K, dtype=torch.float64)
    weights = whole.lessen(masked_softmax(scores, whole.mask))
    for step in range(4):
        nearby = locality(query[:, step : step + 1], step, LENGTHS, K)
        torch.testing.assert_close(
            nearby.lessen(masked_softmax(scores[:, step : step + 1], nearby.mask)), weights[:, step : step + 1]
        )


def test_monotonic_by_hand() -> None:
    nearby = make("monotonic", reach=1)(torch.zeros(B, Q, D, dtype=torch.float64), 4, LENGTHS, K)
    kept = [[row.nonzero().flatten().tolist() for row in rows] for rows in nearby.mask.keep]
    # Positions 4 and 5; a source of 4 ends at 3, an empty one has only its first (which padding takes away).
    assert kept == [[[3, 4, 5], [4, 5, 6]], [[2, 3, 4], [2, 3, 4]], [[0, 1], [0, 1]]]
    weights = torch.randn(B, Q, K, dtype=torch.float64)
    assert nearby.lessen(weights) is weights


def test_predictive_by_hand() -> None:
    locality = make("predictive", dim=2)
    locality.get_parameter("weight").data.copy_(torch.eye(2))
    locality.get_parameter("vector").data.copy_(torch.tensor([1.0, 0.0]))
    nearby = locality(torch.tensor([[[0.5, 9.0]]], dtype=torch.float64), 7, torch.tensor([10]), K)
    centre = 10 / (1 + math.exp(-math.tanh(0.5)))  # 6.135
    expected = [math.exp(-((key - centre) ** 2) / 2) for key in range(K)]
    torch.testing.assert_close(nearby.factor[0, 0], torch.tensor(expected, dtype=torch.float64))
    assert nearby.mask.keep[0, 0].nonzero().flatten().tolist() == [5, 6, 7, 8]


def test_the_prediction_learns() -> None:
    torch.manual_seed(3)
    locality, query = make("predictive"), torch.randn(B, Q, D, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda asked: locality(asked, 0, LENGTHS, K).factor, (query,))
    nearby = locality(query, 0, LENGTHS, K)
    nearby.lessen(masked_softmax(torch.randn(B, Q, K, dtype=torch.float64), nearby.mask)).sum().backward()
    assert locality.get_parameter("vector").grad.abs().sum() > 0
