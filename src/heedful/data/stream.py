"""One long text as ids on disk, for language models."""

import contextlib
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from heedful.core.errors import DataError
from heedful.data.cache import new_folder, read_meta
from heedful.data.columns import ArrayWriter, read_array
from heedful.data.corpus import Corpus
from heedful.data.store import id_dtype
from heedful.text.codec import Codec


class Stream:
    """The ids of a stream, end to end, read through a memory map."""

    def __init__(self, folder: Path) -> None:
        self.ids: NDArray[Any] = read_array(folder, "ids", read_meta(folder)["dtype"])

    @classmethod
    def write(cls, folder: Path, corpus: Corpus, codec: Codec) -> "Stream":
        """Turn the targets of a corpus into one stream of ids in a new folder, with memory for one line at a time.

        Raises:
            DataError: there are no ids, or the disk is full.
        """
        assert codec.target_size is not None, "a stream is all target"
        dtype = id_dtype(codec.target_size)
        num_ids = 0
        with new_folder(folder, {"dtype": dtype}) as draft:
            with contextlib.closing(ArrayWriter(draft, "ids", dtype)) as writer:
                for example in corpus:
                    ids = codec.target_symbols(example.target or "")
                    writer.extend(ids)
                    num_ids += len(ids)
            if not num_ids:
                raise DataError("the stream has no symbols. Check the data's path, `start` and `end`.")
        return cls(folder)

    def __len__(self) -> int:
        return len(self.ids)
