"""The training data as ids on disk, written once for a run and read through memory maps."""

import contextlib
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.core.errors import DataError
from heedful.data.cache import new_folder, read_meta
from heedful.data.columns import ArrayWriter, Rows, RowsWriter, read_array
from heedful.data.corpus import Corpus
from heedful.data.example import Example
from heedful.data.report import ReadReport
from heedful.text.codec import Codec
from heedful.text.labels import LabelSet
from heedful.text.unread import Unread


class Store:
    """The ids of a corpus under one codec. Rows longer than the codec allows are left out, or cut, as was asked.

    Attributes:
        folder: where it is.
        corpus: the text.
        report: what became of the rows.
        rows: for each row its index in the corpus.
        source_lengths: positions of each source, EOS included; None without sources.
        target_lengths: positions of each target, BOS and EOS included; None without targets.
        labels: class of each row; None without labels.
    """

    def __init__(self, folder: Path, corpus: Corpus) -> None:
        meta = read_meta(folder)
        dtypes: dict[str, str] = meta["dtypes"]
        self.folder = folder
        self.corpus = corpus
        self.report = ReadReport.from_saved(meta["report"])
        self.rows = read_array(folder, "rows", "<i8")
        self.labels = read_array(folder, "labels", "<i8") if meta["has_labels"] else None
        self._ids = {side: Rows(folder, side, dtype) for side, dtype in dtypes.items()}
        self.source_lengths, self.target_lengths = (
            self._ids[side].lengths if side in self._ids else None for side in ("source", "target")
        )

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
            report: counts the rows dropped or cut, kept with the ids.
            drop_too_long: drop rows longer than the codec allows; False cuts them.

        Raises:
            DataError: a label is unknown, no row is left, or the disk is full.
        """
        report = report or ReadReport()
        meta: dict[str, Any] = {"dtypes": _dtypes(codec), "has_labels": labels is not None}
        with new_folder(folder, meta) as draft, contextlib.ExitStack() as stack:
            writers = {
                side: stack.enter_context(contextlib.closing(RowsWriter(draft, side, dtype)))
                for side, dtype in _dtypes(codec).items()
            }
            rows = stack.enter_context(contextlib.closing(ArrayWriter(draft, "rows", "<i8")))
            classes = stack.enter_context(contextlib.closing(ArrayWriter(draft, "labels", "<i8")))
            report.num_kept = 0
            for index, example in enumerate(corpus):
                ids, too_long = _encode(codec, example)
                if too_long and drop_too_long:
                    report.drop(too_long, example.path, example.line)
                    continue
                if too_long:
                    report.cut(too_long, example.path, example.line)
                for side, writer in writers.items():
                    writer.append(ids[side])
                if labels is not None:
                    classes.extend([labels.index(example.label or "", example.path, example.line)])
                rows.extend([index])
                report.num_kept += 1
            if not report.num_kept:
                raise DataError("every example is longer than `text.max_source_length` or `text.max_target_length`.")
            meta["report"] = dataclasses.asdict(report)
        return cls(folder, corpus)

    def __len__(self) -> int:
        return len(self.rows)

    def source(self, row: int) -> NDArray[Any]:
        """Return the ids of a row's source, EOS included."""
        return self._ids["source"][row]

    def target(self, row: int) -> NDArray[Any]:
        """Return the ids of a row's target, BOS and EOS included."""
        return self._ids["target"][row]

    def example(self, row: int) -> Example:
        """Return the text of a row."""
        return self.corpus[int(self.rows[row])]


def id_dtype(size: int) -> str:
    """Return the smallest type that holds the ids of a vocabulary."""
    return "<u2" if size <= np.iinfo(np.uint16).max + 1 else "<u4"


def _dtypes(codec: Codec) -> dict[str, str]:
    sizes = {"source": codec.source_size, "target": codec.target_size}
    return {side: id_dtype(size) for side, size in sizes.items() if size is not None}


def _encode(codec: Codec, example: Example) -> tuple[dict[str, list[int]], str]:
    """Return the ids of each side, and which side was too long and cut (an empty string if none was)."""
    ids, too_long = {}, ""
    for side, encode in (("source", codec.encode_source), ("target", codec.encode_target)):
        if getattr(codec, side) is not None:
            cut = Unread()
            ids[side] = encode(getattr(example, side) or "", unread=cut)
            too_long = f"with a {side} longer than {cut.limit} symbols" if cut.cut.count else too_long
    return ids, too_long
