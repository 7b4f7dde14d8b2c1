"""The classes of a task, in a fixed order."""

from collections.abc import Iterable
from pathlib import Path

from heedful.core.errors import DataError, did_you_mean
from heedful.text.saved import damaged, read_json, write_json

_FILE = "labels.json"


class LabelSet:
    """Distinct names, each with its index from 0."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._indices = {name: index for index, name in enumerate(self.names)}
        if len(self._indices) != len(self.names):
            raise ValueError("labels must be distinct")

    @classmethod
    def collect(cls, labels: Iterable[str]) -> "LabelSet":
        """Take the labels that occur, in alphabetical order.

        Raises:
            DataError: there are fewer than two.
        """
        names = sorted(set(labels))
        if len(names) < 2:
            raise DataError(f"The training data have {len(names)} label(s); at least 2 are needed. Check `label`.")
        return cls(names)

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str, path: str | None = None, line: int | None = None) -> int:
        """Return the index of a label; the path and line are where it was read, for the message.

        Raises:
            DataError: no such label was in the training data.
        """
        if name not in self._indices:
            raise DataError(
                f"the label {name!r} is not one of the model's. {did_you_mean(name, self.names)}", path, line
            )
        return self._indices[name]

    def save(self, folder: Path) -> None:
        """Write ``labels.json`` into the folder."""
        write_json(folder / _FILE, {"names": list(self.names)})

    @classmethod
    def load(cls, folder: Path) -> "LabelSet":
        """Read what `save` wrote.

        Raises:
            BundleError: the file is missing or damaged.
        """
        path = folder / _FILE
        names = read_json(path, names=list)["names"]
        if not all(isinstance(each, str) for each in names) or len(set(names)) != len(names) or len(names) < 2:
            raise damaged(path, "its names are not at least 2 distinct strings")
        return cls(names)
