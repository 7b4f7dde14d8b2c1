"""The corpus and the store: what was written comes back, in little memory, whole or not at all."""

import os
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.core.errors import DataError
from heedful.data import Corpus, Example, LineBatches, ReadReport, Store, Stream
from heedful.data.batching import BatchingConfig
from heedful.data.cache import new_folder
from heedful.data.columns import Rows, RowsWriter
from heedful.text import CharacterConfig, Codec, LabelSet, SubwordConfig, TextConfig

SIDE = st.text(st.characters(exclude_categories=["Cs"]), max_size=17)
CHARACTERS = TextConfig(source=CharacterConfig())


def examples(count: int) -> Iterator[Example]:
    return (Example(source=f"{n} words", target="wort " * (n % 7), line=n + 1, path="a.tsv") for n in range(count))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(SIDE, SIDE, st.integers(1, 2**40), st.sampled_from("abc")), min_size=1))
def test_a_corpus_gives_back_its_examples(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, int, str]]
) -> None:
    written = [Example(source=a, target=b, line=line, path=path) for a, b, line, path in rows]
    corpus = Corpus.write(tmp_path_factory.mktemp("corpus") / "corpus", iter(written))
    assert list(corpus) == written == [corpus[index] for index in range(len(corpus))]
    assert list(corpus.pairs()) == list(corpus.pairs()) == [(a, b) for a, b, _, _ in rows]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.integers(0, 2**16 - 1))))
def test_rows_of_numbers_come_back(tmp_path_factory: pytest.TempPathFactory, rows: list[list[int]]) -> None:
    folder = tmp_path_factory.mktemp("rows")
    writer = RowsWriter(folder, "x", "<u2")
    for row in rows:
        writer.append(row)
    writer.close()
    read = Rows(folder, "x", "<u2")
    assert [read[index].tolist() for index in range(len(read))] == rows
    assert read.lengths.tolist() == [len(row) for row in rows]


def test_a_store_holds_what_the_codec_says(tmp_path: Path) -> None:
    corpus = Corpus.write(tmp_path / "corpus", (Example(f"text {n}", label="xy"[n % 2]) for n in range(13)))
    codec, labels = Codec.train(CHARACTERS, corpus.pairs()), corpus.labels()
    store = Store.write(tmp_path / "store", corpus, codec, labels)
    assert len(store) == 13 and store.target_lengths is None and store.source_lengths is not None
    for row in range(13):
        assert store.source(row).tolist() == codec.encode_source(f"text {row}")
        assert store.source_lengths[row] == len(store.source(row))
    assert store.labels is not None and store.labels.tolist() == [n % 2 for n in range(13)]
    with pytest.raises(DataError, match="the label 'y' is not one of the model's"):
        Store.write(tmp_path / "other", corpus, codec, LabelSet(["x", "z"]))
    assert not (tmp_path / "other").exists()


def test_rows_too_long_are_dropped_or_cut(tmp_path: Path) -> None:
    corpus = Corpus.write(tmp_path / "corpus", examples(23))
    codec = Codec.train(TextConfig(source=CharacterConfig(), max_target_length=20), corpus.pairs())
    report = ReadReport()
    store = Store.write(tmp_path / "dropped", corpus, codec, report=report)
    assert store.target_lengths is not None and store.target_lengths.max() == 22
    assert [store.example(row).line - 1 for row in range(len(store))] == [n for n in range(23) if n % 7 <= 4]
    assert report.dropped["with a target longer than 20 symbols"].count == 23 - len(store) == 6
    assert report.num_kept == len(store)
    cut = Store.write(tmp_path / "cut", corpus, codec, report=report, drop_too_long=False)
    assert len(cut) == 23 and cut.report.cuts["with a target longer than 20 symbols"].count == 6
    narrow = Codec.train(TextConfig(source=CharacterConfig(), max_source_length=2), corpus.pairs())
    with pytest.raises(DataError, match="every example is longer"):
        Store.write(tmp_path / "none", corpus, narrow)


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    codec = Codec.train(CHARACTERS, [("0123456789 words", "wort ")])

    def peak(count: int) -> int:
        tracemalloc.start()
        corpus = Corpus.write(tmp_path / f"corpus{count}", examples(count))
        Store.write(tmp_path / f"store{count}", corpus, codec)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(7)  # what is loaded once
    small, large = peak(60), peak(560)
    # Two arrays of lengths are kept: 16 bytes a row and as much again while they are made; an `Example` has over 200.
    assert large - small < 48 * 500


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> Iterator[Example]:
        yield from examples(3)
        raise DataError("the gzip data end too early", "a.gz", 4)

    with pytest.raises(DataError, match=r"a\.gz:4"):
        Corpus.write(tmp_path / "corpus", interrupted())
    with pytest.raises(DataError, match="no training example is left"):
        Corpus.write(tmp_path / "corpus", iter(()))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_data_error(tmp_path: Path) -> None:
    with (
        pytest.raises(DataError, match="folder: the cache cannot be written: No space left"),
        new_folder(tmp_path / "folder", {}),
    ):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_the_first_of_two_writers_wins(tmp_path: Path) -> None:
    with new_folder(tmp_path / "folder", {}) as late:
        (late / "who").write_text("late")
        with new_folder(tmp_path / "folder", {}) as early:
            (early / "who").write_text("early")
    assert (tmp_path / "folder" / "who").read_text() == "early"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_writer_that_loses_the_race_at_the_very_end_takes_the_other_s_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def be_late(draft: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "who").write_text("early")
        rename(draft, folder)

    monkeypatch.setattr(os, "rename", be_late)
    with new_folder(tmp_path / "folder", {}) as late:
        (late / "who").write_text("late")
    assert (tmp_path / "folder" / "who").read_text() == "early"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_draft_is_nobody_s_once_nothing_was_written_for_a_day(tmp_path: Path) -> None:
    """A writer may be on another machine, where its process's number means nothing."""
    two_days_ago = time.time() - 2 * 24 * 3600
    for name, age in ((".folder.new.fresh123", None), (".folder.new.stale123", two_days_ago)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ids.bin").touch()
        for each in (tmp_path / name / "ids.bin", tmp_path / name):
            os.utime(each, None if age is None else (age, age))
    (tmp_path / ".folder.new.at_work1").mkdir()
    (tmp_path / ".folder.new.at_work1" / "ids.bin").touch()
    os.utime(tmp_path / ".folder.new.at_work1", (two_days_ago, two_days_ago))
    with new_folder(tmp_path / "folder", {}):
        pass
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [".folder.new.at_work1", ".folder.new.fresh123", "folder"]


def test_what_is_kept_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(Path(os.readlink(f"/proc/self/fd/{handle}")).name))
    with new_folder(tmp_path / "folder", {}) as draft:
        (draft / "ids.bin").touch()
    assert set(synced) >= {"ids.bin", "meta.json"}


@pytest.mark.parametrize("name", ["meta.json", "source.bin", "source.ends.bin", "lines.bin"])
def test_damage_is_noticed(tmp_path: Path, name: str) -> None:
    Corpus.write(tmp_path / "corpus", examples(13))
    path = tmp_path / "corpus" / name
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DataError, match=r"missing or damaged\. Delete"):
        Corpus(tmp_path / "corpus")
    path.unlink()
    with pytest.raises(DataError, match=r"missing or damaged\. Delete"):
        Corpus(tmp_path / "corpus")


def test_wide_vocabularies_have_wide_ids(tmp_path: Path) -> None:
    text = "".join(chr(code) for code in range(0x4E00, 0x4E00 + 20_000))
    text += "".join(chr(code) for code in range(0x20000, 0x20000 + 47_000))
    corpus = Corpus.write(tmp_path / "corpus", [Example(target=text)])
    codec = Codec.train(TextConfig(source=CharacterConfig(), normalization="none"), corpus.pairs())
    assert codec.target_size == 67_004
    stream = Stream.write(tmp_path / "stream", corpus, codec)
    assert stream.ids.dtype == np.uint32 and codec.decode_target(stream.ids.tolist()) == text


def test_sampling_draws_by_seed_epoch_and_line(tmp_path: Path) -> None:
    words = ["nami", "kotase", "minaru", "sesemi", "takona", "rumise"]
    pairs = [Example(" ".join(words[n // k % 6] for k in (1, 2, 3)), words[n % 6], line=n + 1) for n in range(60)]
    corpus = Corpus.write(tmp_path / "corpus", pairs)
    config = TextConfig(source=SubwordConfig(vocab_size=31, algorithm="bpe", sampling=0.4), max_source_length=13)
    codec = Codec.train(config, corpus.pairs())
    store = Store.write(tmp_path / "store", corpus, codec)
    whole = LineBatches(store, BatchingConfig(batch_tokens=97), 5, codec)
    single = LineBatches(store, BatchingConfig(max_rows=1), 5, codec)

    def rows(batches: LineBatches, epoch: int) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for plan in batches.epoch(epoch):
            batch = batches.batch(plan, epoch)
            assert batch.source is not None and batch.source.shape[1] <= 14
            for line, ids in zip(batch.lines.tolist(), batch.source.tolist(), strict=True):
                found[line] = [each for each in ids if each]
        return found

    first = rows(whole, 0)
    assert rows(single, 0) == first == rows(whole, 0)
    changed = sum(first[line] != ids for line, ids in rows(whole, 1).items())
    assert changed > 20
    assert all(codec.decode_source(ids) == corpus[line].source for line, ids in first.items())
    assert rows(LineBatches(store, BatchingConfig(), 5), 0) != first
