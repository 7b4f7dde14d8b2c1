"""The training data of a run on disk: cleaned text, and its ids, written once and read through memory maps.

A `Corpus` is the text (it can be read again, also when it came from standard input: to train the tokenizers, to draw
another segmentation each epoch). A `Store` is the ids of a corpus under one codec.
"""

import contextlib
import dataclasses
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.core.errors import DataError
from heedful.data.columns import Column, ColumnWriter
from heedful.data.example import Example
from heedful.data.report import ReadReport
from heedful.text.codec import Codec
from heedful.text.labels import LabelSet
from heedful.text.truncation import Truncations

_META = "meta.json"
_SIDES = ("source", "target", "label")


@contextlib.contextmanager
def new_folder(folder: Path, meta: dict[str, Any]) -> Iterator[Path]:
    """Give a folder to write into; it takes its place in one rename when all is written, and is removed on failure."""
    draft = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        yield draft
        (draft / _META).write_text(json.dumps(meta), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
    except OSError as error:
        raise DataError(f"the cache cannot be written: {error.strerror or error}. Free some space.", folder) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def read_meta(folder: Path) -> dict[str, Any]:
    try:
        meta: dict[str, Any] = json.loads((folder / _META).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise DataError("not complete. Delete this folder; it is made again from the data.", folder) from None
    return meta


class Corpus:
    """Cleaned examples as text, in order. Iterating gives `Example` again and again."""

    def __init__(self, folder: Path) -> None:
        meta = read_meta(folder)
        self.folder = folder
        self.path: str = meta["path"]
        self.report = ReadReport.from_saved(meta["report"])
        self._columns = {side: Column(folder, side, np.uint8) for side in _SIDES if side in meta["sides"]}
        self.lines = Column(folder, "lines", np.dtype("<i8")).values

    @classmethod
    def write(cls, folder: Path, examples: Iterable[Example], report: ReadReport | None = None) -> "Corpus":
        """Write examples into a new folder, with memory for one at a time.

        Args:
            folder: to be made.
            examples: read once.
            report: what was counted while they were read, kept with them.

        Raises:
            DataError: there are none, or the disk is full.
        """
        iterator = iter(examples)
        first = next(iterator, None)
        if first is None:
            raise DataError("no example is left. Check the data's filters and `data.cleaning`.")
        sides = [side for side in _SIDES if getattr(first, side) is not None]
        meta: dict[str, Any] = {"path": first.path, "sides": sides}
        with new_folder(folder, meta) as draft, contextlib.ExitStack() as stack:
            writers = [(side, _closing(stack, ColumnWriter(draft, side, np.uint8))) for side in sides]
            lines = _closing(stack, ColumnWriter(draft, "lines", "<i8"))
            example: Example | None = first
            while example is not None:
                for side, writer in writers:
                    writer.add((getattr(example, side) or "").encode("utf-8"))
                lines.add([example.line])
                example = next(iterator, None)
            meta["report"] = dataclasses.asdict(report or ReadReport())
        return cls(folder)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> Example:
        texts = {side: bytes(column[index]).decode("utf-8") for side, column in self._columns.items()}
        source, target, label = (texts.get(side) for side in _SIDES)
        return Example(source, target, label, line=int(self.lines[index]), path=self.path)

    def __iter__(self) -> Iterator[Example]:
        return (self[index] for index in range(len(self)))

    @property
    def has_labels(self) -> bool:
        """True if the examples carry labels."""
        return "label" in self._columns

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


class Store:
    """The ids of a corpus. Rows longer than the codec allows are not in it, or are cut, as asked when it was written.

    Attributes:
        corpus: the text.
        rows: for each row its index in the corpus.
        source_lengths: positions of each source, EOS included; None without sources.
        target_lengths: positions of each target, BOS and EOS included; None without targets.
        labels: class of each row; None without labels.
    """

    def __init__(self, folder: Path, corpus: Corpus) -> None:
        meta = read_meta(folder)
        self.folder = folder
        self.corpus = corpus
        self.report = ReadReport.from_saved(meta["report"])
        self._source = Column(folder, "source", meta["dtypes"]["source"]) if "source" in meta["dtypes"] else None
        self._target = Column(folder, "target", meta["dtypes"]["target"]) if "target" in meta["dtypes"] else None
        self.rows = Column(folder, "rows", "<i8").values
        self.labels = Column(folder, "labels", "<i4").values if meta["has_labels"] else None
        self.source_lengths = None if self._source is None else self._source.lengths
        self.target_lengths = None if self._target is None else self._target.lengths

    @classmethod
    def write(
        cls,
        folder: Path,
        corpus: Corpus,
        codec: Codec,
        labels: LabelSet | None = None,
        *,
        report: ReadReport | None = None,
        drop_too_long: bool = True,
    ) -> "Store":
        """Turn a corpus into ids in a new folder, with memory for one row at a time.

        Args:
            folder: to be made.
            corpus: the text.
            codec: of both sides; a side that the codec has not is left out.
            labels: of the classes; None leaves them out.
            report: collects the rows dropped or cut.
            drop_too_long: drop rows longer than the codec allows; False cuts them.

        Raises:
            DataError: no row is left, or the disk is full.
        """
        report = report or ReadReport()
        sides = {"source": codec.source_size, "target": codec.target_size}
        dtypes = {side: "<u2" if size <= 1 << 16 else "<u4" for side, size in sides.items() if size is not None}
        num_rows = 0
        meta: dict[str, Any] = {"dtypes": dtypes, "has_labels": labels is not None}
        with new_folder(folder, meta) as draft, contextlib.ExitStack() as stack:
            writers = {side: _closing(stack, ColumnWriter(draft, side, dtype)) for side, dtype in dtypes.items()}
            rows = _closing(stack, ColumnWriter(draft, "rows", "<i8"))
            classes = None if labels is None else _closing(stack, ColumnWriter(draft, "labels", "<i4"))
            for index, example in enumerate(corpus):
                ids, too_long = _encode(codec, example)
                if too_long and drop_too_long:
                    report.drop(f"with a {too_long}", example.path, example.line)
                    continue
                if too_long:
                    report.cut(f"with a {too_long}", example.path, example.line)
                for side, writer in writers.items():
                    writer.add(ids[side])
                rows.add([index])
                if classes is not None and labels is not None:
                    classes.add([labels.index(example.label or "")])
                num_rows += 1
            if not num_rows:
                raise DataError("every example is longer than `text.max_source_length` or `text.max_target_length`.")
            report.num_kept = num_rows
            meta["report"] = dataclasses.asdict(report)
        return cls(folder, corpus)

    def __len__(self) -> int:
        return len(self.rows)

    def source(self, row: int) -> NDArray[Any]:
        """Return the ids of a row's source, EOS included."""
        assert self._source is not None
        return self._source[row]

    def target(self, row: int) -> NDArray[Any]:
        """Return the ids of a row's target, BOS and EOS included."""
        assert self._target is not None
        return self._target[row]

    def example(self, row: int) -> Example:
        """Return the text of a row."""
        return self.corpus[int(self.rows[row])]


def _encode(codec: Codec, example: Example) -> tuple[dict[str, list[int]], str]:
    """Return the ids of each side, and what was too long (an empty string if nothing was)."""
    ids, too_long = {}, ""
    for side, encode in (("source", codec.encode_source), ("target", codec.encode_target)):
        if getattr(codec, side) is not None:
            cut = Truncations()
            ids[side] = encode(getattr(example, side) or "", truncations=cut)
            too_long = f"{side} longer than {cut.limit} symbols" if cut.num_lines else too_long
    return ids, too_long


def _closing(stack: contextlib.ExitStack, writer: ColumnWriter) -> ColumnWriter:
    stack.callback(writer.close)
    return writer
