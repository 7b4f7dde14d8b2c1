"""The benchmark of positions: its table says what its rows say, and its configuration is one."""

import importlib
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from heedful.core.config import apply_settings
from heedful.runs.config import parse_run

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def benchmark() -> Iterator[ModuleType]:
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("positions")
    sys.path.remove(str(BENCHMARKS))


def test_the_table_by_hand(benchmark: ModuleType) -> None:
    about = {"versions": {"torch": "2"}, "command": "c", "commit": "1", "date": "d", "machine": "m", "python": "3"}
    values = {"rows": {}}
    for seed, score in ((1, 50.0), (2, 100.0)):
        scores = {str(length): {"symbols": score, "rows": 25.0} for length in benchmark.TESTED}
        values["rows"][f"rotary/{seed}"] = {"scores": scores, **about}
    page = benchmark.render(values)
    assert "| rotary | 2 | 75.0 (50.0 to 100.0) |" in page and "| rotary | 2 | 25.0 | 25.0 |" in page
    assert "none" not in page


def test_every_row_is_a_configuration(benchmark: ModuleType) -> None:
    text = (BENCHMARKS / "positions.toml").read_text(encoding="utf-8")
    models = [
        parse_run(apply_settings(tomllib.loads(text), settings)).task.model for settings in benchmark.KINDS.values()
    ]
    assert [model.positions.kind for model in models] == ["sinusoidal"] * 2 + ["learned"] * 2 + ["rotary", "none"]
    assert [model.has_concatenated_positions for model in models] == [False, True, False, True, False, False]
    assert all(model.positions.max_positions > max(benchmark.TESTED) + 1 for model in models[2:4])
