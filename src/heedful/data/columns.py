"""Arrays on disk, written piece by piece and read through a memory map, so that no corpus is too big for memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.core.errors import DataError

_BUFFER_BYTES = 1 << 20
_END = "<i8"


class ArrayWriter:
    """Writes one array of numbers, ``name.bin``."""

    def __init__(self, folder: Path, name: str, dtype: str) -> None:
        self.dtype = np.dtype(dtype)
        self._file = (folder / f"{name}.bin").open("wb", buffering=_BUFFER_BYTES)

    def extend(self, numbers: Sequence[int] | NDArray[Any] | bytes) -> None:
        """Append numbers (bytes are taken as they are)."""
        self._file.write(numbers if isinstance(numbers, bytes) else np.asarray(numbers, dtype=self.dtype).tobytes())

    def close(self) -> None:
        """Write what is buffered and close the file."""
        self._file.close()


class RowsWriter:
    """Writes rows of varying length: ``name.bin`` holds them end to end, ``name.ends.bin`` where each one ends."""

    def __init__(self, folder: Path, name: str, dtype: str) -> None:
        self._values = ArrayWriter(folder, name, dtype)
        self._ends = ArrayWriter(folder, f"{name}.ends", _END)
        self._end = 0

    def append(self, row: Sequence[int] | NDArray[Any] | bytes) -> None:
        """Append one row (bytes for a column of bytes)."""
        self._values.extend(row)
        self._end += len(row)
        self._ends.extend([self._end])

    def close(self) -> None:
        """Write what is buffered and close the files."""
        self._values.close()
        self._ends.close()


class Rows:
    """Reads what a `RowsWriter` wrote."""

    def __init__(self, folder: Path, name: str, dtype: str) -> None:
        self._ends = read_array(folder, f"{name}.ends", _END)
        self._values = read_array(folder, name, dtype)
        if (self._ends[-1] if len(self._ends) else 0) != len(self._values):
            raise _damaged(folder / f"{name}.bin")

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int) -> NDArray[Any]:
        start = self._ends[index - 1] if index else 0
        return self._values[start : self._ends[index]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Length of each row."""
        return np.diff(self._ends, prepend=0)


def read_array(folder: Path, name: str, dtype: str) -> NDArray[Any]:
    """Map an array into memory that an `ArrayWriter` wrote.

    Raises:
        DataError: the file is missing or damaged.
    """
    path, kind = folder / f"{name}.bin", np.dtype(dtype)
    try:
        size = path.stat().st_size
        if size % kind.itemsize:
            raise _damaged(path)
        # As a plain array: the class for memory maps costs more than the read at each small slice.
        return np.asarray(np.memmap(path, dtype=kind, mode="r")) if size else np.empty(0, dtype=kind)
    except OSError:
        raise _damaged(path) from None


def _damaged(path: Path) -> DataError:
    return DataError(f"missing or damaged. Delete the folder {path.parent}; it is made again from the data.", path)
