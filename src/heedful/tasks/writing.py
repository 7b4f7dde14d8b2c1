"""What tasks that write text have in common, whatever they read: loss, search, scores of given text, streaming."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from heedful.core.types import Batch, LossSum
from heedful.data.example import Example
from heedful.losses.cross_entropy import cross_entropy
from heedful.models.interfaces import Generates
from heedful.models.stepping import make_step_fn
from heedful.search import AnySearchConfig, BeamConfig
from heedful.search import search as run_search
from heedful.search import stream as run_stream
from heedful.tasks.outcome import Candidate, TargetScore
from heedful.tasks.rows import Row
from heedful.tasks.task import Task
from heedful.tasks.words import share_by_word

_UNFINISHED = "\ufffd"
"""How a decoder of bytes writes a character of which only the first bytes are known."""


class WritingTask(Task):
    """Writes text symbol by symbol."""

    model: Generates[Any, Any]

    @abstractmethod
    def beginning(self, row: Row) -> list[int]:
        """Return the symbols that what is written for a row must begin with."""

    @property
    def counts_end(self) -> bool:
        """True if the end of sequence is a symbol of each target, to be foretold like the others."""
        return True

    def loss(self, batch: Batch, *, label_smoothing: float | None = None) -> LossSum:
        """Return the cross-entropy of every target symbol given those before it (teacher forcing)."""
        return self.loss_from(
            batch, 0, self.config.loss.label_smoothing if label_smoothing is None else label_smoothing
        )

    def loss_from(self, batch: Batch, first: int, label_smoothing: float) -> LossSum:
        """Return the loss of the targets' positions from ``first`` on; those before it are only read."""
        batch = batch.to(self.device)
        hidden = self.model.decode(self.model.encode(batch), batch.target_input)[:, first:]
        keep, output = batch.target_keep[:, first:], self.model.output
        targets = batch.target_output[:, first:][keep]
        soft = None if batch.soft_targets is None else batch.soft_targets.map(lambda each: each[:, first:][keep])
        return cross_entropy(
            hidden[keep], output.weight, output.bias, targets, label_smoothing=label_smoothing, soft=soft
        )

    def predict_rows(self, rows: Sequence[Row], search: AnySearchConfig) -> list[tuple[Candidate, ...]]:
        """Search the most probable texts."""
        batch = self.stack(rows)
        memory = self.model.encode(batch)
        with_attention = isinstance(search, BeamConfig) and search.coverage_penalty > 0
        found = run_search(
            make_step_fn(self.model, with_attention=with_attention),
            memory,
            self.model.start(memory),
            search,
            lines=batch.lines,
            source_lengths=batch.source_lengths,
            seed=self.seed,
            prefix=[self.beginning(row) for row in rows],
        )
        decode = self.codec.decode_target
        return [
            tuple(Candidate(decode(each.ids), each.score, each.log_prob, each.ids) for each in best) for best in found
        ]

    def score_rows(self, rows: Sequence[Row], targets: Sequence[str]) -> list[TargetScore]:
        """Force each target through the decoder; one without symbols is certain, and never meets the model."""
        forced = iter(self._force([row for row in rows if has_symbols(row)]))
        scores = []
        for row, text in zip(rows, targets, strict=True):
            ids = (row.target or ())[1:]
            log_probs = next(forced)[: len(ids)] if has_symbols(row) else []
            symbols = ids[:-1] if self.counts_end else ids
            words = share_by_word(symbols, log_probs, self.codec.decode_target)
            scores.append(TargetScore(text, sum(log_probs, 0.0), len(ids), words))
        return scores

    def _force(self, rows: Sequence[Row]) -> list[list[float]]:
        """Return the log-probability of each target's symbols, and something at each place that pads."""
        if not rows:
            return []
        batch = self.stack(rows)
        hidden = self.model.decode(self.model.encode(batch), batch.target_input)
        chosen: list[list[float]] = (
            self.model.output.log_probs(hidden).gather(-1, batch.target_output[:, :, None])[:, :, 0].tolist()
        )
        return chosen

    def stream(self, line: str, *, search: AnySearchConfig | None = None) -> Iterator[str]:
        """Yield what is written for a line piece by piece, each as soon as it is certain.

        Raises:
            ConfigError: a beam, whose words are certain only at the end.
        """
        if not line.strip():
            return
        row = self.encode(Example(source=line, line=1))
        with self.inference():
            batch = self.stack([row])
            memory = self.model.encode(batch)
            steps = run_stream(
                make_step_fn(self.model),
                memory,
                self.model.start(memory),
                search or self.search,
                lines=batch.lines,
                source_lengths=batch.source_lengths,
                seed=self.seed,
                prefix=[self.beginning(row)],
            )
        yield from growing_text(self._symbols(steps), self.codec.decode_target)

    def _symbols(self, steps: Iterator[Any]) -> Iterator[int]:
        """Yield the symbols of a stream's one path; between them the model is as it was, for whoever else uses it."""
        while True:
            with self.inference():
                step = next(steps, None)
            if step is None:
                return
            yield step.ids[0][0]


def has_symbols(row: Row) -> bool:
    """Say whether there is something to be foretold after BOS."""
    return len(row.target or ()) > 1


def growing_text(ids: Iterable[int], decode: Callable[[Sequence[int]], str]) -> Iterator[str]:
    """Yield what each symbol adds to the text; joined, the pieces are the text of all symbols.

    A symbol that ends within a character adds nothing until the character is whole.

    Args:
        ids: the text's symbols; reserved ones add nothing.
        decode: turns ids into text.
    """
    seen: list[int] = []
    text = given = ""
    for each in ids:
        seen.append(each)
        text = decode(seen)
        if len(text) > len(given) and not text.endswith(_UNFINISHED):
            yield text[len(given) :]
            given = text
    if len(text) > len(given):
        yield text[len(given) :]
