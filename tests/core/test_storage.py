"""Files and folders are switched in whole, with and without the system's exchanging rename."""

import os
from pathlib import Path

import pytest

from heedful.core import storage
from heedful.core.storage import remove_abandoned, restore_folder, whole_folder, write_whole


@pytest.fixture(params=["exchange", "two renames"])
def _system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "two renames":
        monkeypatch.setattr(storage, "_exchange", lambda one, other: False)


@pytest.mark.usefixtures("_system")
def test_a_folder_takes_the_place_of_another(tmp_path: Path) -> None:
    for content in ("one", "two", "three"):
        with whole_folder(tmp_path / "x") as folder:
            (folder / "file").write_text(content)
        assert (tmp_path / "x" / "file").read_text() == content
    assert os.listdir(tmp_path) == ["x"]


def test_a_failed_block_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()

    def fail() -> None:
        with whole_folder(tmp_path / "x") as folder:
            (folder / "file").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert os.listdir(tmp_path / "x") == [] and os.listdir(tmp_path) == ["x"]


def test_a_folder_left_aside_comes_back(tmp_path: Path) -> None:
    (tmp_path / ".x.previous").mkdir()
    restore_folder(tmp_path / "x")
    assert os.listdir(tmp_path) == ["x"]


def test_a_file_is_replaced_with_the_usual_rights(tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(b"")
    for content in (b"one", b"two"):
        write_whole(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == content
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert sorted(os.listdir(tmp_path)) == ["file", "usual"]


def test_what_a_kill_left_beside_is_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".bundle.new.abc_1234").mkdir()
    (tmp_path / ".bundle.new.abc_1234" / "part").touch()
    (tmp_path / ".config.toml.abc_1234").touch()
    kept = [".bundle.previous", ".bundle.other", "bundle.new.abc", ".bundles.new.abc", ".run-lock"]
    for name in kept:
        (tmp_path / name).mkdir()
    for name in ("bundle", "config.toml"):
        remove_abandoned(tmp_path / name)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(kept)


def test_an_error_names_the_file_that_is_meant(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_whole(tmp_path / "nowhere" / "a.txt", b"")
    assert caught.value.filename == str(tmp_path / "nowhere" / "a.txt")


def test_a_folder_in_the_place_of_a_file_is_named_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "page.html").mkdir()
    with pytest.raises(OSError, match="Is a directory") as caught:
        write_whole(tmp_path / "page.html", b"x")
    assert caught.value.filename == str(tmp_path / "page.html")
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
