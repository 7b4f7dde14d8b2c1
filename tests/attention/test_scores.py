import pydantic
import pytest
import torch
from torch import Tensor

from heedful.attention.scores import SCORES, AnyScoreConfig, Score, build_score
from heedful.core.config import Config, parse_config
from heedful.core.errors import ConfigError, RequestError

B, Q, K, D, IN = 3, 2, 5, 7, 11


class Holder(Config):
    attention: AnyScoreConfig


def make(kind: str, query_dim: int, key_dim: int, **values: object) -> Score:
    config = parse_config(Holder, {"attention": {"kind": kind, **values}}).attention
    return build_score(config, query_dim, key_dim).double()


def check_score(kind: str) -> None:
    """Check what every scoring function must do; a new line in SCORES is tested by this alone."""
    torch.manual_seed(3)
    query_dim = D if kind in ("dot", "scaled_dot") else IN
    score = make(kind, query_dim, D)
    query = torch.randn(B, Q, query_dim, dtype=torch.float64, requires_grad=True)
    keys = torch.randn(B, K, D, dtype=torch.float64, requires_grad=True)
    prepared = score.prepare(keys)
    scores = score(query, prepared)
    assert scores.shape == (B, Q, K) and prepared.shape[:2] == (B, K)
    # One query of one row, one key: nothing depends on its company.
    torch.testing.assert_close(score(query[1:2, 1:], prepared[1:2]), scores[1:2, 1:])
    torch.testing.assert_close(score(query, score.prepare(keys[:, :3])), scores[:, :, :3])
    assert torch.autograd.gradcheck(lambda asked, source: score(asked, score.prepare(source)), (query, keys))
    scores.sum().backward()
    assert all(each.grad is not None and each.grad.abs().sum() > 0 for each in score.parameters())
    halved = score.bfloat16()
    rough = halved(query.bfloat16(), halved.prepare(keys.bfloat16()))
    assert rough.dtype == torch.bfloat16
    torch.testing.assert_close(rough.double(), scores, atol=0.1, rtol=0.1)


@pytest.mark.parametrize("kind", SCORES)
def test_contract(kind: str) -> None:
    check_score(kind)


def test_every_kind_has_a_configuration() -> None:
    kinds = {each.model_fields["kind"].default for each in AnyScoreConfig.__origin__.__args__}
    assert kinds == set(SCORES)


QUERY = torch.tensor([[[1.0, 2.0]]], dtype=torch.float64)
KEYS = torch.tensor([[[3.0, 4.0], [0.5, -1.0]]], dtype=torch.float64)


def fill(score: Score, **values: list[list[float]] | list[float]) -> Score:
    for name, value in values.items():
        score.get_parameter(name).data.copy_(torch.tensor(value))
    return score


def score_of(score: Score) -> Tensor:
    return score(QUERY, score.prepare(KEYS))[0, 0]


def test_dot_by_hand() -> None:
    assert score_of(make("dot", 2, 2)).tolist() == [11.0, -1.5]


def test_scaled_dot_by_hand() -> None:
    torch.testing.assert_close(score_of(make("scaled_dot", 2, 2)), torch.tensor([11.0, -1.5]).double() / 2**0.5)


def test_bilinear_starts_near_the_dot_where_widths_agree() -> None:
    torch.manual_seed(2)
    weight = make("bilinear", 64, 64).weight
    assert (weight - torch.eye(64)).abs().max() < 0.05
    assert make("bilinear", 64, 32).weight.shape == (64, 32)


def test_bilinear_by_hand() -> None:
    score = fill(make("bilinear", 2, 2), weight=[[1, 0], [1, 1]])
    assert score_of(score).tolist() == [3 + 2 * 7, 0.5 + 2 * -0.5]


def test_additive_by_hand() -> None:
    score = fill(make("additive", 2, 2, inner_dim=1), query_weight=[[1, -1]], key_weight=[[0, 1]], vector=[2])
    torch.testing.assert_close(score_of(score), 2 * torch.tanh(torch.tensor([3.0, -2.0], dtype=torch.float64)))


def test_concat_equals_additive_with_a_cut_matrix() -> None:
    concat, additive = make("concat", IN, D), make("additive", IN, D)
    weight = concat.get_parameter("weight").detach()
    fill(additive, query_weight=weight[:, :IN].tolist(), key_weight=weight[:, IN:].tolist())
    additive.get_parameter("vector").data.copy_(concat.get_parameter("vector").detach())
    query, keys = torch.randn(B, Q, IN).double(), torch.randn(B, K, D).double()
    together = torch.cat([query[:, :, None].expand(B, Q, K, IN), keys[:, None].expand(B, Q, K, D)], dim=-1)
    naive = torch.tanh(together @ weight.T) @ concat.get_parameter("vector")
    torch.testing.assert_close(concat(query, concat.prepare(keys)), naive)
    torch.testing.assert_close(additive(query, additive.prepare(keys)), naive, atol=1e-6, rtol=1e-6)


def test_location_by_hand() -> None:
    score = fill(make("location", 2, 2, max_positions=3), weight=[[1, 1], [0, 5], [9, 9]])
    assert score_of(score).tolist() == [3.0, 10.0]
    with pytest.raises(RequestError, match="source of 4 positions is longer than the 3"):
        score.prepare(torch.zeros(1, 4, 2, dtype=torch.float64))


def test_dot_needs_one_width() -> None:
    with pytest.raises(ConfigError, match=r"`dot` needs queries \(11\) and keys \(7\) of one width. Try `bilinear`."):
        make("dot", IN, D)


def test_unknown_kind() -> None:
    with pytest.raises(ConfigError, match="Did you mean `additive`"):
        make("aditive", IN, D)
    with pytest.raises(pydantic.ValidationError):
        Holder.model_validate({"attention": {"kind": "dot", "inner_dim": 3}})
