"""Write docs/configuration.md from the configuration classes: every key, its type, its default and what it means."""

import inspect
import re
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pydantic
from pydantic_core import PydanticUndefined

from heedful.core.config import Config
from heedful.core.runtime import RuntimeConfig
from heedful.tasks import TASKS, TeacherConfig
from heedful.training.config import TrainingConfig

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
INTRODUCTION = """\
# Configuration

Made by `tools/configuration_page.py` from the classes themselves; a test holds it up to date.

A configuration is a TOML file: `task`, the keys of that task, the tables `[training]` and `[runtime]`, and if wanted
`init_from` (a run or bundle to start from) and the table `[teacher]` (one to learn from). An unknown key is an error
that names the nearest known ones. TOML has no null: an absent key is absent. Any key can be set on the command line,
`--set training.max_minutes=30`, or taken away, `--set training.validate_minutes=null`. Where a table has a `kind` (a
metric has a `name`), it decides which other keys there are. Data paths are relative to the file and may begin with
`${HEEDFUL_DATA}`.
"""


def meanings(kind: type[Config]) -> dict[str, str]:
    """Return what the docstrings of a class and its parents say of each key."""
    found: dict[str, str] = {}
    for parent in reversed(kind.__mro__):
        document = inspect.cleandoc(parent.__doc__ or "")
        _, _, attributes = document.partition("Attributes:\n")
        for match in re.finditer(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE):
            found[match[1]] = " ".join(match[2].split()).replace("``", "`").replace("|", "\\|")
    return found


def spell(annotation: Any) -> str:
    """Return a type as a user writes it."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return spell(inner[0])
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in inner)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(spell(each) for each in inner if each is not type(None)))
    if origin in (tuple, list):
        return f"list of {spell(inner[0])}"
    if origin is dict:
        return "table"
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return "table"
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)))


def tables_within(annotation: Any) -> list[type[Config]]:
    """Return the configuration classes that a type mentions."""
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return [annotation]
    return [table for each in get_args(annotation) for table in tables_within(each)]


def default_of(field: pydantic.fields.FieldInfo) -> str:
    """Return a default as it stands in a file."""
    if field.is_required():
        return "required"
    value = field.default_factory() if field.default_factory else field.default  # type: ignore[call-arg]
    if value is None or value is PydanticUndefined:
        return "absent"
    if isinstance(value, Config):
        kind = getattr(value, "kind", None)
        return f"`{kind}`" if kind else "defaults"
    if isinstance(value, dict):
        return "empty"
    if isinstance(value, tuple | list):
        return f"`[{', '.join(map(repr, value))}]`"
    return f"`{str(value).lower()}`" if isinstance(value, bool) else f"`{value!r}`"


def section(kind: type[Config], path: str, told: dict[type[Config], str]) -> list[str]:
    """Return the lines of a class's table and of the tables within it; a class told before is left out."""
    if kind in told:
        return []
    told[kind] = path
    discriminator = next((name for name in ("kind", "name") if _is_fixed(kind, name)), None)
    title = f"## `{path}`" if path else "## Top level"
    if discriminator:
        title += f", {discriminator} {spell(kind.model_fields[discriminator].annotation)}"
    says = meanings(kind)
    summary = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].replace("\n", " ").replace("``", "`")
    rows: list[str] = []
    below: list[str] = []
    for name, field in kind.model_fields.items():
        if name in (discriminator, "task"):
            continue
        key = field.alias or name
        written = spell(field.annotation)
        tables = list(dict.fromkeys(tables_within(field.annotation)))
        before = {told[table] for table in tables if table in told}
        if before and all(table in told for table in tables):
            written += f", as `{min(before, key=len)}`"
        rows.append(f"| `{key}` | {written} | {default_of(field)} | {says.get(name) or says.get(key, '')} |")
        for table in tables:
            below += section(table, f"{path}.{key}".lstrip("."), told)
    head = ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
    return [title, "", summary, "", *([*head, *rows] if rows else ["No further keys."]), "", *below]


def _is_fixed(kind: type[Config], name: str) -> bool:
    return name in kind.model_fields and get_origin(kind.model_fields[name].annotation) is Literal


def page() -> str:
    """Return the whole page."""
    lines = [INTRODUCTION]
    told: dict[type[Config], str] = {}
    for name, task in TASKS.items():
        lines += [f"# Task `{name}`", "", *section(task.config_class, "", told)]
    lines += ["# Every task", ""]
    for kind, path in ((TrainingConfig, "training"), (RuntimeConfig, "runtime"), (TeacherConfig, "teacher")):
        lines += section(kind, path, told)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
