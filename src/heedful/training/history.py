"""``history.jsonl``: what happened in a run, one JSON object a line, in order, with a ``kind`` and a ``step`` each.

Kinds: ``train`` (a mean over the updates since the last one), ``validation`` (scores and samples), ``rollback``.
"""

import json
import os
from pathlib import Path
from typing import Any

from heedful.core.errors import BundleError


class History:
    """Appends records to a file, and cuts it back when a run is resumed from a checkpoint."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, record: dict[str, Any]) -> None:
        """Write one record as one line."""
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def sync(self) -> int:
        """Have the file reach the disk; return its length in bytes, for a checkpoint to remember."""
        with open(self.path, "ab") as file:
            os.fsync(file.fileno())
            return file.tell()

    def cut(self, num_bytes: int) -> None:
        """Forget what was written after that length, a torn line included."""
        with open(self.path, "ab") as file:
            if file.tell() > num_bytes:
                file.truncate(num_bytes)


def read_history(path: Path) -> list[dict[str, Any]]:
    """Return the records of a history; a last line torn by a kill is left out, a missing file is empty.

    Raises:
        BundleError: another line is no record.
    """
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    try:
        records = [json.loads(line) for line in lines[:-1] if line]
        if not all(isinstance(each, dict) for each in records):
            raise ValueError("a line is no JSON object")
        return records
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: damaged ({error}). Remove the file; its curves are lost, the run is not.") from None
