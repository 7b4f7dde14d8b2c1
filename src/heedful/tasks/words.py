"""Shares of a sequence's log-probability by word, whatever the symbols are: characters, pieces, bytes or words."""

from collections.abc import Callable, Sequence

from heedful.tasks.outcome import WordScore

END = "</s>"


def share_by_word(
    ids: Sequence[int], log_probs: Sequence[float], decode: Callable[[Sequence[int]], str]
) -> tuple[WordScore, ...]:
    """Sum the log-probabilities of symbols into those of words.

    A symbol belongs to the word that its first visible character stands in; a symbol that adds only space belongs to
    the word that follows. Decoding ever longer beginnings tells where each symbol stands, for every kind of tokenizer.

    Args:
        ids: the target's symbols, without reserved ones.
        log_probs: of each symbol, and as one more value at the end, of the end of sequence where it is counted.
        decode: turns ids into text.
    """
    words = decode(ids).split()
    totals = [0.0] * len(words)
    seen = ""
    for index in range(len(ids) if words else 0):
        grown = decode(ids[: index + 1])
        goes_on = seen != "" and not seen[-1].isspace() and grown[len(seen) : len(seen) + 1].strip() != ""
        word = len(seen.split()) - (1 if goes_on else 0)
        totals[min(word, len(words) - 1)] += log_probs[index]
        seen = grown
    shares = tuple(WordScore(word, total) for word, total in zip(words, totals, strict=True))
    if len(log_probs) == len(ids):
        return shares
    return (*shares, WordScore(END, sum(log_probs) - sum(totals)))
