"""The whole path from files and a config to batches, once, and from the cache again."""

from pathlib import Path

import pytest
import torch

from heedful.core.config import parse_config
from heedful.core.symbols import BOS_ID, EOS_ID
from heedful.core.types import Position
from heedful.data import DataConfig, LineBatches, StreamBatches, prepare, read_split
from heedful.text import TextConfig


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
    batches = StreamBatches(made.stream, 13, config.batching, seed=1, is_shuffled=False)
    rows = [row for plan in batches.epoch(0) for row in batches.batch(plan, 0).target]
    assert all(row[0] == BOS_ID and EOS_ID not in row for row in rows)
    assert "".join(made.codec.decode_target(row.tolist()) for row in rows) + held_out == text
