"""Messages about configurations name the key as its user wrote it, and the nearest known ones."""

from typing import Annotated, Literal

import pytest
from pydantic import Field

from heedful.core.config import Config, apply_settings, parse_config, write_toml
from heedful.core.errors import ConfigError

TITLED = {"title": "x"}


class Round(Config):
    kind: Literal["round"] = "round"
    radius: float = Field(1.0, gt=0)


class Square(Config):
    kind: Literal["square"] = "square"
    side: int | Round = 1


class Drawing(Config):
    title: str
    shape: Annotated[Round | Square, Field(discriminator="kind")] = Round()
    others: tuple[Annotated[Round | Square, Field(discriminator="kind")], ...] = ()
    frame: Square = Square()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"titel": "x"}, "`titel` is not a known key. Did you mean `title`?"),
        ({}, "`title` is missing."),
        ({**TITLED, "shape": {"kind": "round", "radus": 2}}, "`shape.radus` is not a known key. Did you mean"),
        ({**TITLED, "shape": {"kind": "roud"}}, "`shape.kind` is 'roud'. Did you mean `round`?"),
        ({**TITLED, "shape": {"radius": 1}}, "`shape.kind` is missing. Choose from: `round`, `square`."),
        ({**TITLED, "shape": {"kind": "round", "radius": -1}}, "`shape.radius` is -1: input should be greater"),
        ({**TITLED, "others": [{"kind": "square", "sid": 1}]}, "`others.0.sid` is not a known key. Did you mean"),
        ({**TITLED, "frame": {"side": "wide"}}, "`frame.side` is 'wide': "),
        ({**TITLED, "frame": {"xyz": 1}}, "`frame.xyz` is not a known key. Choose from: `kind`, `side`."),
    ],
)  # fmt: skip
def test_messages(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(Drawing, values)
    assert message in str(caught.value)


def test_a_prefix_stands_before_the_key() -> None:
    with pytest.raises(ConfigError, match=r"`model\.title` is missing\."):
        parse_config(Drawing, {}, prefix="model")


def test_settings_change_copies_of_tables() -> None:
    values = {"shape": {"kind": "round"}, "title": "x"}
    changed = apply_settings(values, ["shape.radius=2", "title=two words", "others=[{kind='square'}]"])
    assert changed == {"shape": {"kind": "round", "radius": 2}, "title": "two words", "others": [{"kind": "square"}]}
    assert values == {"shape": {"kind": "round"}, "title": "x"}


def test_null_takes_a_key_away() -> None:
    values = {"training": {"validate_minutes": 6}, "title": "x"}
    changed = apply_settings(
        values, ["training.validate_minutes=null", "absent=null", "no.such.key=null", "title='null'"]
    )
    assert changed == {"training": {}, "title": "null"}
    assert values["training"] == {"validate_minutes": 6}


def test_none_is_an_absent_key() -> None:
    assert write_toml({"a": None, "b": {"c": None, "d": (1, 2)}}) == "[b]\nd = [\n    1,\n    2,\n]\n"
