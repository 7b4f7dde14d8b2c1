"""Files and folders that appear whole or not at all: written beside, made durable, switched in by one rename."""

import contextlib
import ctypes
import glob
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
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


def whole_folder(path: Path) -> contextlib.AbstractContextManager[Path]:
    """Give an empty folder to fill; when the block ends well it takes the place of `path` in one rename.

    When the block fails the folder is removed and `path` is as it was.
    """
    return _filled(path, _switch)


def first_folder(path: Path) -> contextlib.AbstractContextManager[Path]:
    """Give an empty folder to fill; when the block ends well it becomes `path`, unless another did so meanwhile.

    Of several processes that make the same at once the first one's stays, and the others' are removed.
    """
    return _filled(path, _settle)


@contextlib.contextmanager
def _filled(path: Path, place: Callable[[Path, Path], None]) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{path.name}.new.", dir=path.parent))
    try:
        yield fresh
        for file in fresh.rglob("*"):
            if file.is_file():
                _sync_file(file)
        os.chmod(fresh, 0o777 & ~_umask())
        place(fresh, path)
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


def remove_abandoned(path: Path, *, min_age_s: float | None = None) -> None:
    """Remove what a killed process left half-written beside a path.

    Args:
        path: of the file or folder that was to be written.
        min_age_s: for how long nothing of it may have been written; absent means that nobody else can be at work there.
    """
    for each in path.parent.glob(f".{glob.escape(path.name)}.*"):
        if min_age_s is not None and time.time() - _last_written_s(each) < min_age_s:
            continue
        ending = each.name[len(path.name) + 2 :]
        if re.fullmatch(r"new\.\w+", ending):
            shutil.rmtree(each, ignore_errors=True)
        elif re.fullmatch(r"[a-z0-9_]{8}", ending) and each.is_file():
            each.unlink(missing_ok=True)


def _last_written_s(path: Path) -> float:
    """Return when a file, or anything in a folder, was last written, in seconds since 1970."""
    found = [time.time()]  # of what vanishes meanwhile
    with contextlib.suppress(OSError):
        found = [each.stat().st_mtime for each in (path, *path.rglob("*"))]
    return max(found)


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


def _settle(fresh: Path, path: Path) -> None:
    try:
        os.rename(fresh, path)
    except OSError:
        if not path.is_dir():
            raise


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
