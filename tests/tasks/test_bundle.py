"""A bundle appears whole or not at all, and damage to any file is found and named."""

import json
import os
from pathlib import Path

import pytest

from heedful.core.errors import BundleError
from heedful.tasks.bundle import MANIFEST, REQUIRED, open_bundle, write_bundle


def fill(folder: Path, content: str = "one") -> None:
    for name in (*REQUIRED, "source.model"):
        (folder / name).write_text(f'text = "{content} {name}"\n', "utf-8")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    write_bundle(tmp_path / "bundle", fill)
    return tmp_path / "bundle"


def test_a_run_folder_stands_for_its_bundle(bundle: Path) -> None:
    assert open_bundle(bundle.parent).path == open_bundle(bundle).path == bundle
    assert open_bundle(bundle).config() == {"text": "one config.toml"}


@pytest.mark.parametrize("name", [*REQUIRED, "source.model"])
def test_a_missing_truncated_or_changed_file_is_named(bundle: Path, name: str) -> None:
    content = (bundle / name).read_bytes()
    (bundle / name).write_bytes(content[:-3])
    with pytest.raises(BundleError, match=f"{name}: truncated: .* Copy the bundle again"):
        open_bundle(bundle)
    (bundle / name).write_bytes(content.replace(b"one", b"two"))
    with pytest.raises(BundleError, match=f"{name}: damaged"):
        open_bundle(bundle)
    (bundle / name).unlink()
    with pytest.raises(BundleError, match=f"{name}: missing"):
        open_bundle(bundle)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": 3}', '{"format": "x", "version": 1, "files": {}}'])
def test_a_damaged_manifest_is_named(bundle: Path, text: str) -> None:
    (bundle / MANIFEST).write_text(text, "utf-8")
    with pytest.raises(BundleError, match=r"manifest\.json: damaged"):
        open_bundle(bundle)


def test_a_manifest_cannot_point_outside_its_folder(bundle: Path) -> None:
    manifest = json.loads((bundle / MANIFEST).read_text("utf-8"))
    manifest["files"]["../secret"] = {"bytes": 1, "sha256": ""}
    (bundle / MANIFEST).write_text(json.dumps(manifest), "utf-8")
    with pytest.raises(BundleError, match=r"manifest\.json: damaged"):
        open_bundle(bundle)


def test_without_a_manifest_the_bundle_is_not_complete(bundle: Path) -> None:
    (bundle / MANIFEST).unlink()
    with pytest.raises(BundleError, match=r"manifest\.json: missing"):
        open_bundle(bundle)


def test_a_newer_format_says_so(bundle: Path) -> None:
    manifest = json.loads((bundle / MANIFEST).read_text("utf-8"))
    manifest["version"] = 99
    (bundle / MANIFEST).write_text(json.dumps(manifest), "utf-8")
    with pytest.raises(BundleError, match="format 99"):
        open_bundle(bundle)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no such folder"):
        open_bundle(tmp_path / "nowhere")
    with pytest.raises(BundleError, match="neither a run with a bundle nor a bundle"):
        open_bundle(tmp_path)
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(BundleError, match="heedful resume"):
        open_bundle(tmp_path)


def test_a_new_version_replaces_the_old_and_leaves_nothing_else(bundle: Path) -> None:
    write_bundle(bundle, lambda folder: fill(folder, "two"))
    assert open_bundle(bundle).config() == {"text": "two config.toml"}
    assert os.listdir(bundle.parent) == ["bundle"]


def test_a_failure_while_writing_leaves_the_old_version(bundle: Path) -> None:
    def fail(folder: Path) -> None:
        fill(folder, "two")
        raise OSError(28, "No space left on device")

    with pytest.raises(BundleError, match=r"No space left on device\. Free some space\. .* untouched"):
        write_bundle(bundle, fail)
    assert open_bundle(bundle).config() == {"text": "one config.toml"}
    assert os.listdir(bundle.parent) == ["bundle"]
