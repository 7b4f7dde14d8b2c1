"""Configuration files and paths that a user may well have, and that must be read or named."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from heedful.core.config import apply_settings, read_toml, resolve_path
from heedful.core.errors import ConfigError
from heedful.core.runtime import RuntimeConfig

DEEP = "a = " + "[" * 100_000


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b'\xef\xbb\xbftask = "x"\r\n')
    assert read_toml(tmp_path / "a.toml") == {"task": "x"}


def test_nesting_without_end(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(DEEP, "utf-8")
    with pytest.raises(ConfigError, match=r"a\.toml: not valid TOML: .* nested too deeply"):
        read_toml(tmp_path / "a.toml")
    assert apply_settings({}, [DEEP.replace(" ", "")]) == {"a": DEEP[4:]}


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "ring").symlink_to("ring")
    cases = {
        "ring": "points back to itself",
        "~no such user/x": "there is no such user",
        "a\0b": r"`a\\x00b` holds a NUL",
        "a\udcff": r"`a\\udcff` is no UTF-8",
    }
    for text, message in cases.items():
        with pytest.raises(ConfigError, match=message):
            resolve_path(text, tmp_path)


@pytest.mark.parametrize("values", [{"threads": 0}, {"threads": 100_000}, {"seed": -1}, {"seed": 2**63}])
def test_threads_and_seeds_that_torch_cannot_take(values: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        RuntimeConfig(**values)
