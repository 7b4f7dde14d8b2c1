"""Folders that are there whole or not at all."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heedful.core.errors import DataError
from heedful.core.storage import first_folder, remove_abandoned

_META = "meta.json"
_ABANDONED_S = 24 * 3600.0
"""A draft in which nothing was written for so long has no writer, on this machine or another that shares the disk."""


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
    try:
        remove_abandoned(folder, min_age_s=_ABANDONED_S)
        with first_folder(folder) as draft:
            yield draft
            (draft / _META).write_text(json.dumps(meta), encoding="utf-8")
    except OSError as error:
        raise DataError(f"the cache cannot be written: {error.strerror or error}. Is the disk full?", folder) from error


def read_meta(folder: Path) -> dict[str, Any]:
    """Read the facts kept with a folder.

    Raises:
        DataError: the folder is missing or damaged.
    """
    try:
        meta = json.loads((folder / _META).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        meta = None
    if not isinstance(meta, dict):
        raise DataError("missing or damaged. Delete this folder; it is made again from the data.", folder)
    return meta
