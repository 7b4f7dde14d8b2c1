"""The chain against every path written out, one by one."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from heedful.analysis.alignment_chain import FARTHEST, NUM_JUMPS, UNALIGNED, Written, infer


def some_jumps() -> Tensor:
    jumps = torch.rand(NUM_JUMPS, generator=torch.Generator().manual_seed(3)) + 0.01
    return jumps / jumps.sum()


def some_text(num_written: int, num_others: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    probability, expected = (torch.rand(num_written, num_others, generator=generator) + 0.01 for _ in range(2))
    return probability, torch.rand(num_written, generator=generator) + 0.01, expected


def by_paths(probability: Tensor, alone: Tensor, expected: Tensor, jumps: Tensor) -> tuple[Tensor, Tensor, float]:
    """Return links, jumps and log-likelihood as sums over all paths; places count from 1, and 0 is before the first."""
    num_written, num_others = expected.shape
    links, counts, total = torch.zeros(num_written, num_others), torch.zeros(NUM_JUMPS), 0.0
    for path in itertools.product([None, *range(1, num_others + 1)], repeat=num_written):
        here, weight, made = 0, 1.0, []
        for word, to in enumerate(path):
            if to is None:
                weight *= UNALIGNED * float(alone[word])
                continue
            reach = [float(jumps[FARTHEST + j - here] * expected[word, j - 1]) for j in range(1, num_others + 1)]
            weight *= (1 - UNALIGNED) * reach[to - 1] / sum(reach) * float(probability[word, to - 1])
            made.append(FARTHEST + to - here)
            here = to
        total += weight
        for word, to in enumerate(path):
            if to is not None:
                links[word, to - 1] += weight
        for jump in made:
            counts[jump] += weight
    return links / total, counts / total, math.log(total)


@pytest.mark.parametrize(("num_written", "num_others"), [(1, 1), (1, 4), (4, 1), (3, 3), (4, 3)])
def test_it_sums_over_all_paths(num_written: int, num_others: int) -> None:
    text, jumps = some_text(num_written, num_others, seed=num_written), some_jumps()
    links, counts, log_likelihood = by_paths(*text, jumps)
    probability, alone, expected = (each[None] for each in text)
    found = infer(Written(probability, alone, expected, torch.ones(1, num_written, dtype=torch.bool)), jumps)
    torch.testing.assert_close(found.links[0], links, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(found.jumps, counts, rtol=1e-4, atol=1e-6)
    assert float(found.log_likelihood[0]) == pytest.approx(log_likelihood, rel=1e-5)


def test_texts_side_by_side_do_not_see_each_other() -> None:
    texts, jumps = [some_text(5, 2, seed=1), some_text(2, 4, seed=2), some_text(1, 1, seed=3)], some_jumps()
    probability, expected, alone = torch.zeros(3, 5, 4), torch.zeros(3, 5, 4), torch.ones(3, 5)
    keep = torch.zeros(3, 5, dtype=torch.bool)
    for row, (fits, unaligned, wanted) in enumerate(texts):
        num_written, num_others = wanted.shape
        probability[row, :num_written, :num_others] = fits
        alone[row, :num_written] = unaligned
        expected[row, :, :num_others] = 1  # whatever stands past the last written word
        expected[row, :num_written, :num_others] = wanted
        keep[row, :num_written] = True
    together = infer(Written(probability, alone, expected, keep), jumps)
    counts = torch.zeros(NUM_JUMPS)
    for row, text in enumerate(texts):
        fits, unaligned, wanted = (each[None] for each in text)
        single = infer(Written(fits, unaligned, wanted, torch.ones(unaligned.shape, dtype=torch.bool)), jumps)
        num_written, num_others = wanted.shape[1:]
        torch.testing.assert_close(together.links[row, :num_written, :num_others], single.links[0])
        assert not together.links[row, num_written:].any() and not together.links[row, :, num_others:].any()
        torch.testing.assert_close(together.log_likelihood[row], single.log_likelihood[0])
        counts += single.jumps
    torch.testing.assert_close(together.jumps, counts)


def test_farther_jumps_count_as_the_farthest() -> None:
    """From before the first word to one past the farthest, the only word that can have written it."""
    num_others = FARTHEST + 50
    probability, expected = torch.zeros(1, 1, num_others), torch.ones(1, 1, num_others)
    probability[0, 0, -1] = 1.0
    found = infer(
        Written(probability, torch.full((1, 1), 1e-9), expected, torch.ones(1, 1, dtype=torch.bool)), some_jumps()
    )
    assert float(found.jumps[-1]) == pytest.approx(1) and float(found.jumps[:-1].sum()) == pytest.approx(0, abs=1e-5)
    assert float(found.links[0, 0, -1]) == pytest.approx(1)


def test_a_long_text_neither_vanishes_nor_overflows() -> None:
    probability, alone, expected = some_text(400, 300, seed=5)
    written = Written(
        probability[None] * 1e-6, alone[None] * 1e-6, expected[None], torch.ones(1, 400, dtype=torch.bool)
    )
    found = infer(written, some_jumps())
    assert bool(found.links.isfinite().all()) and bool(found.log_likelihood.isfinite().all())
    assert float(found.links.sum(2).max()) <= 1 + 1e-4
    assert float(found.jumps.sum()) == pytest.approx(float(found.links.sum()), rel=1e-3)
