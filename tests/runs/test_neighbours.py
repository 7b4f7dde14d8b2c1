"""The same line gives the same text, alone or in any company, and lines keep their number and order."""

import random
from pathlib import Path

import pytest
from tests.runs.samples import words

from heedful import runs
from heedful.runs.loaded import LoadedModel


@pytest.fixture(scope="module")
def model(reverser: Path) -> LoadedModel:
    return runs.load(reverser)


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return words()[:25]


@pytest.fixture(scope="module")
def alone(model: LoadedModel, lines: list[str]) -> list[str]:
    return [next(model.predict([line])).text for line in lines]


@pytest.mark.parametrize("max_rows", [8, 64])
def test_in_batches(model: LoadedModel, lines: list[str], alone: list[str], max_rows: int) -> None:
    assert [each.text for each in model.predict(lines, max_rows=max_rows)] == alone


def test_shuffled_among_garbage(model: LoadedModel, lines: list[str], alone: list[str]) -> None:
    generator = random.Random(3)
    garbage = ["".join(generator.choices("abcdxyz?\u00e4\u4e16 ", k=generator.randint(0, 30))) for _ in range(40)]
    mixed = [*enumerate(lines), *((-1, each) for each in garbage)]
    generator.shuffle(mixed)
    predictions = list(model.predict((text for _, text in mixed), max_rows=8, chunk_lines=33))
    assert [each.line for each in predictions] == list(range(len(mixed)))
    assert [each.source for each in predictions] == [text for _, text in mixed]
    found = {place: each.text for (place, _), each in zip(mixed, predictions, strict=True) if place >= 0}
    assert [found[index] for index in range(len(lines))] == alone


def test_blank_lines_stay_blank(model: LoadedModel) -> None:
    assert [each.text for each in model.predict(["", "ab", "  ", "\t", "ba", ""])] == ["", "ba", "", "", "ab", ""]


def test_samples_depend_on_the_line_number_alone(model: LoadedModel, reverser: Path) -> None:
    sampler = runs.load(reverser, settings=["search={kind='sampling', temperature=3.0}"])
    together = [each.text for each in sampler.predict(["abcd"] * 9)]
    assert together == [each.text for each in sampler.predict(["abcd"] * 9, max_rows=2)]
    assert len(set(together)) > 1


def test_lines_are_read_as_they_come(model: LoadedModel) -> None:
    taken = []

    def endless() -> "list[str]":
        while True:
            taken.append("ab")
            yield "ab"

    predictions = model.predict(endless(), chunk_lines=5)
    assert next(predictions).text == "ba"
    assert len(taken) == 5


def test_a_long_line_is_cut_and_reported(model: LoadedModel, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(list(model.predict(["ab", "abcd" * 9]))) == 2
    assert "1 line was longer than 12 symbols and cut (line 2); the longest had 36" in capsys.readouterr().err


def test_symbols_never_seen_are_reported(model: LoadedModel, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(list(model.predict(["ab", "aΩb", ""]))) == 3
    assert "1 line holds symbols that the vocabulary lacks" in capsys.readouterr().err
