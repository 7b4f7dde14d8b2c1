"""Cleaning: every row read is kept, left to another split or dropped for a named reason."""

import dataclasses
from typing import Any

from heedful.data import CleaningConfig, Example, HeldOut, ReadReport, clean


def run(pairs: list[tuple[str, str]], held_out: HeldOut | None = None, **options: Any) -> tuple[list[int], ReadReport]:
    report = ReadReport()
    examples = [Example(source=a, target=b, line=n, path="a.tsv") for n, (a, b) in enumerate(pairs, start=1)]
    return [each.line for each in clean(examples, CleaningConfig(**options), report, held_out)], report


def test_reasons_and_places() -> None:
    pairs = [("a", "b"), (" ", "b"), ("a", "b"), ("a", "c"), ("x" * 32, "b"), ("x" * 12, "y"), ("a", "b"), ("A", "b")]
    kept, report = run(pairs, max_characters=31, max_length_ratio=1.5)
    assert kept == [1, 4, 8]
    assert {reason: entry.places for reason, entry in report.dropped.items()} == {
        "with an empty side": ["a.tsv:2"],
        "duplicates": ["a.tsv:3", "a.tsv:7"],
        "longer than 31 characters": ["a.tsv:5"],
        "with one side more than 1.5 times longer": ["a.tsv:6"],
    }
    assert report.num_kept == 3 and report.num_dropped == 5
    report.num_read = 8
    assert report.summary().splitlines()[:2] == [
        "8 rows read, 3 kept, 5 dropped:",
        "  2 duplicates (first at a.tsv:3, a.tsv:7)",
    ]


def test_everything_can_be_allowed() -> None:
    pairs = [("a", ""), ("a", ""), ("", "b")]
    assert run(pairs, drop_empty=False, drop_duplicates=False)[0] == [1, 2, 3]


def test_lines_of_language_models_may_repeat() -> None:
    examples = [Example(target="Yes."), Example(target="Yes."), Example(target="")]
    report = ReadReport()
    assert len(list(clean(examples, CleaningConfig(), report))) == 2


def test_labels_count_as_a_side() -> None:
    examples = [Example(source="a", label="x"), Example(source="a", label="y"), Example(source="b", label=" ")]
    report = ReadReport()
    assert [each.label for each in clean(examples, CleaningConfig(), report)] == ["x", "y"]


def test_the_test_in_the_training_data() -> None:
    test = HeldOut([Example(source="The  Cat"), Example(source="a dog")])
    pairs = [("the cat ", "x"), ("a bird", "y"), ("a dog", "z")]
    kept, report = run(pairs, test)
    assert kept == [1, 2, 3]
    assert report.warnings[0].startswith("2 training rows are also in dev or test (first at a.tsv:1)")
    kept, report = run(pairs, test, overlap="drop")
    assert kept == [2] and report.dropped["also in dev or test"].count == 2 and not report.warnings
    assert run(pairs, test, overlap="ignore")[1].warnings == []


def test_summaries_survive_plain_values() -> None:
    report = run([("a", ""), ("a", "b")])[1]
    report.cut("with a source longer than 5 symbols", "a.tsv", 2)
    report.warnings.append("look.")
    again = ReadReport.from_saved(dataclasses.asdict(report))
    assert again == report
    assert again.summary().splitlines()[-2:] == [
        "Warning: 1 with a source longer than 5 symbols (first at a.tsv:2) were cut.",
        "Warning: look.",
    ]
