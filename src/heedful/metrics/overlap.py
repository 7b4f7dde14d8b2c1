"""BLEU, chrF and TER, as sacrebleu computes them, with its signatures (Post 2018)."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from heedful.core.config import Config
from heedful.metrics.metric import Metric, MetricResult, References, check_pairs


class BleuConfig(Config):
    """BLEU (Papineni et al. 2002).

    Attributes:
        lowercase: compare without case.
        tokenize: sacrebleu's tokenizer; ``none`` where lines are tokenised already.
    """

    name: Literal["bleu"] = "bleu"
    lowercase: bool = False
    tokenize: Literal["13a", "intl", "char", "zh", "none"] = "13a"


class ChrfConfig(Config):
    """Character n-gram F-score (Popović 2015; 2017 for word n-grams).

    Attributes:
        lowercase: compare without case.
        word_order: longest word n-gram counted besides characters; 2 gives chrF++.
    """

    name: Literal["chrf"] = "chrf"
    lowercase: bool = False
    word_order: int = Field(default=0, ge=0)


class TerConfig(Config):
    """Translation edit rate (Snover et al. 2006), tokenised and normalised as tercom does.

    Attributes:
        lowercase: compare without case.
    """

    name: Literal["ter"] = "ter"
    lowercase: bool = True


class SacrebleuMetric(Metric):
    """A metric of sacrebleu."""

    @abstractmethod
    def build(self) -> Any:
        """Return a fresh sacrebleu object."""

    def score(self, hypotheses: Sequence[str], references: References) -> MetricResult:
        """Score all lines together; a line without further references leaves its place in their streams empty."""
        check_pairs(hypotheses, references)
        most = max(map(len, references), default=1)
        streams = [[each[k] if k < len(each) else None for each in references] for k in range(most)]
        scorer = self.build()
        value = scorer.corpus_score(list(hypotheses), streams).score if hypotheses else 0.0
        signature = str(scorer.get_signature()) if hypotheses else "no lines"
        return MetricResult(self.name, float(value), signature, self.is_higher_better)


class Bleu(SacrebleuMetric):
    """BLEU, 0 to 100."""

    name = "bleu"
    is_higher_better = True

    def __init__(self, config: BleuConfig) -> None:
        self.config = config

    def build(self) -> BLEU:
        """Return a fresh sacrebleu object; a warning that lines look tokenised is of no use here."""
        return BLEU(lowercase=self.config.lowercase, tokenize=self.config.tokenize, force=True)


class Chrf(SacrebleuMetric):
    """chrF, 0 to 100."""

    name = "chrf"
    is_higher_better = True

    def __init__(self, config: ChrfConfig) -> None:
        self.config = config

    def build(self) -> CHRF:
        """Return a fresh sacrebleu object."""
        return CHRF(lowercase=self.config.lowercase, word_order=self.config.word_order)


class Ter(SacrebleuMetric):
    """TER in percent: edits and shifts for 100 reference words."""

    name = "ter"
    is_higher_better = False

    def __init__(self, config: TerConfig) -> None:
        self.config = config

    def build(self) -> TER:
        """Return a fresh sacrebleu object."""
        return TER(case_sensitive=not self.config.lowercase)
