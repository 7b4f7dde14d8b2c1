"""The cleaned text of the training data on disk, to be read as often as needed, also if it came on standard input."""

import contextlib
import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from heedful.core.errors import DataError
from heedful.data.cache import new_folder, read_meta
from heedful.data.columns import ArrayWriter, Rows, RowsWriter, read_array
from heedful.data.example import SIDES, Example
from heedful.data.report import ReadReport
from heedful.text.labels import LabelSet


class Corpus:
    """Examples in order, read through memory maps. Iterating gives each `Example`, again and again.

    Attributes:
        report: what became of the rows when they were read and cleaned.
        lines: number of each example's line in its file, from 1.
    """

    def __init__(self, folder: Path) -> None:
        meta = read_meta(folder)
        self.report = ReadReport.from_saved(meta["report"])
        self.lines = read_array(folder, "lines", "<i8")
        self._files = read_array(folder, "files", "<i4")
        self._paths: list[str] = meta["paths"]
        self._texts = {side: Rows(folder, side, "u1") for side in meta["sides"]}

    @classmethod
    def write(cls, folder: Path, examples: Iterable[Example], report: ReadReport | None = None) -> "Corpus":
        """Write examples into a new folder, with memory for one at a time.

        Args:
            folder: to be made.
            examples: read once.
            report: what is counted while they are read, kept with them.

        Raises:
            DataError: there are none, or the disk is full.
        """
        iterator = iter(examples)
        first = next(iterator, None)
        if first is None:
            raise DataError("no training example is left. Check the data's filters and `data.cleaning`.")
        sides = [side for side in SIDES if getattr(first, side) is not None]
        paths: dict[str, int] = {}
        meta: dict[str, Any] = {"sides": sides}
        with new_folder(folder, meta) as draft, contextlib.ExitStack() as stack:
            texts = [(side, stack.enter_context(contextlib.closing(RowsWriter(draft, side, "u1")))) for side in sides]
            lines = stack.enter_context(contextlib.closing(ArrayWriter(draft, "lines", "<i8")))
            files = stack.enter_context(contextlib.closing(ArrayWriter(draft, "files", "<i4")))
            for example in itertools.chain([first], iterator):
                for side, writer in texts:
                    writer.append((getattr(example, side) or "").encode("utf-8"))
                lines.extend([example.line])
                files.extend([paths.setdefault(example.path, len(paths))])
            meta |= {"paths": list(paths), "report": dataclasses.asdict(report or ReadReport())}
        return cls(folder)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> Example:
        source, target, label = (
            self._texts[side][index].tobytes().decode("utf-8") if side in self._texts else None for side in SIDES
        )
        path = self._paths[self._files[index]]
        return Example(source=source, target=target, label=label, line=int(self.lines[index]), path=path)

    def __iter__(self) -> Iterator[Example]:
        return (self[index] for index in range(len(self)))

    @property
    def has_labels(self) -> bool:
        """True if the examples carry labels."""
        return "label" in self._texts

    def pairs(self) -> "Pairs":
        """Return sources and targets, to train a codec on."""
        return Pairs(self)

    def labels(self) -> LabelSet:
        """Return the labels that occur.

        Raises:
            DataError: there are fewer than two.
        """
        return LabelSet.collect(each.label for each in self if each.label is not None)


class Pairs:
    """The source and target of each example, to be read as often as needed."""

    def __init__(self, examples: Iterable[Example]) -> None:
        self._examples = examples

    def __iter__(self) -> Iterator[tuple[str | None, str | None]]:
        return ((each.source, each.target) for each in self._examples)
