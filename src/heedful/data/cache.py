"""Folders that are there whole or not at all."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heedful.core.errors import DataError

_META = "meta.json"


@contextlib.contextmanager
def new_folder(folder: Path, meta: dict[str, Any]) -> Iterator[Path]:
    """Give a draft to write into; it becomes the folder in one rename when the block ends well, else it is removed.

    Args:
        folder: what is to be there in the end. If another process was first, its folder stays: equal names mean equal
            content.
        meta: facts to keep with it; read when the block has ended.

    Raises:
        DataError: the disk is full, or the folder cannot be written.
    """
    _remove_abandoned(folder)
    draft = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    try:
        draft.mkdir(parents=True)
        yield draft
        (draft / _META).write_text(json.dumps(meta), encoding="utf-8")
        with contextlib.suppress(OSError) if folder.exists() else contextlib.nullcontext():
            draft.rename(folder)
    except OSError as error:
        raise DataError(f"the cache cannot be written: {error.strerror or error}. Is the disk full?", folder) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _remove_abandoned(folder: Path) -> None:
    """Remove drafts whose process was killed."""
    for draft in folder.parent.glob(f"{folder.name}.*.part"):
        process = draft.name.removesuffix(".part").rpartition(".")[2]
        try:
            os.kill(int(process), 0)
        except (ProcessLookupError, ValueError):
            shutil.rmtree(draft, ignore_errors=True)
        except PermissionError:
            continue


def read_meta(folder: Path) -> dict[str, Any]:
    """Read the facts kept with a folder.

    Raises:
        DataError: the folder is missing or damaged.
    """
    try:
        meta: dict[str, Any] = json.loads((folder / _META).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise DataError("missing or damaged. Delete this folder; it is made again from the data.", folder) from None
    return meta
