"""What a model read, position by position and word by word."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from heedful.analysis import by_words, read_lines
from heedful.attention.tap import Gates
from heedful.core.config import parse_config
from heedful.core.errors import DataError
from heedful.core.symbols import BOS_ID, EOS_ID
from heedful.tasks import TASKS, Task, task_class
from heedful.tasks.outcome import Candidate, Prediction
from heedful.text import Codec, LabelSet
from heedful.text.unread import Unread

PAIRS = [("ab cab", "bac ba"), ("b", "b"), ("a b c", "c b a"), ("bc", "cb")]
SIZES = {"model_dim": 12, "num_heads": 3, "inner_dim": 10, "dropout": 0.3}
TABLE = {"kind": "tsv", "path": "x", "source": "s", "target": "t"}


def task_of(model: dict[str, Any], task: str = "translation", **more: Any) -> Task:
    values = {"task": task, "text": {"source": {"kind": "character"}}, "data": {"train": TABLE}, "model": model, **more}
    config = parse_config(TASKS[task].config_class, values)
    codec = Codec.train(
        config.text, [(source, None if task == "classification" else target) for source, target in PAIRS]
    )
    torch.manual_seed(3)
    return task_class(config)(config, codec, LabelSet.collect(["b", "cb"]) if task == "classification" else None)


@pytest.fixture(scope="module")
def transformer() -> Task:
    model = {**SIZES, "kind": "transformer", "encoder_layers": 2, "decoder_layers": 1}
    return task_of(model, search={"kind": "greedy", "max_length": 9})


def test_lines_come_back_in_order_with_their_positions(transformer: Task) -> None:
    readings = list(read_lines(transformer, PAIRS))
    assert [(each.line, each.source_text, each.target_text) for each in readings] == [
        (index, *pair) for index, pair in enumerate(PAIRS)
    ]
    first = readings[0]
    assert first.is_forced
    assert first.source.words == ("ab", "cab", "</s>")
    assert first.source.word_of == (0, 0, 1, 1, 1, 1, 2)
    assert first.target_input.words == ("<s>", "bac", "ba")
    assert first.target_output.words == ("bac", "ba", "</s>")
    for reading in readings:
        for each in reading.maps:
            queries, keys = reading.queries(each.site.kind), reading.keys(each.site.kind)
            assert each.weights.shape[1:] == (len(queries.ids), len(keys.ids))


def test_a_line_is_read_alike_in_any_company(transformer: Task) -> None:
    (alone,) = read_lines(transformer, PAIRS[2:3])
    together = list(read_lines(transformer, PAIRS))[2]
    for one, other in zip(alone.maps, together.maps, strict=True):
        torch.testing.assert_close(one.weights, other.weights, rtol=1e-5, atol=1e-6)


def test_without_a_target_the_model_s_own_answer_is_read(transformer: Task) -> None:
    sources = [source for source, _ in PAIRS]
    answers = [each.text for each in transformer.predict(sources)]
    readings = list(read_lines(transformer, [(source, None) for source in sources]))
    assert [each.target_text for each in readings] == answers
    assert not any(each.is_forced for each in readings)


def test_gates_reach_the_model(transformer: Task) -> None:
    site = transformer.model.attention_sites()[0]
    (before,) = read_lines(transformer, PAIRS[:1])
    (after,) = read_lines(transformer, PAIRS[:1], gates=Gates({site.path: torch.zeros(site.num_heads)}))
    assert torch.equal(before.maps[0].weights, after.maps[0].weights)
    assert not torch.allclose(before.maps[1].weights, after.maps[1].weights)


def test_a_language_model_and_a_classifier_are_read_too() -> None:
    writer = task_of({**SIZES, "kind": "transformer_language_model", "num_layers": 1}, "language_modelling")
    (reading,) = read_lines(writer, [(None, "ab c")])
    assert reading.source is None
    assert reading.queries("decoder") is reading.keys("decoder") is reading.target_input
    judge = task_of(
        {"kind": "classifier", "pooling": "attention"},
        "classification",
        data={"train": {"kind": "tsv", "path": "x", "source": "s", "label": "t"}},
    )
    (judged,) = read_lines(judge, [("ab", "b")])
    assert judged.target_input is None
    assert judged.maps[-1].weights.shape == (1, 1, 3)


def test_weights_between_words_by_hand() -> None:
    weights = torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7], [1.0, 0.0, 0.0]]])
    found = by_words(weights, [0, 0, 1], [0, 1, 1])
    torch.testing.assert_close(found, torch.tensor([[[0.3, 0.7], [1.0, 0.0]]]))
    assert by_words(weights, [None, 0, None], [0, None, 1]).tolist() == [[[pytest.approx(0.1), pytest.approx(0.7)]]]


def test_positions_find_the_words_of_a_treebank(transformer: Task) -> None:
    (reading,) = read_lines(transformer, [("ab, c", "b")])
    spelled = replace(reading.source.spelling, text="ab, c")
    assert spelled.owners([(0, 2), (2, 3), (4, 5)]) == [0, 0, 1, 2, 2]
    assert reading.source.owners([(0, 2), (4, 5)])[-3:] == [1, 1, None]


def spelled_otherwise(task: Task, patch: pytest.MonkeyPatch) -> list[int]:
    """Let a task answer every line "ba", in three symbols where the tokenizer has two; return the symbols."""
    assert task.codec.target is not None
    ids = task.codec.target.encode("bac")
    answer = Candidate("ba", -1.0, -1.0, tuple(ids))
    patch.setattr(
        task, "predict", lambda lines, **_: (Prediction(place, text, (answer,)) for place, text in enumerate(lines))
    )
    return ids


def test_the_row_that_was_read_is_handed_out(transformer: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = spelled_otherwise(transformer, monkeypatch)
    own, given = read_lines(transformer, [("ab cab", None), ("b", "ba")])
    assert list(own.encoded.target) == [BOS_ID, *ids, EOS_ID] and own.encoded.target[1:] == list(own.target_output.ids)
    assert len(given.encoded.target) == 4 and list(given.encoded.source) == list(given.source.ids)
    again = transformer.stack([own.encoded])
    assert int(again.target_lengths[0]) - 1 == own.maps[-1].weights.shape[1]


def test_cuts_are_told_of_what_was_given_and_not_of_what_was_answered() -> None:
    model = {**SIZES, "kind": "transformer", "encoder_layers": 1, "decoder_layers": 1}
    text = {"source": {"kind": "character"}, "max_source_length": 4, "max_target_length": 3}
    task = task_of(model, search={"kind": "greedy", "min_length": 6, "max_length": 6}, text=text)
    unread = Unread()
    own, _ = read_lines(task, [("ab", None), ("a", "babab")], unread=unread)
    assert len(own.target_output.ids) == 7
    assert (unread.cut.count, unread.cut.first) == (1, [2])


def test_blank_lines_are_harmless_for_a_classifier() -> None:
    judge = task_of(
        {"kind": "classifier", "pooling": "attention"},
        "classification",
        data={"train": {"kind": "tsv", "path": "x", "source": "s", "label": "t"}},
    )
    lines = [("ab", None), ("", None), ("b", "cb"), (" ", ""), ("", "b")]
    readings = list(read_lines(judge, lines))
    assert [each.line for each in readings] == [0, 1, 2, 3, 4]
    assert [each.encoded.label is None for each in readings] == [False, True, False, True, False]
    assert [each.target_text for each in readings][1:4] == ["", "cb", ""]
    with pytest.raises(DataError, match="the label '' is not one of the model's"):
        list(read_lines(judge, [("ab", "")]))
