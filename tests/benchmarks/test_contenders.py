"""The benchmarks' common ground: weights that go in come out, batches keep their budget, Heedful's side learns."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def exchange() -> Iterator[ModuleType]:
    sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS / "contenders")]
    yield importlib.import_module("exchange")
    del sys.path[:2]


@pytest.fixture(scope="module")
def contenders(exchange: ModuleType) -> ModuleType:
    return importlib.import_module("with_heedful")


def rows(generator: np.random.Generator, count: int, *, first: list[int]) -> list[np.ndarray]:
    return [np.array([*first, *generator.integers(4, 40, generator.integers(1, 9)), 3]) for _ in range(count)]


@pytest.fixture(scope="module")
def pairs(exchange: ModuleType) -> object:
    generator = np.random.default_rng(1)
    source, target = rows(generator, 53, first=[]), rows(generator, 53, first=[2])
    return exchange.Pairs(source, target, exchange.group_by_length(source, target, 101, seed=2))


def test_batches_hold_every_row_once_within_the_budget(pairs: object) -> None:
    assert sorted(np.concatenate(pairs.batches).tolist()) == list(range(53))
    for index in range(len(pairs.batches)):
        source, target = pairs.padded(index)
        assert source.size + target.size <= 101


def test_pairs_are_saved_and_loaded(pairs: object, exchange: ModuleType, tmp_path: Path) -> None:
    pairs.save(tmp_path / "pairs.npz")
    found = exchange.Pairs.load(tmp_path / "pairs.npz")
    for name in ("source", "target", "batches"):
        for before, after in zip(getattr(pairs, name), getattr(found, name), strict=True):
            assert before.tolist() == after.tolist()


def test_weights_come_back_and_are_all_there(contenders: ModuleType, exchange: ModuleType) -> None:
    shape = exchange.SHAPES["tiny"]
    weights = exchange.fresh_weights(shape, seed=3)
    contender = contenders.Heedful(shape, "float32", {})
    contender.load(weights)
    for name, value in contender.weights().items():
        assert np.array_equal(value, weights[name]), name
    assert sum(each.numel() for each in contender.model.parameters()) == shape.num_parameters()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_heedfuls_side_learns_and_decodes(
    dtype: str, contenders: ModuleType, exchange: ModuleType, pairs: object
) -> None:
    shape = exchange.SHAPES["tiny"]
    contender = contenders.Heedful(shape, dtype, {})
    contender.load(exchange.fresh_weights(shape, seed=3))
    source, target = (torch.from_numpy(each) for each in pairs.padded(0))
    before = contender.loss(source, target)
    contender.train(pairs, 0, 3)
    assert contender.num_updates == 3
    assert contender.loss(source, target) < before
    for beam in (1, 3):
        found = contender.decode(source, beam, 4)
        assert len(found) == len(source)
        assert all(len(ids) <= 4 and min(ids, default=9) > 3 for ids in found)


def test_operations_are_those_of_the_matrices_for_one_token(exchange: ModuleType) -> None:
    """Count one source and one target token by hand: a weight takes part in one multiply-add of two operations."""
    shape = exchange.Shape("hand", model_dim=2, num_layers=1, inner_dim=3, num_heads=1, vocabulary=5)
    encoder = 4 * 4 + 2 * 6
    decoder = 4 * 4 + 2 * 4 + 2 * 6 + 5 * 2
    memory = 2 * 4
    products = 2 * 2 * (1 + 1 / 2 + 1)
    assert shape.flops_of(1, 1, 1, 1, 1) == 3 * 2 * (encoder + decoder + memory + products)
