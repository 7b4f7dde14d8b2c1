"""What the four checks found, as a table, and what may be said because of it."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

KINDS = {
    "attention": "attention, as trained",
    "uniform": "uniform weights",
    "words": "words alone, own weights",
    "words-uniform": "words alone, uniform weights",
    "words-guided": "words alone, the trained weights",
}
BY_ADVERSARY = "words-guided-by-adversary"
"""Kind of the model without context that takes an adversary's weights; its name ends as the adversary's does."""


def adversary_name(weight: float) -> str:
    """Return the name of the adversary in whose loss the difference between attentions has this weight."""
    return "adversary-" + (f"{weight:.12f}".rstrip("0").rstrip(".") or "0")


# Two-sided 5 % points of Student's distribution by degrees of freedom; between them the smaller number's is taken.
_STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 10: 2.23, 15: 2.13, 30: 2.04}


@dataclass(frozen=True)
class Trial:
    """One trained model.

    Attributes:
        name: its kind and seed, or the adversary's weight.
        score: the first metric on the test data.
        outputs_apart: mean total variation of its outputs from those of the first trained model, 0 to 1.
        weights_apart: mean Jensen-Shannon divergence of its weights from those, 0 to 0.693 nats.
    """

    name: str
    score: float
    outputs_apart: float | None = None
    weights_apart: float | None = None

    @property
    def weight(self) -> str:
        """What the name ends with: an adversary's weight, or a seed."""
        return self.name.rpartition("-")[2]


@dataclass(frozen=True)
class Difference:
    """A difference of two means with its 95 % interval (Welch 1947)."""

    value: float
    low: float
    high: float

    @classmethod
    def between(cls, one: Sequence[float], other: Sequence[float]) -> "Difference":
        """Return by how much the first mean is larger; each side has at least two values."""
        parts = [statistics.variance(each) / len(each) for each in (one, other)]
        value = statistics.mean(one) - statistics.mean(other)
        if sum(parts) == 0:
            return cls(value, value, value)
        shares = (part**2 / (len(each) - 1) for part, each in zip(parts, (one, other), strict=True))
        freedom = sum(parts) ** 2 / sum(shares)
        reach = _STUDENT[max((each for each in _STUDENT if each <= freedom), default=1)] * math.sqrt(sum(parts))
        return cls(value, value - reach, value + reach)

    def to_text(self) -> str:
        """Return value and interval."""
        return f"{self.value:+.2f} (95 % interval {self.low:+.2f} to {self.high:+.2f})"


@dataclass(frozen=True)
class Explanation:
    """What the checks found.

    Attributes:
        metric: name of the score.
        num_lines: test examples.
        trials: every trained model.
    """

    metric: str
    num_lines: int
    trials: tuple[Trial, ...]

    def with_trial(self, trial: Trial) -> "Explanation":
        """Return a copy with one more model."""
        return replace(self, trials=(*self.trials, trial))

    def of(self, kind: str) -> list[Trial]:
        """Return the models of a kind, one for each seed or adversary."""
        return [each for each in self.trials if each.name.rpartition("-")[0] == kind]

    def furthest(self) -> Trial:
        """Return the adversary whose weights are furthest away."""
        return max(self.of("adversary"), key=lambda each: each.weights_apart or 0.0)

    def worth_of_learning(self) -> Difference:
        """Return what learned weights are worth above uniform ones (check 1), in points of the score."""
        return Difference.between(*([each.score for each in self.of(kind)] for kind in ("attention", "uniform")))

    def worth_for_words(self) -> Difference:
        """Return what the trained weights are worth, above uniform ones, to a model without context (check 3)."""
        kinds = ("words-guided", "words-uniform")
        return Difference.between(*([each.score for each in self.of(kind)] for kind in kinds))

    def seeds_apart(self) -> tuple[float, float]:
        """Return how far outputs and weights are apart between seeds (check 2), in the mean."""
        others = [each for each in self.of("attention") if each.weights_apart is not None]
        return (
            statistics.mean(each.outputs_apart or 0.0 for each in others),
            statistics.mean(each.weights_apart or 0.0 for each in others),
        )

    def best_adversary(self) -> Trial | None:
        """Return, of the adversaries whose outputs are no further away than those of other seeds, the furthest."""
        limit, _ = self.seeds_apart()
        near = [each for each in self.of("adversary") if (each.outputs_apart or 0.0) <= limit]
        return max(near, key=lambda each: each.weights_apart or 0.0, default=None)

    def conclusions(self) -> list[str]:
        """Return a sentence for each check: what was found, and what follows."""
        outputs, weights = self.seeds_apart()
        return [
            f"1 Uniform weights: learned ones are worth {_say(self.worth_of_learning(), self.metric)}.",
            f"2 Seeds: weights differ by {weights:.3f} nats (of 0.693 at most), outputs by {outputs:.3f} (of 1). What "
            "differs less than this may be chance.",
            f"3 Words alone: the trained weights are worth {_say(self.worth_for_words(), self.metric)}.",
            f"4 Adversary: {self._of_adversary(outputs, weights)}",
        ]

    def _of_adversary(self, outputs: float, weights: float) -> str:
        found = self.best_adversary()
        if found is None:
            nearest = min(self.of("adversary"), key=lambda each: each.outputs_apart or 0.0)
            return (
                f"none says the same as the model as nearly as another seed does ({outputs:.3f}); the nearest is "
                f"{nearest.outputs_apart:.3f} away. Weights cannot be moved at will here."
            )
        apart = found.weights_apart or 0.0
        follows = (
            "other weights go with the same outputs, so these are one account among several"
            if apart > 2 * weights
            else "weights that give these outputs are much alike"
        )
        return (
            f"as near to the outputs as another seed ({found.outputs_apart:.3f}), its weights are {apart:.3f} nats "
            f"away (seeds: {weights:.3f}): {follows}."
        )

    def to_values(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        best = self.best_adversary()
        return {
            "metric": self.metric,
            "lines": self.num_lines,
            "trials": [vars(each) for each in self.trials],
            "uniform": vars(self.worth_of_learning()),
            "words": vars(self.worth_for_words()),
            "seeds": dict(zip(("outputs_apart", "weights_apart"), self.seeds_apart(), strict=True)),
            "adversary": None if best is None else best.name,
            "conclusions": self.conclusions(),
        }

    def to_text(self) -> str:
        """Return a table and the conclusions."""
        lines = [f"{'':36}{self.metric:>16}{'outputs apart':>16}{'weights apart':>16}"]
        lines += [self._line(title, self.of(kind)) for kind, title in KINDS.items()]
        lines += [self._line(f"adversary, {each.weight}", [each]) for each in self.of("adversary")]
        by_adversary = self.of(BY_ADVERSARY)
        lines += [self._line("words alone, an adversary's weights", by_adversary)] if by_adversary else []
        return "\n".join([*lines, "", *self.conclusions()])

    def _line(self, title: str, trials: Sequence[Trial]) -> str:
        scores = [each.score for each in trials]
        spread = f" ±{statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
        cells = [f"{statistics.mean(scores):.2f}{spread}"]
        for name in ("outputs_apart", "weights_apart"):
            values = [getattr(each, name) for each in trials if getattr(each, name) is not None]
            cells.append(f"{statistics.mean(values):.3f}" if values else "")
        return f"{title:36}" + "".join(f"{cell:>16}" for cell in cells)


def _say(difference: Difference, metric: str) -> str:
    if difference.low > 0:
        follows = "more than chance"
    elif difference.high < 0:
        follows = "a loss"
    else:
        follows = "no more than chance, so nothing can be explained by them here"
    return f"{difference.to_text()} of {metric}: {follows}"
