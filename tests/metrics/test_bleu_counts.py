"""BLEU out of counts by line is sacrebleu's, for all lines and for any choice of them."""

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from heedful.metrics.bleu_counts import bleu_counts, bleu_of_counts
from heedful.metrics.overlap import BleuConfig

HYPOTHESES = ["A dog runs over the green lawn.", "the cat", "", "Two men play a game of chess", "so it is, I think"]
REFERENCES = [
    "A dog runs across the green lawn.",
    "a cat sat",
    "nothing",
    "Two men are playing chess",
    "So it is, I think!",
]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("chosen", [[0, 1, 2, 3, 4], [0, 0, 3], [4, 1], [3], [1], [2]])
def test_any_choice_of_lines(chosen: list[int], lowercase: bool) -> None:
    config = BleuConfig(lowercase=lowercase)
    counts = bleu_counts(config, HYPOTHESES, REFERENCES)
    (found,) = bleu_of_counts(counts[chosen].sum(0, keepdims=True))
    scorer = BLEU(lowercase=lowercase, force=True)
    expected = scorer.corpus_score([HYPOTHESES[i] for i in chosen], [[REFERENCES[i] for i in chosen]]).score
    assert float(found) == pytest.approx(expected, abs=1e-9)


def test_many_choices_at_once() -> None:
    counts = bleu_counts(BleuConfig(), HYPOTHESES, REFERENCES)
    draws = np.random.default_rng(1).multinomial(5, [0.2] * 5, size=7).astype(float)
    together = bleu_of_counts(draws @ counts)
    assert together.shape == (7,)
    assert together.tolist() == [float(bleu_of_counts(draw[None] @ counts)[0]) for draw in draws]
