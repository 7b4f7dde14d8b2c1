"""Where a run's configuration comes from, and where its relative paths start."""

import inspect
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import pytest

from heedful.core.config import Config
from heedful.core.errors import ConfigError
from heedful.runs.config import parse_run, read_run

VALID: dict[str, Any] = {"data": {"train": {"kind": "lines", "path": "x"}}, "model": {"kind": "transformer"}}

FILE = """
task = "translation"
[data.train]
kind = "several"
sources = [{ kind = "tsv", path = "a.tsv", source = "s", target = "t" }]
[data.dev]
kind = "tsv"
path = "${HEEDFUL_DATA}/dev.tsv"
source = "s"
target = "t"
[model]
kind = "transformer"
[training]
max_steps = 1
"""


def test_paths_start_at_the_file_and_those_of_settings_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "x.toml").write_text(FILE, "utf-8")
    monkeypatch.chdir(tmp_path)
    test = "data.test={kind = 'tsv', path = 'test.tsv', source = 's', target = 't'}"
    values = read_run("configs/x.toml", [test]).values()["data"]
    assert values["train"]["sources"][0]["path"] == str(tmp_path / "configs" / "a.tsv")
    assert values["test"]["path"] == str(tmp_path / "test.tsv")
    assert values["dev"]["path"] == "${HEEDFUL_DATA}/dev.tsv"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "`task` is missing"),
        ({"task": "translate"}, "`task` is 'translate'. Did you mean `translation`?"),
        ({"task": "translation", "serch": {}}, "`serch` is not a known key. Did you mean"),
        ({"task": "translation", "training": 3}, "`training` must be a table"),
        ({"task": "translation", "init_from": 3}, "`init_from` must be the path"),
        ({"task": "translation", "training": {"max_steps": 1}, "runtime": {"threads": 0}}, "`runtime.threads` is 0:"),
        ({"task": "translation", "training": {"max_steps": 1}, "runtime": {"seed": -1}}, "`runtime.seed` is -1:"),
    ],
)
def test_what_does_not_fit_is_named(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_run({**VALID, **values})
    assert message in str(caught.value)


def every_config(kind: type[Config] = Config) -> Iterator[type[Config]]:
    for each in kind.__subclasses__():
        if each.__module__.startswith("heedful."):
            yield each
        yield from every_config(each)


def test_what_may_be_none_is_none_when_absent_as_toml_has_no_word_for_it() -> None:
    found = [
        f"{kind.__name__}.{name}"
        for kind in every_config()
        if not inspect.isabstract(kind)
        for name, field in kind.model_fields.items()
        if NoneType in get_args(field.annotation) and not field.is_required() and field.get_default() is not None
    ]
    assert found == []
    switched_off = VALID | {
        "training": {"max_steps": 1, "clip_norm": 0},
        "search": {"kind": "greedy", "max_length_ratio": 0},
    }
    run = parse_run({"task": "translation", **switched_off})
    assert parse_run(tomllib.loads(run.toml())) == run
    assert run.training.clip_norm == 0 and run.task.search.max_length_ratio == 0
