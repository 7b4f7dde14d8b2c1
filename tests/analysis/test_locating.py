"""Words found in a text that says nearly the same."""

import pytest

from heedful.analysis.locating import NOWHERE, locate_words


def found(words: list[str], text: str) -> list[str]:
    return [text[first:end] for first, end in locate_words(words, text)]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["so", "it", "'s", "10 000", "."], "so it's 10 000."),
        (["a", "b"], "  a\u00a0b "),
        ([], ""),
    ],
)
def test_the_same_text_but_for_space(words: list[str], text: str) -> None:
    assert ["".join(each.split()) for each in found(words, text)] == ["".join(each.split()) for each in words]


def test_unknown_characters_stand_where_they_were() -> None:
    assert found(["the", "Ω", "shop", "ŁŁ", "!"], "the \u2047 shop \u2047!") == ["the", "\u2047", "shop", "\u2047", "!"]


def test_what_was_cut_off_is_nowhere() -> None:
    assert locate_words(["one", "two", "three"], "one tw") == [(0, 3), (4, 6), NOWHERE]
