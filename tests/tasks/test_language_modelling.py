"""A language model is measured on all of its text, however long its lines are, and on none at all."""

from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.core.config import parse_config
from heedful.data.example import Example
from heedful.models.catalogue import MODELS
from heedful.tasks import LanguageModelling, LanguageModellingConfig
from heedful.tasks.language_modelling import cut
from heedful.text import Codec
from heedful.text.unread import Unread

TEXT = "abacadabra cab"
KINDS: dict[str, dict[str, Any]] = {
    "transformer_language_model": {"model_dim": 6, "num_heads": 2, "inner_dim": 7, "num_layers": 1},
    "recurrent_language_model": {"embedding_dim": 5, "hidden_dim": 7},
}


def task_of(kind: str = "recurrent_language_model", unit: str = "line", **values: Any) -> LanguageModelling:
    settings = {
        "data": {"train": {"kind": "lines", "path": "x", "unit": unit}},
        "model": {"kind": kind, **KINDS[kind], "dropout": 0.0},
        **values,
        "text": {"source": {"kind": "character"}, **values.get("text", {})},
    }
    config = parse_config(LanguageModellingConfig, settings)
    torch.manual_seed(3)
    task = LanguageModelling(config, Codec.train(config.text, [(None, TEXT)]))
    with torch.no_grad():
        for each in task.model.parameters():
            each.mul_(3)  # so that it matters what was read
    return task


def test_windows_by_hand() -> None:
    assert list(cut(range(7), 4)) == [(range(4), 0), (range(2, 6), 2), (range(4, 7), 2)]
    assert list(cut(range(4), 4)) == [(range(4), 0)]
    assert list(cut([7, 8], 1)) == [([7], 0), ([8], 0)]


@pytest.mark.parametrize("context", [1, 2, 3, 5, 8, 30])
def test_windows_count_every_symbol_once(context: int) -> None:
    for size in range(1, 20):
        counted = [each for window, first in cut(range(size), context) for each in window[first:]]
        assert counted == list(range(size))
        assert all(len(window) <= context for window, _ in cut(range(size), context))


def test_long_lines_are_measured_whole() -> None:
    lines = [TEXT * 2, "ab", TEXT]
    examples = [Example(target=each, line=number) for number, each in enumerate(lines, start=1)]
    characters = sum(map(len, lines))
    short, long = (task_of(text={"max_target_length": limit}) for limit in (5, 99))
    unread = Unread()
    by_windows = short.evaluate(examples, "test", unread=unread).scores()
    assert unread.summary() == ""
    # A character is a symbol, and each line has its end besides.
    nats = by_windows["loss"] * (characters + 3)
    assert by_windows["nats_per_character"] == pytest.approx(nats / characters)
    whole = long.evaluate(examples, "test").scores()
    said = -sum(each.log_prob for each in long.score((None, line) for line in lines))
    assert whole["nats_per_character"] == pytest.approx(said / characters, rel=1e-5)
    assert whole["loss"] != pytest.approx(by_windows["loss"], rel=1e-5)  # less was read before each symbol


def test_a_limit_that_no_line_reaches_changes_nothing() -> None:
    examples = [Example(target=TEXT, line=1), Example(target="", line=2)]
    exact, wide = (
        task_of(text={"max_target_length": limit}).evaluate(examples, "test").scores() for limit in (len(TEXT), 99)
    )
    assert exact == wide


def test_unknown_symbols_are_told_in_a_stream_too() -> None:
    for unit in ("line", "stream"):
        unread = Unread()
        task_of(unit=unit).evaluate(
            [Example(target="ab\n", line=1), Example(target="xy", line=2)], "test", unread=unread
        )
        assert unread.unknown.first == [1, 2]  # the line break was never seen in training


def test_every_language_model_has_its_sizes() -> None:
    assert KINDS.keys() == {kind for kind in MODELS if kind.endswith("language_model")}


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_without_symbols_is_certain(kind: str, tmp_path: Path) -> None:
    task = task_of(kind, "stream")
    blank, said, again = task.score([(None, ""), (None, "abra"), (None, "")])
    assert blank == again and (blank.log_prob, blank.num_tokens, blank.words) == (0.0, 0, ())
    assert said.log_prob < 0 and said.num_tokens == 4
    assert [each.log_prob for each in task.score([(None, "")])] == [0.0]
    ended = next(task_of(kind, "line").score([(None, "")]))
    assert ended.log_prob < 0 and ended.num_tokens == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_without_symbols_can_be_measured(kind: str) -> None:
    task = task_of(kind, "stream", text={"collapse_spaces": True})
    assert task.evaluate([Example(target="  ", line=1)], "test").scores()["loss"] == 0.0
