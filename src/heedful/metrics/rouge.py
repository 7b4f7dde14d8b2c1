"""ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004), own implementation: the definition stands here.

- Words are maximal runs of letters and digits (of any script) of the lowercased line. No stemming, no stop words.
- ROUGE-N of a pair counts n-grams (section 2), each at most as often as the other side has it; ROUGE-L of a pair takes
  the longest common subsequence of the two lines as wholes (section 3.1). Precision divides by the hypothesis' count,
  recall by the reference's; the score is F with equal weight, 0 where nothing matches.
- Of several references the one with the best F counts. The result is the mean over the lines, in percent.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from heedful.core.config import Config
from heedful.metrics.edit_distance import common_length
from heedful.metrics.metric import Metric, MetricResult, References, check_pairs

_WORD = re.compile(r"[^\W_]+")


class RougeConfig(Config):
    """One of the ROUGE scores."""

    name: Literal["rouge1", "rouge2", "rougeL"] = "rougeL"


class Rouge(Metric):
    """Mean F-score of overlapping n-grams or common subsequences, in percent."""

    is_higher_better = True

    def __init__(self, config: RougeConfig) -> None:
        self.name = config.name

    def score(self, hypotheses: Sequence[str], references: References) -> MetricResult:
        """Score all lines together."""
        check_pairs(hypotheses, references)
        pairs = zip(hypotheses, references, strict=True)
        total = sum(max(self.of_pair(words(said), words(each)) for each in known) for said, known in pairs)
        value = 100 * total / max(len(hypotheses), 1)
        return MetricResult(self.name, value, f"heedful|{self.name}|f1|case:lc|stem:no|ref:best", self.is_higher_better)

    def of_pair(self, said: list[str], meant: list[str]) -> float:
        """Return F of one hypothesis against one reference, 0 to 1."""
        if self.name == "rougeL":
            return _f1(common_length(said, meant), len(said), len(meant))
        said_ngrams, meant_ngrams = _ngrams(said, int(self.name[-1])), _ngrams(meant, int(self.name[-1]))
        return _f1((said_ngrams & meant_ngrams).total(), said_ngrams.total(), meant_ngrams.total())


def words(line: str) -> list[str]:
    """Return the words that ROUGE compares."""
    return _WORD.findall(line.lower())


def _ngrams(line: list[str], size: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(line[start:] for start in range(size)), strict=False))


def _f1(matches: int, said: int, meant: int) -> float:
    """Return the harmonic mean of ``matches / said`` and ``matches / meant``."""
    return 2 * matches / (said + meant) if matches else 0.0
