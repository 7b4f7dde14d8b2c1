"""Intervals: by hand where they are certain, and how often they hold the truth."""

import numpy as np

from heedful.analysis.bootstrap import ratio_intervals


def test_what_does_not_vary_has_no_width() -> None:
    cases = np.full((7, 3), 2.0)
    low, high = ratio_intervals(np.tile([0.0, 1.0, 2.0], (7, 1)), cases)
    assert low.tolist() == high.tolist() == [0.0, 0.5, 1.0]


def test_two_sentences_by_hand() -> None:
    """Drawn twice from (0 of 1, 3 of 3): both the first, 1/4, gives 0; both the second 1; else 3 of 4."""
    low, high = ratio_intervals(np.array([[0.0], [3.0]]), np.array([[1.0], [3.0]]))
    assert (low[0], high[0]) == (0.0, 1.0)


def test_figures_without_a_case_have_no_interval() -> None:
    low, high = ratio_intervals(np.zeros((5, 1)), np.zeros((5, 1)))
    assert np.isnan(low).all() and np.isnan(high).all()
    assert np.isnan(ratio_intervals(np.zeros((0, 2)), np.zeros((0, 2)))[0]).all()


def test_sentences_without_cases_are_drawn_too() -> None:
    sums, cases = np.array([[1.0], [0.0], [0.0]]), np.array([[2.0], [0.0], [0.0]])
    low, high = ratio_intervals(sums, cases)
    assert (low[0], high[0]) == (0.5, 0.5)


def test_the_truth_lies_within_about_95_times_in_100() -> None:
    """Sentences of one kind are all right or all wrong, so that intervals over words would hold it half as often."""
    generator = np.random.default_rng(4)
    num_sentences, num_figures, truth = 150, 400, 0.3
    words = generator.integers(1, 9, size=(num_sentences, num_figures)).astype(float)
    is_right = generator.random((num_sentences, num_figures)) < truth
    low, high = ratio_intervals(words * is_right, words, resamples=400)
    covered = ((low <= truth) & (truth <= high)).mean()
    assert 0.90 <= covered <= 0.98
    over_words = 1.96 * np.sqrt(truth * (1 - truth) / words.sum(0))
    shares = (words * is_right).sum(0) / words.sum(0)
    assert (np.abs(shares - truth) <= over_words).mean() < 0.75
