"""The whole configuration of a run: its task, how it is trained, on what machine, and from which weights it starts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from heedful.core.config import Config, anchor_path, apply_settings, parse_config, read_toml, write_toml
from heedful.core.errors import BundleError, ConfigError, did_you_mean
from heedful.core.runtime import RuntimeConfig
from heedful.runs.recipes import find_recipe
from heedful.tasks import TASKS, Bundle, TaskConfig, TeacherConfig, open_bundle
from heedful.tasks.bundle import CONFIG, version
from heedful.training.config import TrainingConfig

ConfigSource = Mapping[str, Any] | Path | str
"""A configuration: nested plain values, the path of a TOML file, or the name of a shipped recipe."""

OWN_KEYS = ("training", "runtime", "init_from", "teacher")
PATH_KEYS = ("path", "source_path", "target_path")

ConfigType = TypeVar("ConfigType", bound=Config)


@dataclass(frozen=True)
class RunConfig:
    """A run's configuration, checked.

    Attributes:
        task: what is learnt, from which data, by which model.
        training: how long, how fast, when to stop.
        runtime: device, type of arithmetic, threads, seed.
        init_from: a run or bundle whose weights and tokenizers the new run starts from (fine-tuning).
        teacher: a trained model to learn from (distillation).
    """

    task: TaskConfig
    training: TrainingConfig
    runtime: RuntimeConfig
    init_from: str | None = None
    teacher: TeacherConfig | None = None

    @property
    def text_from(self) -> str | None:
        """The run or bundle whose tokenizers and labels the run takes over, or None where it makes its own."""
        return self.init_from or (None if self.teacher is None else self.teacher.path)

    def values(self) -> dict[str, Any]:
        """Return the flat table that `parse_run` reads back."""
        values: dict[str, Any] = dict(self.task.model_dump(mode="json", exclude_none=True))
        values["training"] = self.training.model_dump(mode="json", exclude_none=True)
        values["runtime"] = self.runtime.model_dump(mode="json", exclude_none=True)
        if self.init_from is not None:
            values["init_from"] = self.init_from
        if self.teacher is not None:
            values["teacher"] = self.teacher.model_dump(mode="json", exclude_none=True)
        return values

    def toml(self) -> str:
        """Return the configuration as the text of a TOML file."""
        return write_toml(self.values())


def read_run(source: ConfigSource, settings: Iterable[str] = ()) -> RunConfig:
    """Read a configuration and settings on top of it.

    Relative data paths become absolute: those of a file start at its folder, those of settings where the user is.

    Raises:
        ConfigError: no such recipe or file, an unknown key or a value that does not fit.
    """
    if isinstance(source, Mapping):
        values, folder = dict(source), Path.cwd()
    else:
        is_file = isinstance(source, Path) or str(source).endswith(".toml") or Path(source).is_file()
        path = Path(source) if is_file else find_recipe(str(source))
        values, folder = read_toml(path), path.parent
    values = apply_settings(anchor_paths(values, folder), settings)
    return parse_run(inherit(anchor_paths(values, Path.cwd())))


def parse_run(values: Mapping[str, Any]) -> RunConfig:
    """Check the flat table of a run.

    Raises:
        ConfigError: an unknown key (the nearest known ones are named), a missing one or a value that does not fit.
    """
    kind = values.get("task")
    if kind is None:
        raise ConfigError("`task` is missing. " + did_you_mean("", TASKS))
    if not isinstance(kind, str) or kind not in TASKS:
        raise ConfigError(f"`task` is {kind!r}. {did_you_mean(str(kind), TASKS)}")
    task_class = TASKS[kind].config_class
    known = [*task_class.model_fields, *OWN_KEYS]
    for key in values:
        if key not in known:
            raise ConfigError(f"`{key}` is not a known key. {did_you_mean(key, known)}")
    init_from = values.get("init_from")
    if init_from is not None and not isinstance(init_from, str):
        raise ConfigError("`init_from` must be the path of a run or bundle.")
    return RunConfig(
        task=parse_config(task_class, {key: value for key, value in values.items() if key not in OWN_KEYS}),
        training=_part(TrainingConfig, values, "training"),
        runtime=_part(RuntimeConfig, values, "runtime"),
        init_from=init_from,
        teacher=_part(TeacherConfig, values, "teacher") if "teacher" in values else None,
    )


def _part(kind: type[ConfigType], values: Mapping[str, Any], key: str) -> ConfigType:
    table = values.get(key, {})
    if not isinstance(table, Mapping):
        raise ConfigError(f"`{key}` must be a table.")
    return parse_config(kind, dict(table), prefix=key)


def own_values(bundle: Bundle) -> dict[str, Any]:
    """Return a bundle's own configuration, seen to be one before anything is set on top of it.

    Raises:
        BundleError: it was edited, or another version wrote it.
    """
    values = bundle.config()
    try:
        parse_run(values)
    except ConfigError as error:
        writer = bundle.manifest.get("heedful", "?")
        raise BundleError(
            f"{bundle.path / CONFIG}: {error}\nHeedful {writer} wrote the bundle; this is {version()}. "
            "Use that version, or bring the file back."
        ) from None
    return values


def inherit(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a run that goes on from a bundle: what they do not say of its text is the bundle's.

    What a run that tunes a bundle further does not say of the model is the bundle's too.

    Raises:
        ConfigError: the bundle is of another task.
        BundleError: what `init_from` or `teacher.path` names cannot be used.
    """
    origins = {"init_from": values.get("init_from"), "teacher.path": _within(values, "teacher", "path")}
    name, origin = next((each for each in origins.items() if isinstance(each[1], str)), ("", None))
    if origin is None:
        return values
    given = own_values(open_bundle(Path(origin)))
    task = given.get("task")
    if values.get("task", task) != task:
        raise ConfigError(f"`task` is {values['task']!r}, but `{name}` is of the task {task!r}.")
    check_text(values.get("text", {}), given.get("text", {}), name)
    keys = ("text", "model") if name == "init_from" else ("text",)
    shared = {key: {**given.get(key, {}), **values.get(key, {})} for key in keys}
    return {"task": task, **values, **shared}


def _within(values: Mapping[str, Any], table: str, key: str) -> Any:
    found = values.get(table)
    return found.get(key) if isinstance(found, Mapping) else None


def check_text(wanted: Any, given: Mapping[str, Any], origin: str, place: str = "text") -> None:
    """See that tokenizers are as in the bundle that the run goes on from, for it takes over those.

    Raises:
        ConfigError: one is asked to be another.
    """
    if not isinstance(wanted, Mapping):
        return
    for key in ("source", "target", "is_joint") if place == "text" else wanted:
        if isinstance(wanted.get(key), Mapping) and isinstance(given.get(key), Mapping):
            check_text(wanted[key], given[key], origin, f"{place}.{key}")
        elif key in wanted and key in given and wanted[key] != given[key]:
            raise ConfigError(
                f"`{place}.{key}` is {wanted[key]!r}, but `{origin}` brings its tokenizer with {given[key]!r}. "
                f"Leave the key out, or train without `{origin}`."
            )


def anchor_paths(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the values with relative data paths made absolute; ``${HEEDFUL_DATA}`` and ``-`` stay."""
    result = dict(values)
    if "data" in values:
        result["data"] = _anchor_within(values["data"], folder)
    if isinstance(values.get("init_from"), str):
        result["init_from"] = _anchor(values["init_from"], folder)
    if isinstance(_within(values, "teacher", "path"), str):
        result["teacher"] = {**values["teacher"], "path": _anchor(values["teacher"]["path"], folder)}
    return result


def _anchor_within(value: Any, folder: Path) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _anchor(each, folder) if key in PATH_KEYS else _anchor_within(each, folder)
            for key, each in value.items()
        }
    return [_anchor_within(each, folder) for each in value] if isinstance(value, list | tuple) else value


def _anchor(path: Any, folder: Path) -> Any:
    if not isinstance(path, str) or path == "-" or path.startswith("${"):
        return path
    return str(anchor_path(path, folder))
