"""Samples come from the distribution asked for, and from their own row's stream."""

import pytest
import torch
from tests.search.toy import start, step, toy

from heedful.core.symbols import BOS_ID, EOS_ID
from heedful.search import GreedyConfig, SamplingConfig, search
from heedful.search.sampling import FIRST_LOOK, nucleus

PROBABILITIES = torch.tensor([[[0.1, 0.4, 0.3, 0.15, 0.05]]])


def sample(memory, config, lines: list[int], seed: int = 1) -> list[list[tuple[int, ...]]]:
    found = search(step, memory, start(memory), config, lines=torch.tensor(lines), seed=seed)
    return [[each.ids for each in hypotheses] for hypotheses in found]


def test_nucleus_by_hand() -> None:
    def drawn(**options) -> dict[int, float]:
        probabilities, symbols = nucleus(PROBABILITIES.log(), SamplingConfig(**options))
        pairs = zip(symbols.flatten().tolist(), probabilities.flatten().tolist(), strict=True)
        return {symbol: pytest.approx(probability) for symbol, probability in pairs if probability}

    assert drawn(top_p=0.69) == {1: 0.4, 2: 0.3}
    assert drawn(top_p=0.71) == {1: 0.4, 2: 0.3, 3: 0.15}
    assert drawn(top_p=0.01) == {1: 0.4}
    assert drawn(top_k=2) == {1: 0.4 / 0.7, 2: 0.3 / 0.7}
    assert drawn(top_k=3, top_p=0.5) == {1: 0.4 / 0.85, 2: 0.3 / 0.85}
    squares = (PROBABILITIES**2 / (PROBABILITIES**2).sum()).flatten().tolist()
    assert drawn(top_k=5, temperature=0.5) == dict(enumerate(squares))


def test_a_flat_distribution_has_a_wide_nucleus() -> None:
    size = 10 * FIRST_LOOK
    log_probs = torch.full((1, 2, size), 1 / size).log()
    probabilities, _ = nucleus(log_probs, SamplingConfig(top_p=0.5))
    assert (probabilities > 0).sum(dim=2).flatten().tolist() == pytest.approx([size / 2, size / 2], abs=2)


@pytest.mark.parametrize("options", [{}, {"temperature": 1.7}, {"top_k": 3}, {"top_p": 0.7}])
def test_frequencies_are_probabilities(options: dict) -> None:
    memory = toy(1, 7, seed=3, sharpness=1.0)
    count = 4000
    config = SamplingConfig(num_best=count, max_length=1, **options)
    first = [each[0] if each else EOS_ID for each in sample(memory, config, [0])[0]]
    counts = torch.bincount(torch.tensor(first), minlength=7) / count
    log_probs = memory.table[:, BOS_ID, BOS_ID][None].clone()
    log_probs[:, :, [0, BOS_ID]] = float("-inf")
    probabilities, symbols = nucleus(log_probs, config)
    expected = torch.zeros(7).scatter(0, symbols.flatten(), probabilities.flatten())
    assert torch.allclose(counts, expected / expected.sum(), atol=4 * (0.25 / count) ** 0.5)
    assert not counts[expected == 0].any()


def test_the_line_and_the_seed_decide() -> None:
    memory = toy(1, 11, seed=4, sharpness=0.5).select(torch.tensor([0, 0, 0]))
    config = SamplingConfig(max_length=9, num_best=2)
    forwards, backwards = sample(memory, config, [3, 4, 5]), sample(memory, config, [5, 4, 3])
    assert forwards == backwards[::-1]
    assert forwards == sample(memory, config, [3, 4, 5])
    assert len({tuple(each) for each in forwards}) == 3
    assert forwards != sample(memory, config, [3, 4, 5], seed=2)


def test_cold_sampling_is_greedy() -> None:
    memory = toy(5, 11, seed=5)
    for options in ({"temperature": 1e-4}, {"top_k": 1}, {"top_p": 1e-9}):
        cold = sample(memory, SamplingConfig(max_length=9, **options), list(range(5)))
        assert cold == sample(memory, GreedyConfig(max_length=9), list(range(5)))
