"""Perplexity of a text, per token and per word."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Perplexity:
    """How many symbols the model hesitates between, on average.

    Attributes:
        per_token: over the model's own tokens; texts cut into other tokens cannot be compared by it.
        per_word: over the words of the text, whatever tokens they were cut into; comparable between models.
    """

    per_token: float
    per_word: float


def perplexity(total_nats: float, num_tokens: int, num_words: int) -> Perplexity:
    """Return ``exp(total_nats / count)`` for both counts; infinite where that is too great for a float.

    Args:
        total_nats: summed negative natural log-likelihood of every target symbol, the end of each line counted, without
            label smoothing.
        num_tokens: how many symbols that were, the ends of lines counted.
        num_words: words between white space, and one more for each line's end: the end was predicted, too.

    Raises:
        ValueError: a count is not positive.
    """
    if num_tokens <= 0 or num_words <= 0:
        raise ValueError(f"Perplexity needs tokens and words, but there are {num_tokens} and {num_words}.")
    return Perplexity(_exp(total_nats / num_tokens), _exp(total_nats / num_words))


def _exp(nats: float) -> float:
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf
