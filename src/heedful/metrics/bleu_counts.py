"""BLEU of any choice of lines, out of counts by line: what bootstrap tests need, without counting n-grams again."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from sacrebleu.metrics.bleu import BLEU

from heedful.metrics.overlap import BleuConfig

ORDER = 4


def bleu_counts(config: BleuConfig, hypotheses: Sequence[str], references: Sequence[str]) -> Float[np.ndarray, "N 10"]:
    """Return for each line matching n-grams and all n-grams of each order, its length and the reference's.

    Args:
        config: says how lines are split.
        hypotheses: lines that were written.
        references: one for each.
    """
    rows = []
    by_line = BLEU(lowercase=config.lowercase, tokenize=config.tokenize, force=True, effective_order=True)
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        found = by_line.sentence_score(hypothesis, [reference])
        rows.append([*found.counts, *found.totals, found.sys_len, found.ref_len])
    return np.array(rows, dtype=np.float64).reshape(len(rows), 2 * ORDER + 2)


def bleu_of_counts(sums: Float[np.ndarray, "R 10"]) -> Float[np.ndarray, " R"]:
    """Return corpus BLEU, 0 to 100, of counts that were added up; equal to sacrebleu's with its default smoothing.

    An order without a match counts as half a match, the next as a quarter, and so on ("exp", Chen and Cherry 2014,
    method 3); an order without n-grams makes the score 0.
    """
    right, every, length, wanted = sums[:, :ORDER], sums[:, ORDER : 2 * ORDER], sums[:, -2], sums[:, -1]
    smoothed = np.where(right == 0, 0.5 ** np.cumsum(right == 0, axis=1), right)
    precision = np.exp(np.log(smoothed / np.maximum(every, 1)).mean(1))
    brevity = np.exp(np.minimum(0.0, 1 - wanted / np.maximum(length, 1)))
    is_scored = (every > 0).all(1) & (right > 0).any(1)
    return 100 * np.where(is_scored, precision * brevity, 0.0)
