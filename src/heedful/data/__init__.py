"""Example -> Batch: reading files of any format, cleaning, the store of ids on disk, and batches of equal work."""

from heedful.data.batches import Batches, LineBatches, StreamBatches
from heedful.data.batching import BatchingConfig, Waste, group_rows
from heedful.data.cleaning import CleaningConfig, HeldOut, clean
from heedful.data.collate import collate
from heedful.data.config import DataConfig
from heedful.data.corpus import Corpus
from heedful.data.example import Example, group_references
from heedful.data.prepare import TrainingData, prepare, read_split
from heedful.data.readers import AnySourceConfig, is_stream, read_examples
from heedful.data.report import ReadReport
from heedful.data.store import Store
from heedful.data.stream import Stream

__all__ = [
    "AnySourceConfig",
    "Batches",
    "BatchingConfig",
    "CleaningConfig",
    "Corpus",
    "DataConfig",
    "Example",
    "HeldOut",
    "LineBatches",
    "ReadReport",
    "Store",
    "Stream",
    "StreamBatches",
    "TrainingData",
    "Waste",
    "clean",
    "collate",
    "group_references",
    "group_rows",
    "is_stream",
    "prepare",
    "read_examples",
    "read_split",
]
