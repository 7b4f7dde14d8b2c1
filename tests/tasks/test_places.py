import pytest

from heedful.core.errors import ConfigError
from heedful.runs.config import parse_run
from heedful.tasks.places import check_places

TEXTS = {"data": {"train": {"kind": "lines", "path": "x"}}, "training": {"max_steps": 1}}
LEARNED = {"kind": "learned", "max_positions": 41}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"task": "translation", "text": {"max_source_length": 41}}, r"positions`? is 41, but with `text.max_source"),
        ({"task": "translation", "text": {"max_target_length": 41}}, "`text.max_target_length` a text may have 42"),
        ({"task": "translation", "search": {"kind": "greedy", "max_length": 41}}, "with `search.max_length`"),
        ({"task": "language_modelling", "search": {"kind": "greedy", "max_length": 41}}, "with `search.max_length`"),
        ({"task": "language_modelling", "context": 42}, "with `context` a text may have 42 positions"),
    ],
)
def test_learned_positions_reach_as_far_as_the_longest_texts(values: dict, message: str) -> None:
    is_stream = values["task"] == "language_modelling"
    kind = "transformer_language_model" if is_stream else "transformer"
    unit = {"unit": "stream"} if is_stream else {}
    fitting = {
        **TEXTS,
        "data": {"train": {"kind": "lines", "path": "x", **unit}},
        "model": {"kind": kind, "positions": LEARNED},
        "text": {"max_source_length": 40, "max_target_length": 40},
        "search": {"kind": "greedy", "max_length": 40},
        **({"context": 41} if is_stream else {}),
        "task": values["task"],
    }
    check_places(parse_run(fitting).task)
    wanted = {**fitting, **values, "text": {**fitting["text"], **values.get("text", {})}}
    with pytest.raises(ConfigError, match=message):
        check_places(parse_run(wanted).task)


def test_location_scores_reach_as_far_as_the_longest_source() -> None:
    values = {
        **TEXTS,
        "task": "translation",
        "model": {"kind": "recurrent", "attention": {"kind": "location", "max_positions": 7}},
        "text": {"max_source_length": 6},
    }
    check_places(parse_run(values).task)
    with pytest.raises(ConfigError, match=r"`model.attention.max_positions` is 7, but with `text.max_source_length`"):
        check_places(parse_run(values | {"text": {"max_source_length": 7}}).task)


def test_the_defaults_go_together() -> None:
    for model in (
        {"kind": "recurrent", "attention": {"kind": "location"}},
        {"kind": "transformer", "positions": "learned"},
    ):
        check_places(parse_run({**TEXTS, "task": "translation", "model": model}).task)
