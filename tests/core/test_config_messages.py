"""Messages about wrong configurations name the key as the user's file has it, whatever kinds were chosen on the way."""

from typing import Annotated, Literal

import pytest
from pydantic import Field

from heedful.core.config import Config, parse_config
from heedful.core.errors import ConfigError


class Part(Config):
    of: int


class First(Config):
    kind: Literal["first"] = "first"
    width: int = 1
    part: Part | None = None


class Second(Config):
    kind: Literal["second"] = "second"
    several: tuple[Annotated[First | Part, Field()], ...] = ()


class Whole(Config):
    table: Annotated[First | Second, Field(discriminator="kind")]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"kind": "first", "widht": 2}, r"^`all\.table\.widht` is not a known key\. Did you mean `width`\?$"),
        ({"kind": "first", "width": "x"}, r"^`all\.table\.width` is 'x'"),
        ({"kind": "first", "part": {"fo": 2, "of": 1}}, r"^`all\.table\.part\.fo` .*Did you mean `of`\?$"),
        ({"kind": "secnd"}, r"^`all\.table\.kind` is 'secnd'\. Did you mean `second`\?$"),
        ({}, r"^`all\.table\.kind` is missing\. Choose from: `first`, `second`\.$"),
        (None, r"^`all\.table` is None"),
    ],
)
def test_keys_are_the_users(table: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(Whole, {"table": table}, prefix="all")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_is_finite(value: float) -> None:
    class Rate(Config):
        rate: float

    with pytest.raises(ConfigError, match=r"^`rate` is (nan|inf)"):
        parse_config(Rate, {"rate": value})


def test_shapes_are_named_as_toml_names_them() -> None:
    with pytest.raises(ConfigError, match=r"^`table\.part` is 3, but must be a table\.$"):
        parse_config(Whole, {"table": {"kind": "first", "part": 3}})
    with pytest.raises(ConfigError, match=r"^`table\.several` is 'x', but must be a list\.$"):
        parse_config(Whole, {"table": {"kind": "second", "several": "x"}})
