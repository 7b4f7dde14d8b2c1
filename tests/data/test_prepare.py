"""The whole path from files and a config to batches, once, and from the cache again."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.core.config import parse_config
from heedful.core.errors import ConfigError, DataError
from heedful.core.symbols import BOS_ID, EOS_ID
from heedful.core.types import Position
from heedful.data import (
    BatchingConfig,
    CleaningConfig,
    DataConfig,
    LineBatches,
    StreamBatches,
    prepare,
    read_split,
)
from heedful.data.tables import TsvConfig
from heedful.text import Codec, LabelSet, TextConfig


def write_pairs(folder: Path, count: int = 97) -> DataConfig:
    lines = [f"{'dev' if n % 7 == 0 else 'train'}\tword {n} {'a ' * (n % 11)}end\tWort {n}!" for n in range(count)]
    (folder / "pairs.tsv").write_text("\n".join(["split\ten\tde", *lines]) + "\n", encoding="utf-8")
    source = {"kind": "tsv", "path": "pairs.tsv", "source": "en", "target": "de"}
    splits = {name: {**source, "where": {"split": name}} for name in ("train", "dev")}
    return parse_config(DataConfig, {**splits, "batching": {"batch_tokens": 64}})


@pytest.mark.parametrize("kind", ["character", "word", "byte", "subword"])
def test_every_line_comes_back_from_the_batches(tmp_path: Path, kind: str) -> None:
    config = write_pairs(tmp_path)
    text = parse_config(TextConfig, {"source": {"kind": kind}})
    made = prepare(config, text, tmp_path, tmp_path / "cache")
    batches = LineBatches(made.store, config.batching, seed=3)
    seen = {}
    for rows in batches.epoch(0):
        batch = batches.batch(rows, 0)
        for line, source, target in zip(batch.lines.tolist(), batch.source, batch.target, strict=True):
            seen[line] = (made.codec.decode_source(source.tolist()), made.codec.decode_target(target.tolist()))
    cells = [line.split("\t") for line in (tmp_path / "pairs.tsv").read_text().splitlines()]
    assert seen == {n: (row[1], row[2]) for n, row in enumerate(cells) if row[0] == "train"}
    assert len(read_split(config, "dev", tmp_path)) == 14


def test_second_time_comes_from_the_cache(tmp_path: Path) -> None:
    config, text = write_pairs(tmp_path), parse_config(TextConfig, {"source": {"kind": "character"}})
    first = prepare(config, text, tmp_path, tmp_path / "cache")
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*")}
    second = prepare(config, text, tmp_path, tmp_path / "cache")
    assert made == {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*")}
    assert first.report == second.report and first.digests == second.digests
    assert first.codec.fingerprint() == second.codec.fingerprint()


def test_resuming_goes_on_with_the_next_batch(tmp_path: Path) -> None:
    config, text = write_pairs(tmp_path), parse_config(TextConfig, {"source": {"kind": "character"}})
    batches = LineBatches(prepare(config, text, tmp_path, tmp_path / "cache").store, config.batching, seed=3)
    whole = batches.placed(Position())
    for _ in range(len(batches.epoch(0)) + 2):
        position = next(whole).next_position
    assert position == Position(1, 2)
    again = batches.placed(position)
    for _ in range(3):
        assert torch.equal(next(whole).batch.source, next(again).batch.source)


def test_stream_windows_cover_the_text(tmp_path: Path) -> None:
    text = "to be or\nnot to be, that is\n\nthe question" * 5
    (tmp_path / "play.txt").write_text(text, encoding="utf-8")
    source = {"kind": "lines", "path": "play.txt", "unit": "stream"}
    splits = {"train": {**source, "end": 0.9}, "dev": {**source, "start": 0.9}}
    config = parse_config(DataConfig, {**splits, "batching": {"batch_tokens": 26}})
    made = prepare(config, parse_config(TextConfig, {"source": {"kind": "character"}}), tmp_path, tmp_path / "cache")
    held_out = "".join(each.target or "" for each in read_split(config, "dev", tmp_path))
    batches = StreamBatches(made.stream, 13, config.batching, seed=1)
    starts = [int(start) for plan in batches.epoch(0) for start in plan]
    rows = [row for plan in batches.epoch(0) for row in batches.batch(plan, 0).target]
    assert all(row[0] == BOS_ID and EOS_ID not in row for row in rows)
    spelt = [made.codec.decode_target(row.tolist()) for _, row in sorted(zip(starts, rows, strict=True))]
    assert "".join(spelt) == text[min(starts) : min(starts) + 13 * len(rows)] and len(rows) > 10
    assert made.codec.decode_target(made.stream.ids.tolist()) + held_out == text


def write_labelled(folder: Path) -> DataConfig:
    rows = "".join(f"{'ham' if n % 3 else 'spam'}\tmessage {n % 89} of {n % 7}\n" for n in range(151))
    (folder / "mail.tsv").write_text(f"label\ttext\n{rows}", encoding="utf-8")
    source = {"kind": "tsv", "path": "mail.tsv", "source": "text", "label": "label"}
    return parse_config(DataConfig, {"train": source, "dev_share": 0.2, "dev_rows": 17})


def test_classes_without_a_dev_set(tmp_path: Path) -> None:
    config, text = write_labelled(tmp_path), parse_config(TextConfig, {"source": {"kind": "word"}})
    made = prepare(config, text, tmp_path, tmp_path / "cache")
    dev = read_split(config, "dev", tmp_path)
    assert made.codec.target is None and made.labels is not None and made.labels.names == ("ham", "spam")
    assert len(dev) == 17
    train = {made.store.example(row).source for row in range(len(made.store))}
    assert not train & {each.source for each in dev}
    report = made.report
    assert report.num_read == 151 == report.num_kept + report.num_filtered + report.num_dropped
    assert report.num_filtered >= 17 and not report.warnings
    batches = LineBatches(made.store, config.batching, seed=3)
    batch = batches.batch(batches.epoch(0)[0], 0)
    rows = (tmp_path / "mail.tsv").read_text().splitlines()
    assert batch.target is None and batch.labels is not None
    assert [made.labels.names[label] for label in batch.labels.tolist()] == [
        rows[line].split("\t")[0] for line in batch.lines.tolist()
    ]


def test_the_test_set_is_missed_and_leaks_are_told(tmp_path: Path) -> None:
    config = write_pairs(tmp_path)
    with pytest.raises(ConfigError, match=r"`data\.test` is missing"):
        read_split(config, "test", tmp_path)
    with pytest.raises(ConfigError, match=r"`train` is no split of held-out data\. Choose from: `dev`, `test`"):
        read_split(config, "train", tmp_path)
    config = config.model_copy(update={"test": config.train})
    text = parse_config(TextConfig, {"source": {"kind": "character"}})
    made = prepare(config, text, tmp_path, tmp_path / "cache")
    assert made.report.warnings[0].startswith("83 training rows are also in dev or test")
    dropping = config.model_copy(update={"cleaning": CleaningConfig(overlap="drop")})
    with pytest.raises(DataError, match="no training example is left"):
        prepare(dropping, text, tmp_path, tmp_path / "cache")


def test_a_change_is_noticed_and_batching_is_none(tmp_path: Path) -> None:
    config, text = write_pairs(tmp_path), parse_config(TextConfig, {"source": {"kind": "character"}})
    cache = tmp_path / "cache"
    prepare(config, text, tmp_path, cache)
    before = set(cache.iterdir())
    prepare(config.model_copy(update={"batching": BatchingConfig(batch_tokens=99)}), text, tmp_path, cache)
    assert set(cache.iterdir()) == before
    prepare(config, text.model_copy(update={"lowercase": True}), tmp_path, cache)
    assert len(set(cache.iterdir()) - before) == 2  # codec and store; the corpus stays
    with (tmp_path / "pairs.tsv").open("a") as file:
        file.write("train\tone more\tnoch eins\n")
    assert len(prepare(config, text, tmp_path, cache).store or ()) == 84
    assert len(set(cache.iterdir()) - before) == 5


def test_fine_tuning_keeps_codec_and_labels(tmp_path: Path) -> None:
    config, text = write_labelled(tmp_path), parse_config(TextConfig, {"source": {"kind": "word"}})
    labels = LabelSet(["spam", "other", "ham"])
    codec = Codec.train(text, [("message 1 of 2", None)])
    made = prepare(config, text, tmp_path, tmp_path / "cache", codec=codec, labels=labels)
    assert made.codec is codec and made.labels is labels and made.store is not None
    assert made.store.labels is not None and set(made.store.labels.tolist()) == {0, 2}


def test_training_data_from_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dev = write_pairs(tmp_path).dev
    train = TsvConfig(path="-", source="a", target="b")
    text = parse_config(TextConfig, {"source": {"kind": "character"}})
    with pytest.raises(ConfigError, match=r"`data\.dev` is missing"):
        prepare(DataConfig(train=train), text, tmp_path, tmp_path / "cache")
    raw = io.BufferedReader(io.BytesIO(b"a\tb\none\ttwo\nthree\tfour\n"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    made = prepare(DataConfig(train=train, dev=dev), text, tmp_path, tmp_path / "cache")
    again = prepare(DataConfig(train=train, dev=dev), text, tmp_path, tmp_path / "cache")  # nothing left to read
    assert len(made.store or ()) == len(again.store or ()) == 2


def test_lines_of_a_language_model(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"sentence {n}\n\n" for n in range(53)), encoding="utf-8")
    config = parse_config(DataConfig, {"train": {"kind": "lines", "path": "a.txt"}})
    made = prepare(config, parse_config(TextConfig, {"source": {"kind": "word"}}), tmp_path, tmp_path / "cache")
    assert made.codec.source is None and made.store is not None and made.store.source_lengths is None
    assert made.report.dropped["with an empty side"].count == 53
    assert len(made.store) + len(read_split(config, "dev", tmp_path)) == 53


def test_shuffled_windows_of_a_stream(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("abcdefghijklmnopqrstuvwxyz" * 7, encoding="utf-8")
    config = parse_config(DataConfig, {"train": {"kind": "lines", "path": "a.txt", "unit": "stream"}})
    made = prepare(config, parse_config(TextConfig, {"source": {"kind": "character"}}), tmp_path, tmp_path / "cache")
    assert made.stream is not None and len(made.stream) == 182 and made.store is None
    batches = StreamBatches(made.stream, 11, BatchingConfig(batch_tokens=30), seed=3)
    for epoch in range(5):
        starts = sorted(int(start) for rows in batches.epoch(epoch) for start in rows)
        assert starts == list(range(starts[0], starts[0] + 11 * len(starts), 11))
        assert starts[0] < 11 and 182 - (starts[-1] + 11) < 11
        assert all(len(rows) <= 2 for rows in batches.epoch(epoch))
    assert len({min(min(rows) for rows in batches.epoch(epoch)) for epoch in range(5)}) > 1
    first = next(batches.placed(Position(2, 1))).batch
    again = batches.batch(batches.epoch(2)[1], 2)
    assert first.target is not None and torch.equal(first.target, again.target) and first.target.shape == (2, 12)
    short = StreamBatches(made.stream, 1000, BatchingConfig(), seed=3)
    assert next(short.placed(Position())).batch.target.shape == (1, 183)


STREAM = {"kind": "lines", "path": "a", "unit": "stream"}
LINES = {**STREAM, "unit": "line"}
PAIRS = {"kind": "tsv", "path": "a", "source": "a", "target": "b"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"train": PAIRS, "dev": {**PAIRS, "path": "-"}}, r"^`data\.dev` is read more than once.*Save it as a file"),
        (
            {"train": PAIRS, "test": {"kind": "several", "sources": [PAIRS, {**PAIRS, "path": "-"}]}},
            r"^`data\.test` is",
        ),
        ({"train": PAIRS, "dev": LINES}, r"^`data\.dev` gives target, but `data\.train` gives source and target\."),
        (
            {"train": {**PAIRS, "label": "c"}, "dev": PAIRS, "test": PAIRS},
            r"^`data\.dev` gives source and target, but `data\.train` gives source and target and label\.",
        ),
        ({"train": STREAM, "dev": LINES}, r'^`data\.dev` must be read as .* Set `data\.dev\.unit = "stream"`'),
        ({"train": STREAM, "dev": STREAM, "test": LINES}, r"^`data\.test` must be read as `data\.train` is"),
        ({"train": LINES, "dev": STREAM}, r'Set `data\.dev\.unit = "line"`, or change `data\.train\.unit`'),
    ],
)
def test_held_out_data_that_cannot_go_with_the_training_data(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(DataConfig, values, prefix="data")
