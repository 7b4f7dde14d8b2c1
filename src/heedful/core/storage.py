"""Files and folders that appear whole or not at all: written beside, made durable, switched in by one rename."""

import contextlib
import ctypes
import glob
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

AT_FDCWD = -100
RENAME_EXCHANGE = 2


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a kill at any moment, finds the old content or the new, never a part."""
    with _named(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with _named(path), os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with _named(path):
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Give an empty folder to fill; when the block ends well it takes the place of `path` in one rename.

    When the block fails the folder is removed and `path` is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{path.name}.new.", dir=path.parent))
    try:
        yield fresh
        for file in fresh.rglob("*"):
            if file.is_file():
                _sync_file(file)
        os.chmod(fresh, 0o777 & ~_umask())
        _switch(fresh, path)
    finally:
        # After a switch this is the old content, after a failure the unfinished new one.
        shutil.rmtree(fresh, ignore_errors=True)
    _sync_folder(path.parent)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Let an error of the system name the file that is meant; a write alone does not say which it was."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def remove_abandoned(path: Path) -> None:
    """Remove what a killed process left half-written beside a path. Nobody may be writing there."""
    for each in path.parent.glob(f".{glob.escape(path.name)}.*"):
        ending = each.name[len(path.name) + 2 :]
        if re.fullmatch(r"new\.\w+", ending):
            shutil.rmtree(each, ignore_errors=True)
        elif re.fullmatch(r"[a-z0-9_]{8}", ending) and each.is_file():
            each.unlink(missing_ok=True)


def restore_folder(path: Path) -> None:
    """Bring back a folder that a kill left aside between two renames (systems without an exchanging rename only)."""
    aside = path.with_name(f".{path.name}.previous")
    if aside.is_dir() and not path.exists():
        os.rename(aside, path)


def _switch(fresh: Path, path: Path) -> None:
    if not path.exists():
        os.rename(fresh, path)
    elif not _exchange(fresh, path):
        aside = path.with_name(f".{path.name}.previous")
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(path, aside)
        os.rename(fresh, path)
        shutil.rmtree(aside, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change names in one step; False where the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    return bool(rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0)


def _sync_file(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(path: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system lets a folder be synced
        _sync_file(path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
