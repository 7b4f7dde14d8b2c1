"""Log-probabilities of symbols become those of words."""

from collections.abc import Sequence

import pytest

from heedful.tasks.words import share_by_word


def shares(pieces: list[str], log_probs: list[float]) -> list[tuple[str, float]]:
    def decode(ids: Sequence[int]) -> str:
        return "".join(pieces[index] for index in ids).replace("▁", " ").strip()

    found = share_by_word(range(len(pieces)), log_probs, decode)
    return [(each.word, pytest.approx(each.log_prob)) for each in found]


def test_pieces_join_the_word_they_continue() -> None:
    assert shares(["▁the", "▁ca", "t", "s"], [-1.0, -2.0, -3.0, -5.0, -7.0]) == [
        ("the", -1.0),
        ("cats", -10.0),
        ("</s>", -7.0),
    ]


def test_a_space_belongs_to_the_word_after_it() -> None:
    assert shares(["a", " ", "b", "c"], [-1.0, -2.0, -3.0, -5.0, -7.0]) == [("a", -1.0), ("bc", -10.0), ("</s>", -7.0)]


def test_a_lone_word_mark_belongs_to_the_word_after_it() -> None:
    assert shares(["▁", "x", "▁y"], [-1.0, -2.0, -3.0, -5.0]) == [("x", -3.0), ("y", -3.0), ("</s>", -5.0)]


def test_without_words_everything_is_the_end() -> None:
    assert shares([], [-2.0]) == [("</s>", -2.0)]


def test_an_end_that_is_not_counted_is_left_out() -> None:
    assert shares(["▁a", "b"], [-1.0, -2.0]) == [("ab", -3.0)]
