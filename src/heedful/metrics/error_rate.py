"""Error rates: edits on the way to the nearest reference, and the share of lines that equal no reference."""

import unicodedata
from collections.abc import Sequence
from typing import Literal

from heedful.core.config import Config
from heedful.metrics.edit_distance import edit_distance
from heedful.metrics.metric import Metric, MetricResult, References, check_pairs


class ErrorRateConfig(Config):
    """Edits for 100 symbols of the references.

    Attributes:
        name: ``wer`` counts words, ``per`` phonemes (both are what stands between white space), ``cer`` characters of
            the NFC text, one space between words.
        lowercase: compare without case.
    """

    name: Literal["wer", "cer", "per"] = "wer"
    lowercase: bool = False


class SequenceErrorConfig(Config):
    """Share of lines that equal none of their references (the word error rate of spelling-to-sound).

    Attributes:
        lowercase: compare without case.
    """

    name: Literal["sequence_error"] = "sequence_error"
    lowercase: bool = False


class ErrorRate(Metric):
    """Total edit distance to the nearest references over their total length, in percent.

    The nearest reference of a line is the one at the least distance, of several the first. Where all chosen references
    are empty, the edits are counted as if against one symbol.
    """

    is_higher_better = False

    def __init__(self, config: ErrorRateConfig) -> None:
        self.name = config.name
        self.config = config

    def score(self, hypotheses: Sequence[str], references: References) -> MetricResult:
        """Score all lines together."""
        check_pairs(hypotheses, references)
        edits = symbols = 0
        for hypothesis, alternatives in zip(hypotheses, references, strict=True):
            said = self.symbols(hypothesis)
            meant = [self.symbols(each) for each in alternatives]
            distance, length = min(((edit_distance(each, said), len(each)) for each in meant), key=lambda pair: pair[0])
            edits += distance
            symbols += length
        unit = "char" if self.name == "cer" else "space"
        signature = f"heedful|{self.name}|unit:{unit}|case:{'lc' if self.config.lowercase else 'mixed'}|ref:nearest"
        return MetricResult(self.name, 100 * edits / max(symbols, 1), signature, self.is_higher_better)

    def symbols(self, line: str) -> Sequence[str]:
        """Return what is counted in a line."""
        words = (line.lower() if self.config.lowercase else line).split()
        return unicodedata.normalize("NFC", " ".join(words)) if self.name == "cer" else words


class SequenceError(Metric):
    """Lines that equal none of their references, in percent; white space counts as one space."""

    name = "sequence_error"
    is_higher_better = False

    def __init__(self, config: SequenceErrorConfig) -> None:
        self.config = config

    def score(self, hypotheses: Sequence[str], references: References) -> MetricResult:
        """Score all lines together."""
        check_pairs(hypotheses, references)
        pairs = zip(hypotheses, references, strict=True)
        wrong = sum(self._words(line) not in map(self._words, alternatives) for line, alternatives in pairs)
        signature = f"heedful|sequence_error|case:{'lc' if self.config.lowercase else 'mixed'}|ref:any"
        return MetricResult(self.name, 100 * wrong / max(len(hypotheses), 1), signature, self.is_higher_better)

    def _words(self, line: str) -> list[str]:
        return (line.lower() if self.config.lowercase else line).split()
