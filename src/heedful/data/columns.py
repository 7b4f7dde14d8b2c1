"""Arrays on disk that are written row by row and read through a memory map, so that no corpus is too big for memory."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.core.errors import DataError

_BUFFER_BYTES = 1 << 20


class ColumnWriter:
    """Writes rows of varying length: ``name.bin`` holds them end to end, ``name.ends.bin`` (int64) where each ends."""

    def __init__(self, folder: Path, name: str, dtype: Any) -> None:
        self._dtype = np.dtype(dtype)
        self._values = (folder / f"{name}.bin").open("wb", buffering=_BUFFER_BYTES)
        self._ends = (folder / f"{name}.ends.bin").open("wb", buffering=_BUFFER_BYTES)
        self._end = 0

    def add(self, row: Any) -> None:
        """Append a row: a sequence of numbers, or bytes for a column of bytes."""
        raw = row if isinstance(row, bytes) else np.asarray(row, dtype=self._dtype).tobytes()
        self._values.write(raw)
        self._end += len(raw) // self._dtype.itemsize
        self._ends.write(self._end.to_bytes(8, "little"))

    def close(self) -> None:
        """Write what is buffered and close the files."""
        self._values.close()
        self._ends.close()


class Column:
    """Reads what a `ColumnWriter` wrote."""

    def __init__(self, folder: Path, name: str, dtype: Any) -> None:
        self.ends: NDArray[np.int64] = _map(folder / f"{name}.ends.bin", np.dtype("<i8"))
        self.values: NDArray[Any] = _map(folder / f"{name}.bin", np.dtype(dtype))
        if (self.ends[-1] if len(self.ends) else 0) != len(self.values):
            raise DataError("damaged. Delete this folder; it is made again from the data.", folder)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> NDArray[Any]:
        start = self.ends[index - 1] if index else 0
        return self.values[start : self.ends[index]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Length of each row."""
        return np.diff(self.ends, prepend=0)


def _map(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    try:
        size = path.stat().st_size
        if size % dtype.itemsize:
            raise DataError("damaged. Delete its folder; it is made again from the data.", path)
        return np.memmap(path, dtype=dtype, mode="r") if size else np.empty(0, dtype=dtype)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}. Delete its folder; it is made again.", path) from None
