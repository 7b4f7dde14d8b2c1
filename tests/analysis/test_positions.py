"""Positions: the turn that a step is, counters, similarity, probes, and what order means to attention."""

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from heedful.analysis.positions_counter import bits_of, change_shares, pairs_like_bits
from heedful.analysis.positions_file import read_table
from heedful.analysis.positions_order import encode_sentences, order_effects
from heedful.analysis.positions_probe import probe
from heedful.analysis.positions_report import look_at
from heedful.analysis.positions_rotation import check_step, pair_turn, paired_rows, step_matrix
from heedful.analysis.positions_similarity import by_distance
from heedful.analysis.positions_table import PositionTable, rotary_table, sinusoidal_table
from heedful.attention.masks import AttentionMask
from heedful.attention.multihead import SelfAttention
from heedful.attention.rotary import Rotary
from heedful.core.errors import ConfigError, DataError
from heedful.layers.positions import NoPositionsConfig, SinusoidalPositionsConfig

TABLES = [sinusoidal_table(37, 14), sinusoidal_table(37, 13), rotary_table(37, Rotary(14, 500.0))]


def learned(rows: torch.Tensor) -> PositionTable:
    return PositionTable(name="made", kind="learned", rows=rows)


def test_one_block_by_hand() -> None:
    # At width 2 the frequency is 1: (sin p, cos p) becomes (sin(p + 2), cos(p + 2)).
    expected = torch.tensor([[math.cos(2), math.sin(2)], [-math.sin(2), math.cos(2)]], dtype=torch.float64)
    torch.testing.assert_close(pair_turn(sinusoidal_table(3, 2), 0, 2), expected)
    torch.testing.assert_close(pair_turn(rotary_table(3, Rotary(2)), 0, 2), expected.T)
    start = torch.tensor([math.sin(5), math.cos(5)], dtype=torch.float64)
    torch.testing.assert_close(expected @ start, torch.tensor([math.sin(7), math.cos(7)], dtype=torch.float64))


@pytest.mark.parametrize("table", TABLES, ids=["sinusoidal", "odd width", "rotary"])
def test_one_matrix_carries_every_position(table: PositionTable) -> None:
    for steps in (1, 5, 36):
        check = check_step(table, steps)
        assert check.num_positions == 37 - steps and check.largest_error < 1e-6
    matrix = step_matrix(table, 5)
    torch.testing.assert_close(matrix @ matrix.T, torch.eye(len(matrix), dtype=torch.float64))
    torch.testing.assert_close(matrix @ step_matrix(table, 4), step_matrix(table, 9))
    rows = paired_rows(table)
    assert (rows[5:] - rows[:-5] @ step_matrix(table, 4).T).abs().max() > 0.1


def test_rotary_turns_any_vector_by_the_matrix() -> None:
    """The rows are made of (1, 0) only; the matrix must also be what rotary does to queries and keys."""
    rotary = Rotary(6)
    vectors = torch.randn(1, 1, 1, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    at, later = (rotary(vectors, offset).flatten().view(2, 3).T.flatten() for offset in (3, 10))
    torch.testing.assert_close(step_matrix(rotary_table(2, rotary), 7) @ at, later)


def test_similarity_by_hand_and_by_distance_alone() -> None:
    rows = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])
    half = math.sqrt(0.5)
    found = [(each.distance, each.mean, each.least, each.largest) for each in by_distance(rows)]
    for one, other in zip(found, [(0, 1, 1, 1), (1, half / 2, 0, half), (2, half, half, half)], strict=True):
        assert one == pytest.approx(other)
    for each in by_distance(TABLES[0].rows):
        expected = sum(math.cos(each.distance * 10_000 ** (-2 * pair / 14)) for pair in range(7)) / 7
        assert each.least == pytest.approx(expected, abs=1e-6) and each.largest == pytest.approx(expected, abs=1e-6)


def test_a_counter_by_hand() -> None:
    assert bits_of(5).tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]]
    table = sinusoidal_table(200, 16)
    assert pairs_like_bits(table, 8) == [0, 0, 0, 1, 1, 2, 3, 3]
    # Wavelengths are 6.3, 19.9, 63, 199 ...: nearest in ratio to 2, 4, 8, 16, 32, 64, 128, 256.
    squares = [4 * math.sin(10_000 ** (-2 * pair / 16) / 2) ** 2 for pair in range(8)]
    shares = change_shares(table)
    torch.testing.assert_close(shares, torch.tensor(squares, dtype=torch.float64) / sum(squares), atol=1e-6, rtol=0)
    assert shares[0] > 0.8


def test_a_probe_reads_positions_where_there_are_some() -> None:
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(60, 24, generator=generator)
    line = torch.linspace(-2, 2, 60)[:, None] * torch.randn(24, generator=generator)
    carrying, nothing = probe(line + 0.1 * noise), probe(noise)
    assert carrying is not None and nothing is not None
    assert carrying.scores.position_error < 3 and carrying.scores.position_r2 > 0.95
    assert carrying.scores.order_accuracy > 0.95 > 0.7 > nothing.scores.order_accuracy
    assert nothing.scores.position_error > 10 and nothing.chance_error == pytest.approx(15.0)
    assert 0.3 < carrying.random.order_accuracy < 0.7 and carrying.random.position_r2 < 0.3
    assert probe(torch.randn(9, 3)) is None


def test_a_probe_is_not_fooled_by_positions_it_has_seen() -> None:
    """With more numbers than positions a probe can learn any table by heart; held out, it knows nothing."""
    found = probe(torch.randn(40, 80, generator=torch.Generator().manual_seed(2)))
    assert found is not None and found.scores.order_accuracy < 0.65 and found.scores.position_r2 < 0.2


@torch.no_grad()
def test_attention_without_positions_only_permutes() -> None:
    torch.manual_seed(5)
    hidden = torch.randn(2, 7, 12, dtype=torch.float64)
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    mask = AttentionMask(keep=torch.ones(1, 1, 7, dtype=torch.bool))
    plain = SelfAttention(12, 3, 4).double()
    torch.testing.assert_close(plain(hidden, mask=mask)[:, order], plain(hidden[:, order], mask=mask))
    turned = SelfAttention(12, 3, 4, rotary=Rotary(4)).double()
    assert (turned(hidden)[:, order] - turned(hidden[:, order])).abs().max() > 1e-3


def test_cat_and_mouse() -> None:
    effects = {each.kind: each for each in order_effects(seed=3)}
    assert set(effects) == {"none", "sinusoidal", "learned", "rotary"}
    assert effects["none"].words < 1e-12 and effects["none"].sentence < 1e-12
    for kind in ("sinusoidal", "learned", "rotary"):
        assert effects[kind].cat > 1e-2 and effects[kind].words > 1e-2 and effects[kind].sentence > 1e-3
    one, other = encode_sentences(NoPositionsConfig(), 3)
    torch.testing.assert_close(one[1], other[4])  # cat
    one, other = encode_sentences(SinusoidalPositionsConfig(), 3)
    assert (one[1] - other[4]).abs().max() > 1e-2


def test_a_report_of_a_learned_table_has_no_turn() -> None:
    report = look_at(learned(torch.randn(12, 6)))
    assert report.turning is None and report.counter is None and report.probe is not None
    values = report.to_values()
    assert values["turning"] is None and values["probe"]["chance"]["order_accuracy"] == 0.5
    assert look_at(learned(torch.randn(3, 2)), steps=1).probe is None
    with pytest.raises(ConfigError, match="`--step` must be from 1 to 11, for there are 12 positions, but is 12"):
        look_at(learned(torch.randn(12, 6)), steps=12)


def test_tables_in_files(tmp_path: Path) -> None:
    path = tmp_path / "some.safetensors"
    bad = torch.randn(4, 3)
    bad[2, 1] = math.nan
    save_file(
        {
            "bert.embeddings.position_embeddings.weight": torch.arange(8.0).view(4, 2),
            "bert.embeddings.word_embeddings.weight": torch.zeros(5, 2),
            "bias": torch.zeros(5),
            "bad": bad,
            "whole": torch.zeros(4, 4, dtype=torch.int64),
            "one": torch.zeros(1, 4),
        },
        path,
    )
    found = read_table(path)
    assert found.rows.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]] and "position_embeddings" in found.name
    assert read_table(path, "bert.embeddings.word_embeddings.weight").rows.shape == (5, 2)
    for name, message in {
        "bias": "has 1 axes",
        "bad": "not finite, first at position 2",
        "whole": "holds torch.int64 numbers",
        "one": "is 1 x 4: a table needs two positions",
    }.items():
        with pytest.raises(DataError, match=message):
            read_table(path, name)
    with pytest.raises(ConfigError, match=r"there is no tensor `bed`. Did you mean `bad`"):
        read_table(path, "bed")
    (tmp_path / "text").write_text("no tensors here, only words")
    with pytest.raises(DataError, match="not a safetensors file"):
        read_table(tmp_path / "text")
    with pytest.raises(DataError, match="no such file"):
        read_table(tmp_path / "nowhere")
    save_file({"a": torch.zeros(3, 2), "b": torch.zeros(3, 2)}, path)
    with pytest.raises(ConfigError, match="which tensor holds the positions"):
        read_table(path)
    save_file({"a": torch.zeros(3)}, path)
    with pytest.raises(ConfigError, match="no two-dimensional tensor"):
        read_table(path)
