from pathlib import Path

import pytest
import torch
from tests.pruning.models import MODELS, make_task

from heedful.core.errors import ConfigError
from heedful.pruning import find_heads, keep_units, reduce_task, remove_heads, units_to_keep
from heedful.tasks.weights import load_weights, save_weights


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("which", ["some", "none", "all"])
def test_silenced_heads_equal_removed_ones(name: str, which: str, tmp_path: Path) -> None:
    """In losses, in predictions, and after a bundle's files."""
    task, examples, batch = make_task(name)
    heads = find_heads(task.model)
    kept = {
        site.path: {"some": ((0,), (), (0, 2))[number % 3], "none": (), "all": (0, 1, 2)}[which]
        for number, site in enumerate(heads.sites)
    }
    small = reduce_task(task, kept)
    with task.bound(gates=heads.gates(heads.binary(kept))), task.inference():
        silenced = task.loss(batch).total
        if which != "all":
            assert abs(silenced - small.loss(batch).total) < 1e-5 * abs(silenced)
    whole = task.loss(batch).total
    assert (abs(whole - silenced) > 1e-3) == (which != "all")
    assert [site.num_heads for site in find_heads(small.model).sites] == [len(each) for each in kept.values()]
    lines = [each.source or "ab" for each in examples]
    with task.bound(gates=heads.gates(heads.binary(kept))):
        expected = list(task.predict(lines))
    for one, other in zip(small.predict(lines), expected, strict=True):
        assert one.text == other.text
        assert one.score == pytest.approx(other.score, abs=1e-5)
    save_weights(small.model, tmp_path / "weights")
    again = type(task)(small.config, task.codec, task.labels)
    load_weights(again.model, tmp_path / "weights")
    assert [each.text for each in again.predict(lines)] == [each.text for each in expected]
    assert again.num_parameters == small.num_parameters
    assert (small.num_parameters < task.num_parameters) == (which != "all")


def test_a_pruned_model_is_pruned_again() -> None:
    task, _, batch = make_task("transformer")
    once = reduce_task(task, {"encoder.layers.0.self_attention": (1, 2), "decoder.layers.1.cross_attention": ()})
    heads = find_heads(once.model)
    assert len(heads) == 18 - 1 - 3
    twice = reduce_task(once, {"encoder.layers.0.self_attention": (1,)}, {"encoder.layers.1": [0, 5, 6]})
    directly = reduce_task(
        task,
        {"encoder.layers.0.self_attention": (2,), "decoder.layers.1.cross_attention": ()},
        {"encoder.layers.1": [0, 5, 6]},
    )
    torch.testing.assert_close(twice.loss(batch).total, directly.loss(batch).total)
    assert twice.config == directly.config
    assert twice.config.model.inner_dim.encoder == (16, 3)


def test_removed_units_are_those_that_nobody_read() -> None:
    task, _, batch = make_task("windowed")
    with torch.no_grad():
        task.model.blocks()["decoder.layers.0"].feed_forward.outer.weight[:, 3:9] = 0.0
    expected = task.loss(batch).total
    keep_units(task.model, {"decoder.layers.0": [*range(3), *range(9, 16)]})
    torch.testing.assert_close(task.loss(batch).total, expected)


def test_the_units_that_stay_are_the_most_important_of_all_layers() -> None:
    importance = {"a": torch.arange(32.0) / 100, "b": 1 + torch.arange(32.0) / 100}
    kept = units_to_keep(importance, 0.5)
    assert {path: len(each) for path, each in kept.items()} == {"a": 8, "b": 24}
    assert kept["a"] == [*range(24, 32)] and kept["b"] == [*range(8, 32)]
    assert {path: len(each) for path, each in units_to_keep(importance, 1.0).items()} == {"a": 32, "b": 32}
    odd = units_to_keep({"a": torch.arange(7.0), "b": torch.zeros(7)}, 0.5)
    assert len(odd["a"]) + len(odd["b"]) == 7 and len(odd["b"]) == 2


@pytest.mark.parametrize(("units", "fraction"), [(16, 0.25), (8, 0.5), (40, 0.5), (24, 0.4), (512, 0.1)])
def test_no_layer_falls_below_half_of_the_fraction_and_all_together_keep_it(units: int, fraction: float) -> None:
    kept = units_to_keep({"a": torch.arange(float(units)), "b": 1e3 + torch.arange(float(units))}, fraction)
    assert 0 <= fraction * 2 * units - sum(map(len, kept.values())) < 8
    assert len(kept["a"]) >= fraction * units / 2


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        ({"encoder.layers.7.self_attention": (0,)}, r"no attention `encoder.layers.7.self_attention` .*Did you mean"),
        ({"encoder.layers.0.self_attention": (0, 3)}, r"has 3 heads, counted from 0, but head 3 is named: \[0, 3\]"),
        ({"encoder.layers.0.self_attention": (1, 1)}, r"but a head is named twice: \[1, 1\]"),
    ],
)
def test_heads_that_do_not_exist(kept: dict[str, tuple[int, ...]], message: str) -> None:
    task, _, _ = make_task("transformer")
    with pytest.raises(ConfigError, match=message):
        remove_heads(task.model, kept)
    assert all(site.num_heads == 3 for site in find_heads(task.model).sites)


def test_kinds_that_do_not_exist() -> None:
    task, _, _ = make_task("language_model")
    with pytest.raises(ConfigError, match=r"`decode` is no kind of attention .* Did you mean `decoder`"):
        find_heads(task.model, ["decode"])
    with pytest.raises(ConfigError, match=r"The model has no `cross` attention\. Choose from: `decoder`"):
        find_heads(task.model, ["cross"])
    assert {site.kind for site in find_heads(task.model).sites} == {"decoder"}
