"""One long text as ids on disk, for language models."""

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.core.errors import DataError
from heedful.data.columns import Column, ColumnWriter
from heedful.data.store import Corpus, new_folder, read_meta
from heedful.text.codec import Codec


class Stream:
    """The ids of a stream, end to end, read through a memory map."""

    def __init__(self, folder: Path) -> None:
        self.ids: NDArray[Any] = Column(folder, "ids", read_meta(folder)["dtype"]).values

    @classmethod
    def write(cls, folder: Path, corpus: Corpus, codec: Codec) -> "Stream":
        """Turn the targets of a corpus into one stream of ids in a new folder, with memory for one line at a time.

        Raises:
            DataError: there are no ids, or the disk is full.
        """
        dtype = "<u2" if (codec.target_size or 0) <= 1 << 16 else "<u4"
        num_ids = 0
        with new_folder(folder, {"dtype": dtype}) as draft:
            with contextlib.closing(ColumnWriter(draft, "ids", dtype)) as writer:
                for example in corpus:
                    ids = codec.target_symbols(example.target or "")
                    writer.add(np.asarray(ids, dtype=dtype))
                    num_ids += len(ids)
            if not num_ids:
                raise DataError("the stream has no symbols. Check the data's path, `start` and `end`.", corpus.path)
        return cls(folder)

    def __len__(self) -> int:
        return len(self.ids)
