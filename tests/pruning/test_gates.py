import math

import pytest
import torch

from heedful.models.interfaces import AttentionSite
from heedful.pruning import Budget, HardConcreteGates, Heads, RankedGates, SubsetGates, hard_concrete, subsets
from heedful.pruning.head_gates import order_of_closing


def heads_of(*numbers: int) -> Heads:
    sites = [
        AttentionSite(f"encoder.layers.{n}.self_attention", "encoder", n, each, 4) for n, each in enumerate(numbers)
    ]
    return Heads(tuple(sites))


def test_the_expected_number_of_open_gates_is_that_of_many_draws() -> None:
    """Louizos et al. 2018, equation 12, against 200,000 draws of equations 10 and 11."""
    torch.manual_seed(4)
    log_alpha = torch.tensor([-3.0, -1.0, 0.0, 0.7, 2.0])
    uniform = torch.rand(200_000, 5).clamp(1e-6, 1 - 1e-6)
    drawn = hard_concrete.sample(log_alpha, uniform)
    frequency = (drawn > 0).double().mean(0)
    torch.testing.assert_close(hard_concrete.open_probability(log_alpha).double(), frequency, atol=4e-3, rtol=0)


def test_a_gate_by_hand() -> None:
    # s = sigmoid((0 + 0) / (2/3)) = 1/2, stretched to 1.2 / 2 - 0.1 = 1/2; far away it is exactly 0 and 1.
    gates = hard_concrete.sample(torch.tensor([0.0, -9.0, 9.0]), torch.full((3,), 0.5))
    torch.testing.assert_close(gates, torch.tensor([0.5, 0.0, 1.0]))
    # P(open) = sigmoid(log_alpha - 2/3 log(0.1 / 1.1)).
    expected = 1 / (1 + math.exp(-(1 + 2 / 3 * math.log(11))))
    assert hard_concrete.open_probability(torch.tensor([1.0])).item() == pytest.approx(expected)


def test_gates_begin_open() -> None:
    torch.manual_seed(4)
    gates = HardConcreteGates(heads_of(500, 500))
    drawn = gates.sample()
    assert 0.92 < (drawn == 1).float().mean() < 0.98
    assert drawn.mean() > 0.975
    assert gates.expected().tolist() == [1.0] * 1000


def test_heads_close_in_the_order_of_what_they_are_worth_at_the_time() -> None:
    """Of a pair either alone is worth more than both together: when one is closed, the other is the last to go."""
    asked = []

    def rank(is_open: torch.Tensor) -> torch.Tensor:
        asked.append(is_open.clone())
        alone = torch.tensor([is_open[1] == 0, is_open[0] == 0, False, False])
        return torch.where(alone, 9.0, torch.tensor([1.0, 1.1, 2.0, 3.0]))

    assert order_of_closing(rank, 4).tolist() == [0.0, 1.0, 0.25, 0.5]
    assert [int(each.sum()) for each in asked] == [4, 3, 2]
    assert order_of_closing(lambda is_open: torch.ones(5), 5).tolist() == [1.0] * 5
    assert order_of_closing(lambda is_open: torch.ones(0), 0).tolist() == []


def test_gates_that_start_in_an_order_are_open_and_close_in_it() -> None:
    order = torch.linspace(0, 1, 6)
    heads = heads_of(3, 3)
    gates = HardConcreteGates(heads, order)
    assert gates.num_open() == 6 and gates.expected().tolist() == [1.0] * 6
    optimizer = torch.optim.Adam(gates.parameters(), lr=gates.rate)
    for _ in range(200):
        optimizer.zero_grad()
        penalty = gates.advance(2.0)
        assert penalty is not None
        penalty.backward()
        optimizer.step()
    assert gates.kept(2) == SubsetGates(heads, 2, order).kept(2)
    assert gates.kept(2) == {"encoder.layers.0.self_attention": (), "encoder.layers.1.self_attention": (1, 2)}


def test_a_look_at_the_heads_that_would_stay_closes_none() -> None:
    gates = RankedGates(heads_of(3, 3), 2, lambda is_open: torch.tensor([5.0, 1.0, 2.0, 6.0, 3.0, 4.0]))
    assert gates.kept(2) == {"encoder.layers.0.self_attention": (0,), "encoder.layers.1.self_attention": (0,)}
    assert gates.num_open() == 6
    gates.advance(3.0)
    assert gates.num_open() == 3 and gates.kept(2) == gates.kept(2)


def test_every_head_is_drawn_at_first_whatever_the_order() -> None:
    torch.manual_seed(4)
    gates = SubsetGates(heads_of(4, 4), 4, torch.linspace(0, 1, 8))
    gates.size.fill_(4)
    often = torch.stack([gates.sample().detach().round() for _ in range(500)]).mean(0)
    assert (often[1:] > often[:-1] - 0.1).all() and 0.01 < often[0] < 0.3 and often[-1] > 0.8


def test_the_price_of_a_head_does_not_depend_on_how_many_there_are() -> None:
    few, many = HardConcreteGates(heads_of(3)), HardConcreteGates(heads_of(3, 4, 5))
    for gates in (few, many):
        penalty = gates.advance(0.5 * len(gates.heads))
        assert penalty is not None
        penalty.backward()
    torch.testing.assert_close(few.log_alpha.grad, many.log_alpha.grad[:3])


def test_the_multiplier_brings_the_number_of_open_gates_to_what_is_wanted() -> None:
    """Heads of a toy whose worth is known: the price settles where the least useful are closed."""
    torch.manual_seed(4)
    gates = HardConcreteGates(heads_of(4, 6))
    worth = torch.tensor([0.5, 0.01, 0.3, 0.02, 0.4, 0.015, 0.6, 0.03, 0.35, 0.025])
    optimizer = torch.optim.Adam(gates.parameters(), lr=gates.rate, betas=(0.9, 0.98))
    budget = Budget(start=10, end=5)
    for step in range(300):
        loss = -(worth * gates.sample()).sum() + gates.advance(budget.num_open(step / 300))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert gates.num_open() == 5
    assert hard_concrete.open_probability(gates.log_alpha).sum().item() == pytest.approx(5, abs=1)
    assert gates.kept(5) == {
        "encoder.layers.0.self_attention": (0, 2),
        "encoder.layers.1.self_attention": (0, 2, 4),
    }


@pytest.mark.parametrize("size", range(12))
def test_a_subset_has_exactly_the_wanted_size(size: int) -> None:
    torch.manual_seed(4)
    keys = torch.randn(11).repeat(1).requires_grad_()
    relaxed = subsets.relaxed_top(keys, size, 0.5)
    drawn = subsets.straight_through(keys, size, 0.5)
    assert relaxed.sum().item() == pytest.approx(size, abs=1e-4)
    assert drawn.detach().round().sum() == size and set(drawn.detach().round().tolist()) <= {0.0, 1.0}
    if 0 < size < 11:
        (gradient,) = torch.autograd.grad(drawn[keys.argmax()] - drawn[keys.argmin()], keys)
        assert gradient[keys.argmax()] > 0 > gradient[keys.argmin()]


def test_a_relaxed_subset_hardens_with_the_temperature() -> None:
    keys = torch.tensor([0.3, 2.0, -1.0, 1.1, 0.4])
    torch.testing.assert_close(subsets.relaxed_top(keys, 2, 0.02), torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0]))


def test_gumbel_top_draws_without_replacement_by_the_keys() -> None:
    """The first of a Gumbel top-k is a draw from the softmax of the keys."""
    torch.manual_seed(4)
    keys = torch.tensor([0.1, 1.0, -0.5])
    first = torch.stack([keys + subsets.gumbel(keys) for _ in range(4_000)]).argmax(-1)
    torch.testing.assert_close(first.bincount() / 4_000, keys.softmax(0), atol=0.03, rtol=0)


@pytest.mark.parametrize("end", [0, 1, 4, 9, 10])
def test_all_methods_end_with_the_wanted_number(end: int) -> None:
    heads = heads_of(4, 0, 6)
    asked = []

    def rank(is_open: torch.Tensor) -> torch.Tensor:
        asked.append(int(is_open.sum()))
        return torch.arange(10.0)

    for gates in (HardConcreteGates(heads), SubsetGates(heads, end), RankedGates(heads, end, rank, num_steps=3)):
        for step in range(20):
            assert gates.sample().shape == (10,)
            gates.advance(Budget(10, end).num_open(step / 20))
        kept = gates.kept(end)
        assert sum(map(len, kept.values())) == end
        assert kept.keys() == {site.path for site in heads.sites}
    assert asked == sorted(asked, reverse=True) and len(asked) <= 4
    assert [*kept["encoder.layers.0.self_attention"], *(n + 4 for n in kept["encoder.layers.2.self_attention"])] == [
        *range(10 - end, 10)
    ]


def test_a_budget_falls_from_all_to_those_that_stay() -> None:
    budget = Budget(start=48, end=12, ramp_share=0.5)
    assert [budget.num_open(each) for each in (0.0, 0.25, 0.5, 1.0)] == [48, 12 + 36 / 8, 12, 12]
