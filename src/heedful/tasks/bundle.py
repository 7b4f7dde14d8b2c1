"""A bundle, the folder a user keeps: weights, configuration, tokenizers, scores, card, and a manifest to find damage.

==================  ==================================================================================
model.safetensors   float32 weights
config.toml         the resolved configuration; ``training`` and ``runtime`` say how it was made
*.model, *.json ..  tokenizers and labels, in the formats of `heedful.text`
metrics.json        scores by name, each with its signature; how much they still changed when training ended
card.md             what this is, for people
alignment.json      how words are aligned, where that was chosen (see `amend_bundle`)
lexicon.safetensors words that translate each other, where that was learnt to align them
manifest.json       written last: format version, and size and sha256 of every other file
==================  ==================================================================================

The manifest finds damage, not malice. Nothing here is pickled.
"""

import datetime
import errno
import hashlib
import importlib.metadata
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.core.config import read_toml
from heedful.core.errors import BundleError, ConfigError
from heedful.core.storage import restore_folder, whole_folder

FORMAT = "heedful-bundle"
FORMAT_VERSION = 1
WEIGHTS = "model.safetensors"
CONFIG = "config.toml"
METRICS = "metrics.json"
CARD = "card.md"
ALIGNMENT = "alignment.json"
LEXICON = "lexicon.safetensors"
MANIFEST = "manifest.json"
REQUIRED = (WEIGHTS, CONFIG, METRICS)


@dataclass(frozen=True)
class Bundle:
    """A bundle whose files were all found whole."""

    path: Path
    manifest: dict[str, Any]

    @property
    def weights(self) -> Path:
        """The file of weights."""
        return self.path / WEIGHTS

    def config(self) -> dict[str, Any]:
        """Read the configuration as plain values.

        Raises:
            BundleError: it is no configuration.
        """
        file = self.path / CONFIG
        try:
            return read_toml(file)
        except ConfigError as error:
            raise BundleError(f"{error} Copy the bundle again from its run.") from None

    def metrics(self) -> dict[str, Any]:
        """Read the scores.

        Raises:
            BundleError: they are damaged.
        """
        file = self.path / METRICS
        try:
            values = json.loads(file.read_bytes())
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            raise BundleError(f"{file}: damaged: not a JSON object. Copy the bundle again from its run.")
        return values

    def text_files(self) -> list[str]:
        """Return the names of the tokenizers' files and the labels."""
        others = (WEIGHTS, CONFIG, METRICS, CARD, ALIGNMENT, LEXICON)
        return [name for name in self.manifest["files"] if name not in others]

    def weights_sha256(self) -> str:
        """Return the checksum of the weights, as the manifest has it."""
        digest: str = self.manifest["files"][WEIGHTS]["sha256"]
        return digest

    def size_bytes(self) -> int:
        """Return what all files take together."""
        return sum(entry["bytes"] for entry in self.manifest["files"].values())


def write_bundle(path: Path, fill: Callable[[Path], None], *, about: Mapping[str, str] | None = None) -> None:
    """Write a bundle in place of `path`: all of it appears, or none.

    Args:
        path: where it will stand; what is there stays until the new one is whole.
        fill: writes every file but the manifest into the folder it is given.
        about: what the manifest says of its making; absent means this version, now.

    Raises:
        BundleError: the disk is full or cannot be written; what stood there before still does.
    """
    try:
        with whole_folder(path) as folder:
            fill(folder)
            manifest = json.dumps(_describe(folder) | dict(about or {}), indent=2, sort_keys=True)
            (folder / MANIFEST).write_text(manifest + "\n", "utf-8")
    except OSError as error:
        remedy = " Free some space." if error.errno == errno.ENOSPC else ""
        raise BundleError(
            f"{path}: the bundle could not be written: {error.strerror}.{remedy} What stood there before is untouched."
        ) from error


def amend_bundle(bundle: Bundle, files: Mapping[str, bytes | None]) -> None:
    """Put files into a bundle, or others in their place, with a manifest that fits: all of it appears, or none.

    Who made the bundle and when stays as it was.

    Args:
        bundle: as it is now.
        files: contents by name; None removes the file, if it is there.

    Raises:
        BundleError: the disk is full or cannot be written, or the bundle was changed meanwhile; it is untouched.
    """
    created = {key: str(value) for key, value in bundle.manifest.items() if key in ("created", "heedful")}

    def fill(folder: Path) -> None:
        for each in bundle.manifest["files"]:
            if each not in files:
                _link(bundle.path / each, folder / each)
        for name, content in files.items():
            if content is not None:
                (folder / name).write_bytes(content)
        if _read_manifest(bundle.path) != bundle.manifest:
            raise BundleError(f"{bundle.path}: changed while it was read. Try again when nothing writes there.")

    write_bundle(bundle.path, fill, about=created)


def _link(file: Path, copy: Path) -> None:
    """Give a file a second name, which costs nothing; where the system cannot, copy it."""
    try:
        os.link(file, copy)
    except OSError:
        shutil.copy2(file, copy)


def find_bundle(path: Path) -> Path:
    """Return the bundle folder that a run folder or a bundle folder stands for.

    Raises:
        BundleError: neither is there.
    """
    if not path.is_dir():
        restore_folder(path)
    if (path / "state.json").is_file():
        raise BundleError(
            f"{path}: a checkpoint, which has the weights alone. Name the run or its bundle here; `predict`, `score`, "
            "`evaluate`, `inspect` and what else asks a model take a checkpoint."
        )
    inner = path / "bundle"
    if not (path / MANIFEST).is_file():
        restore_folder(inner)
        if inner.is_dir():
            return inner
    if not path.exists():
        raise BundleError(f"{path}: no such folder. Name a run folder or a bundle folder.")
    # A run folder has a configuration too, so that this alone makes no bundle.
    if not any((path / name).is_file() for name in (MANIFEST, WEIGHTS, METRICS)):
        hint = (
            " The run has not finished its first validation: `heedful resume` goes on with it."
            if (path / CONFIG).exists() or (path / "checkpoints").exists()
            else ""
        )
        raise BundleError(f"{path}: neither a run with a bundle nor a bundle.{hint}")
    return path


def open_bundle(path: Path) -> Bundle:
    """Find a bundle and verify every file of it.

    Args:
        path: a run folder or a bundle folder.

    Raises:
        BundleError: nothing there, a file missing, truncated or damaged, or a format this version cannot read.
    """
    folder = find_bundle(path)
    manifest = _read_manifest(folder)
    for name, entry in sorted(manifest["files"].items()):
        _verify(folder, name, entry)
    return Bundle(folder, manifest)


def _read_manifest(folder: Path) -> dict[str, Any]:
    file = folder / MANIFEST
    remedy = "Copy the bundle again from its run."
    try:
        manifest = json.loads(file.read_text("utf-8"))
        version, files = manifest["version"], manifest["files"]
        is_ours = manifest["format"] == FORMAT
        is_sound = all(
            Path(name).name == name
            and 0 < len(os.fsencode(name)) < 256
            and "\0" not in name
            and isinstance(entry["bytes"], int)
            and isinstance(entry["sha256"], str)
            for name, entry in files.items()
        )
    except FileNotFoundError:
        raise BundleError(f"{file}: missing, so the bundle is not complete. {remedy}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BundleError(f"{file}: damaged: not a manifest. {remedy}") from None
    if not is_ours or not is_sound:
        raise BundleError(f"{file}: damaged: not a manifest of a Heedful bundle. {remedy}")
    if version != FORMAT_VERSION:
        raise BundleError(
            f"{file}: the bundle has format {version}; this Heedful reads format {FORMAT_VERSION}. "
            f"It was written by Heedful {manifest.get('heedful', '?')}: install that version, or a newer one."
        )
    for name in REQUIRED:
        if name not in files:
            raise BundleError(f"{file}: damaged: it does not name {name}. {remedy}")
    return dict(manifest)


def _verify(folder: Path, name: str, entry: dict[str, Any]) -> None:
    file = folder / name
    remedy = "Copy the bundle again from its run."
    if not file.is_file():
        raise BundleError(f"{file}: missing. {remedy}")
    size = file.stat().st_size
    if size < entry["bytes"]:
        raise BundleError(f"{file}: truncated: {size:,} of {entry['bytes']:,} bytes. {remedy}")
    if size != entry["bytes"] or _sha256(file) != entry["sha256"]:
        raise BundleError(f"{file}: damaged: its content is not what the manifest says. {remedy}")


def _describe(folder: Path) -> dict[str, Any]:
    files = {
        file.name: {"bytes": file.stat().st_size, "sha256": _sha256(file)}
        for file in sorted(folder.iterdir())
        if file.name != MANIFEST
    }
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"format": FORMAT, "version": FORMAT_VERSION, "heedful": version(), "created": now, "files": files}


def version() -> str:
    """Return the version of the installed package."""
    try:
        return importlib.metadata.version("heedful")
    except importlib.metadata.PackageNotFoundError:
        return "0 (not installed)"


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
