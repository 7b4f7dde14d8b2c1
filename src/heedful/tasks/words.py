"""Which word each symbol of a row belongs to, whatever the symbols are: characters, pieces, bytes or words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heedful.tasks.outcome import WordScore

END = "</s>"


@dataclass(frozen=True)
class Spelling:
    """A text, and where in it each of its symbols begins.

    Attributes:
        text: what the symbols say.
        starts: for each symbol, the place in the text of its first visible character; a symbol that adds only space
            has the place of the next visible character, or of the last one where none follows.
    """

    text: str
    starts: tuple[int, ...]

    def owners(self, spans: Sequence[tuple[int, int]]) -> list[int | None]:
        """Return for each symbol which span its first visible character stands in; None where none does.

        Args:
            spans: first and past-the-end places of words in the text, in order.
        """
        found: list[int | None] = []
        for start in self.starts:
            found.append(next((index for index, (first, end) in enumerate(spans) if first <= start < end), None))
        return found

    def word_spans(self) -> list[tuple[int, int]]:
        """Return the places of the words between spaces."""
        spans, end = [], 0
        for word in self.text.split():
            first = self.text.index(word, end)
            end = first + len(word)
            spans.append((first, end))
        return spans


def spell(ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> Spelling:
    """Find where each symbol begins, by decoding ever longer beginnings: this holds for every kind of tokenizer.

    Args:
        ids: without reserved symbols.
        decode: turns ids into text.
    """
    text = decode(ids)
    starts = []
    seen = 0
    for count in range(1, len(ids) + 1):
        starts.append(_next_visible(text, seen))
        seen = len(decode(ids[:count]))
    return Spelling(text, tuple(starts))


def _next_visible(text: str, place: int) -> int:
    rest = text[place:]
    space = len(rest) - len(rest.lstrip())
    return place + space if space < len(rest) else max(0, len(text.rstrip()) - 1)


def share_by_word(
    ids: Sequence[int], log_probs: Sequence[float], decode: Callable[[Sequence[int]], str]
) -> tuple[WordScore, ...]:
    """Sum the log-probabilities of symbols into those of the words they belong to.

    Args:
        ids: the target's symbols, without reserved ones.
        log_probs: of each symbol, and as one more value at the end, of the end of sequence where it is counted.
        decode: turns ids into text.
    """
    spelling = spell(ids, decode)
    spans = spelling.word_spans()
    totals = [0.0] * len(spans)
    for owner, log_prob in zip(spelling.owners(spans), log_probs, strict=False):
        if owner is not None:
            totals[owner] += log_prob
    shares = tuple(
        WordScore(spelling.text[first:end], total) for (first, end), total in zip(spans, totals, strict=True)
    )
    if len(log_probs) == len(ids):
        return shares
    return (*shares, WordScore(END, sum(log_probs) - sum(totals)))
