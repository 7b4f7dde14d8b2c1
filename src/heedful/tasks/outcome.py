"""What a task hands back: predictions, scores of given targets, evaluations."""

from dataclasses import dataclass, field
from typing import Any

from heedful.text.lines import escape_line


@dataclass(frozen=True)
class Candidate:
    """One possible output.

    Attributes:
        text: the output as text.
        score: what candidates are ranked by (for a search: the log-probability with its penalties).
        log_prob: natural logarithm of the model's probability of this output; where a search has a
            `repetition_penalty`, of the probabilities as it left them.
        ids: the symbols that the search found, without BOS and EOS; none for a label. A text can be spelled in several
            ways, and the model's own need not be the tokenizer's.
        alignment: links from the source's words to the output's, both from 0, where they were asked for.
    """

    text: str
    score: float
    log_prob: float
    ids: tuple[int, ...] = ()
    alignment: tuple[tuple[int, int], ...] | None = None

    def to_values(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values: dict[str, Any] = {"text": self.text, "score": self.score, "log_prob": self.log_prob}
        return values if self.alignment is None else values | {"alignment": [list(link) for link in self.alignment]}


@dataclass(frozen=True)
class Prediction:
    """The outputs for one input line, best first.

    Attributes:
        line: the line's number, from 0.
        source: the line as it was read.
        candidates: at least one.
    """

    line: int
    source: str
    candidates: tuple[Candidate, ...]

    @property
    def text(self) -> str:
        """The best output."""
        return self.candidates[0].text

    @property
    def score(self) -> float:
        """The best output's score."""
        return self.candidates[0].score

    def to_values(self) -> dict[str, Any]:
        """Return plain values for JSON; lines count from 1 as in an editor."""
        candidates = [each.to_values() for each in self.candidates]
        return {"line": self.line + 1, "source": self.source, "text": self.text, "candidates": candidates}


@dataclass(frozen=True)
class WordScore:
    """A word of a target, and the log-probability of the symbols that spell it (the space before it included)."""

    word: str
    log_prob: float


@dataclass(frozen=True)
class TargetScore:
    """How probable a model finds a given target.

    Attributes:
        target: the target as it was read.
        log_prob: of the whole target in nats, the end of sequence included.
        num_tokens: symbols counted, the end of sequence included.
        words: the share of each word; the end of sequence, where it is counted, is the last, named ``</s>``. They sum
            to `log_prob`.
    """

    target: str
    log_prob: float
    num_tokens: int
    words: tuple[WordScore, ...]

    @property
    def log_prob_per_word(self) -> float:
        """The whole divided by the number of words, the end of sequence counted as one."""
        return self.log_prob / max(len(self.words), 1)

    def to_values(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "target": self.target,
            "log_prob": self.log_prob,
            "log_prob_per_word": self.log_prob_per_word,
            "num_tokens": self.num_tokens,
            "words": [{"word": each.word, "log_prob": each.log_prob} for each in self.words],
        }

    def to_line(self) -> str:
        """Return the whole, per word, and each word with its share, between tabs."""
        words = escape_line(" ".join(f"{each.word}:{each.log_prob:.3f}" for each in self.words))
        return f"{self.log_prob:.4f}\t{self.log_prob_per_word:.4f}\t{words}"


@dataclass(frozen=True)
class Measured:
    """One metric's value, with the signature that says exactly how it was computed."""

    name: str
    value: float
    signature: str


@dataclass(frozen=True)
class Evaluation:
    """How well a model did on a split.

    Attributes:
        split: the data's name.
        measured: every metric of the configuration, and ``loss`` in nats per target token where there are targets.
        num_lines: inputs that were predicted (references of one source count once where they are grouped).
        elapsed_s: seconds that prediction took.
        predictions: one for each input.
        references: the accepted outputs of each input.
    """

    split: str
    measured: tuple[Measured, ...]
    num_lines: int
    elapsed_s: float
    predictions: tuple[Prediction, ...] = field(default=(), repr=False)
    references: tuple[tuple[str, ...], ...] = field(default=(), repr=False)

    def speed(self) -> str:
        """Return a phrase that says how quickly the inputs were predicted."""
        lines_per_s = self.num_lines / max(self.elapsed_s, 1e-9)
        return f"{self.num_lines:,} lines in {self.elapsed_s:.1f} s ({lines_per_s:.0f} a second)"

    def scores(self) -> dict[str, float]:
        """Return the values by name."""
        return {each.name: each.value for each in self.measured}

    def to_values(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"split": self.split, "lines": self.num_lines, "elapsed_s": self.elapsed_s, "metrics": self.metrics()}

    def metrics(self) -> dict[str, dict[str, Any]]:
        """Return value and signature by name."""
        return {each.name: {"value": each.value, "signature": each.signature} for each in self.measured}

    def to_text(self) -> str:
        """Return a line for each metric."""
        width = max(len(each.name) for each in self.measured)
        rows = [f"{each.name:{width}}  {each.value:10.4f}  {each.signature}".rstrip() for each in self.measured]
        return "\n".join([*rows, f"{self.split}: {self.speed()}"])
