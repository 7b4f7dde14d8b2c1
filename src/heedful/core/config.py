"""Strict configuration: frozen pydantic models, TOML files, one generic way to set a key, errors with remedies."""

import os
import re
import tomllib
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import pydantic
import tomli_w

from heedful.core.errors import ConfigError, did_you_mean


class Config(pydantic.BaseModel):
    """What every configuration class derives from: frozen; an unknown key, an infinity and a NaN are errors."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, protected_namespaces=(), allow_inf_nan=False)


ConfigType = TypeVar("ConfigType", bound=Config)


def parse_config(kind: type[ConfigType], values: dict[str, Any], *, prefix: str = "") -> ConfigType:
    """Check values against a configuration class.

    Args:
        kind: the class.
        values: nested plain values, as read from TOML.
        prefix: where the values stand in the whole file, for messages (``"model"``).

    Raises:
        ConfigError: an unknown key (the nearest known ones are named), a missing key or a value that does not fit.
    """
    try:
        return kind.model_validate(values)
    except pydantic.ValidationError as error:
        raise ConfigError("\n".join(_explain(kind, each, prefix) for each in error.errors())) from None


def _explain(kind: type[Config], error: Any, prefix: str) -> str:
    keys, owners = _walk(kind, error["loc"], is_known=error["type"] != "extra_forbidden")
    key = ".".join(([prefix] if prefix else []) + keys) or "the configuration"
    if error["type"] == "extra_forbidden":
        # The last key is no field, so that the walk ended at what holds it.
        hint = f" {did_you_mean(keys[-1], _names(owners[0]))}" if len(owners) == 1 else ""
        return f"`{key}` is not a known key.{hint}"
    if error["type"] == "union_tag_not_found":
        return f"`{key}.{_discriminator(error)}` is missing. {did_you_mean('', _tags(owners))}"
    if error["type"] == "union_tag_invalid":
        tag = error["ctx"]["tag"]
        return f"`{key}.{_discriminator(error)}` is {tag!r}. {did_you_mean(tag, _tags(owners))}"
    if error["type"] == "missing":
        return f"`{key}` is missing."
    if error["type"] == "literal_error":
        known = re.findall(r"'([^']*)'", error["ctx"]["expected"])
        return f"`{key}` is {error['input']!r}. {did_you_mean(str(error['input']), known)}"
    if error["type"] in _SHAPES:
        return f"`{key}` is {error['input']!r}, but must be {_SHAPES[error['type']]}."
    message = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if error["type"] == "value_error":
        return message if message.startswith("`") else f"`{key}`: {message}"
    return f"`{key}` is {error['input']!r}: {message[0].lower()}{message[1:]}."


_SHAPES = {
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "mapping_type"), "a table"),
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
}
"""What pydantic says in the words of Python, in those of TOML."""


def _walk(kind: type[Config], place: Iterable[str | int], *, is_known: bool) -> tuple[list[str], list[type[Config]]]:
    """Follow a place inside a configuration class.

    Where several kinds are possible, pydantic puts the kind chosen into the place, and where several types are, the
    type it tried; a user's file has no such keys.

    Returns:
        The keys as the user's file has them, and the classes that may stand where the last known one leads.
    """
    keys: list[str] = []
    owners = [kind]
    for part in place:
        chosen = [each for each in owners if len(owners) > 1 and part in _tags([each])]
        if chosen:
            owners = chosen
            continue
        if is_known and isinstance(part, str) and len(owners) == 1 and part not in _names(owners[0]):
            continue
        keys.append(str(part))
        if isinstance(part, str) and len(owners) == 1 and part in _names(owners[0]):
            owners = _configs_in(_names(owners[0])[part])
    return keys, owners


def _names(kind: type[Config]) -> dict[str, Any]:
    """Return the keys of a class, as a file spells them, with the type of each."""
    return {field.alias or name: field.annotation for name, field in kind.model_fields.items()}


def _discriminator(error: Any) -> str:
    """Return the key that chooses among several kinds: ``kind``, or ``name`` for metrics."""
    return str(error["ctx"]["discriminator"]).strip("'")


def _tags(kinds: Iterable[type[Config]]) -> list[str]:
    """Return what the choosing key may be for one of the classes to be meant."""
    fields = [each.model_fields[key] for each in kinds for key in ("kind", "name") if key in each.model_fields]
    literals = [each.annotation for each in fields if typing.get_origin(each.annotation) is typing.Literal]
    return [str(tag) for each in literals for tag in typing.get_args(each)]


def _configs_in(annotation: Any) -> list[type[Config]]:
    """Return the configuration classes that a field's type mentions, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return [annotation]
    return [found for each in typing.get_args(annotation) for found in _configs_in(each)]


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        ConfigError: the file is missing, is no UTF-8 or is no TOML (with the parser's line).
    """
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file.") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}.") from None
    except RecursionError:
        raise ConfigError(f"{path}: not valid TOML: tables or lists are nested too deeply.") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}.") from None


def write_toml(values: dict[str, Any]) -> str:
    """Return values as TOML; None is left out, for TOML has no null and an absent key is None."""
    return tomli_w.dumps(_without_none(values))


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_without_none(each) for each in value]
    return str(value) if isinstance(value, Path) else value


def apply_settings(values: dict[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """Return the values with ``a.b=value`` settings applied; a value is TOML if it parses, else a plain string.

    ``a.b=null`` takes the key away, so that its default holds: TOML itself has no word for nothing.

    Raises:
        ConfigError: a setting has no ``=``, or steps into something that is no table.
    """
    result: dict[str, Any] = _copy_tables(values)
    for setting in settings:
        key, sign, text = setting.partition("=")
        if not sign or not key.strip():
            raise ConfigError(f"`{setting}` is no setting. Write it as `training.max_minutes=30`.")
        is_removal = text.strip() == "null"
        table = result
        *parents, last = key.strip().split(".")
        for parent in parents:
            table = table.get(parent, {}) if is_removal else table.setdefault(parent, {})
            if not isinstance(table, dict):
                raise ConfigError(f"`{key}` cannot be set: `{parent}` is no table.")
        if is_removal:
            table.pop(last, None)
        else:
            table[last] = _parse_value(text)
    return result


def _copy_tables(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy_tables(each) for key, each in value.items()}
    return list(value) if isinstance(value, list) else value


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def resolve_path(text: str, folder: Path) -> Path:
    """Return a data path: ``${HEEDFUL_DATA}`` replaced from the environment, a relative one taken from the folder.

    Raises:
        ConfigError: the path names HEEDFUL_DATA and the variable is not set, or no file can have this name.
    """
    if "${HEEDFUL_DATA}" in text:
        root = os.environ.get("HEEDFUL_DATA")
        if not root:
            raise ConfigError(
                f"`{text}` needs the folder of data sets, but HEEDFUL_DATA is not set. "
                "Try `export HEEDFUL_DATA=/path/to/data`, or name your own file in the config."
            )
        text = text.replace("${HEEDFUL_DATA}", root)
    try:
        return anchor_path(text, folder).resolve()
    except (RuntimeError, OSError):  # RuntimeError: links that lead round in a circle
        raise ConfigError(
            f"`{text}` leads nowhere: a link in it points back to itself. Name the file itself."
        ) from None


def anchor_path(text: str, folder: Path) -> Path:
    """Return a path as the user wrote it, ``~`` replaced and a relative one taken from the folder.

    Raises:
        ConfigError: it begins with ``~`` and the name of nobody, or holds a character that no path can.
    """
    try:
        os.fsencode(text).decode("utf-8")
    except UnicodeError:
        raise ConfigError(f"`{escaped(text)}` is no UTF-8, and cannot be written in a config. Rename it.") from None
    if "\0" in text:
        raise ConfigError(f"`{escaped(text)}` holds a NUL character, which no path can.")
    try:
        return (folder / Path(text).expanduser()).absolute()
    except RuntimeError:
        raise ConfigError(f"`{text}` begins with `~`, but there is no such user. Write the whole path.") from None


def escaped(text: str) -> str:
    r"""Return the text with what cannot be printed as ``\x..``."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
