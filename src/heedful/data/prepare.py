"""From a data config to what training needs: cleaned text, codec, labels, and batches, kept in a cache folder."""

import copy
import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heedful.core.errors import BundleError, ConfigError, DataError, did_you_mean
from heedful.data.cache import new_folder
from heedful.data.cleaning import HeldOut, clean
from heedful.data.config import DataConfig
from heedful.data.corpus import Corpus
from heedful.data.example import Example, group_references
from heedful.data.opening import STDIN, check_plain, locate, unreadable
from heedful.data.readers import AnySourceConfig, data_paths, is_stream, read_examples
from heedful.data.report import ReadReport
from heedful.data.selection import bucket
from heedful.data.store import Store
from heedful.data.stream import Stream
from heedful.text.codec import Codec, TextConfig
from heedful.text.labels import LabelSet

_FORMAT = 1  # of the cache; raised when what is written changes
_BUCKETS = 10_000


@dataclass(frozen=True)
class TrainingData:
    """What training needs of its data.

    Attributes:
        codec: of the text, trained on the training data alone.
        labels: the classes, or None.
        store: the ids by line; None for a stream.
        stream: the ids of a stream, or None.
        report: what became of the rows.
        digests: sha256 of each data file, by path.
    """

    codec: Codec
    labels: LabelSet | None
    store: Store | None
    stream: Stream | None
    report: ReadReport
    digests: dict[str, str]


def prepare(
    config: DataConfig,
    text: TextConfig,
    folder: Path,
    cache: Path,
    *,
    codec: Codec | None = None,
    labels: LabelSet | None = None,
) -> TrainingData:
    """Read, clean and tokenise the training data, or take them from the cache if nothing has changed since.

    Args:
        config: of the data.
        text: how text becomes symbols.
        folder: where relative paths start.
        cache: a folder for what is made, best beside the run.
        codec: to use instead of a new one (fine-tuning).
        labels: to use instead of those that occur (fine-tuning).

    Raises:
        DataError: the data cannot be read as asked, or nothing is left of them.
        ConfigError: a path or a tokenizer does not go with the data.
    """
    digests = {path: file_digest(path) for path in located_paths(config, folder)}
    corpus_key = _key(_FORMAT, config.model_dump(mode="json", exclude={"batching", "name", "licence"}), digests)
    corpus = _cached_corpus(config, folder, cache / f"corpus-{corpus_key}")
    if codec is None:
        codec = _cached_codec(text, corpus, folder, cache / f"codec-{_key(corpus_key, text.model_dump(mode='json'))}")
    if labels is None and corpus.has_labels:
        labels = corpus.labels()
    key = _key(corpus_key, codec.fingerprint(), None if labels is None else labels.names)
    if is_stream(config.train):
        stream_folder = cache / f"stream-{key}"
        stream = Stream(stream_folder) if stream_folder.exists() else Stream.write(stream_folder, corpus, codec)
        return TrainingData(codec, labels, None, stream, corpus.report, digests)
    store = _cached_store(
        corpus, codec, labels, cache / f"store-{key}", drop_too_long=config.cleaning.too_long == "drop"
    )
    return TrainingData(codec, labels, store, None, store.report, digests)


def _cached_corpus(config: DataConfig, folder: Path, path: Path) -> Corpus:
    if path.exists():
        return Corpus(path)
    report = ReadReport()
    examples = read_examples(config.train, folder, report)
    if is_stream(config.train):
        return Corpus.write(path, _counted(examples, report), report)
    if config.dev is None:
        examples = _without(examples, HeldOut(read_split(config, "dev", folder)), report)
    held_out = HeldOut(
        each for name in ("dev", "test") if getattr(config, name) for each in read_split(config, name, folder)
    )
    return Corpus.write(path, clean(examples, config.cleaning, report, held_out), report)


def _counted(examples: Iterator[Example], report: ReadReport) -> Iterator[Example]:
    for each in examples:
        report.num_kept += 1
        yield each


def _without(examples: Iterator[Example], dev: HeldOut, report: ReadReport) -> Iterator[Example]:
    for each in examples:
        if each in dev:
            report.num_filtered += 1
        else:
            yield each


def _cached_codec(text: TextConfig, corpus: Corpus, folder: Path, path: Path) -> Codec:
    try:
        return Codec.load(path)
    except BundleError:
        codec = Codec.train(text, corpus.pairs(), folder=folder)
        with new_folder(path, {}) as draft:
            codec.save(draft)
        return codec


def _cached_store(corpus: Corpus, codec: Codec, labels: LabelSet | None, path: Path, *, drop_too_long: bool) -> Store:
    if path.exists():
        return Store(path, corpus)
    report = copy.deepcopy(corpus.report)
    return Store.write(path, corpus, codec, labels, report=report, drop_too_long=drop_too_long)


def read_split(config: DataConfig, split: str, folder: Path, report: ReadReport | None = None) -> list[Example]:
    """Read ``dev`` or ``test`` whole, or for want of ``dev`` what is held out of the training data.

    Raises:
        DataError: the data cannot be read as asked.
        ConfigError: there is no such split.
    """
    report = report or ReadReport()
    sources = {"dev": config.dev, "test": config.test}
    if split not in sources:
        raise ConfigError(f"`{split}` is no split of held-out data. {did_you_mean(split, sources)}")
    source = sources[split]
    if source is not None:
        examples = list(read_examples(source, folder, report))
    elif split == "dev" and _can_hold_out(config.train):
        limit = config.dev_share * _BUCKETS
        rows = (each for each in read_examples(config.train, folder, report) if bucket(_text(each), _BUCKETS) < limit)
        examples = list(itertools.islice((each for each in rows if _text(each).strip()), config.dev_rows))
        if not examples:
            raise DataError("the training data are too few to hold out some for `data.dev`. Name a `data.dev`.")
    else:
        raise ConfigError(f"`data.{split}` is missing. Name the file, as for `data.train`.")
    report.num_kept = len(examples)
    return group_references(examples) if config.group_references else examples


def _can_hold_out(config: AnySourceConfig) -> bool:
    return not is_stream(config) and STDIN not in data_paths(config)


def _text(example: Example) -> str:
    return (example.target if example.source is None else example.source) or ""


def located_paths(config: DataConfig, folder: Path) -> list[str]:
    """Return the full path of every file that the config names, each once."""
    sources = [each for each in (config.train, config.dev, config.test) if each is not None]
    return list(dict.fromkeys(locate(path, folder) for each in sources for path in data_paths(each)))


def file_digest(path: str) -> str:
    """Return the sha256 of a located file; standard input, which cannot be read twice, gives its name.

    Raises:
        DataError: the file cannot be read.
    """
    if path == STDIN:
        return STDIN
    check_plain(path)
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from None


def _key(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
