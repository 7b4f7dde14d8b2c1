"""Links out of weights, views joined, errors counted, files read: by hand, and against plain definitions."""

import gzip
import itertools
import random
from pathlib import Path

import pytest
import torch

from heedful.analysis.alignment import SYMMETRISATIONS, Links, diagonal, symmetrise, views
from heedful.analysis.alignment_error import GoldLine, count_errors
from heedful.analysis.alignment_files import check_range, format_links, parse_links, read_alignments, read_gold
from heedful.core.errors import ConfigError, DataError

TABLE = "set\tid\tsrc\ttgt\tsure\tpossible\ntrial\t1\ta b\tx y z\t0-0\t1-2 1-1\ntest\t2\ta\tx\t0-0\t\n"


def test_two_views_of_one_matrix() -> None:
    weights = torch.tensor([[0.75, 0.125], [0.5, 0.25], [0.125, 0.1875]])
    assert views(weights) == ({(0, 0), (0, 1), (1, 2)}, {(0, 0), (1, 1)})
    assert views(weights, 0.25) == ({(0, 0), (0, 1)}, {(0, 0)})
    assert views(weights[:0]) == views(weights[:, :0]) == (frozenset(), frozenset())


def test_views_joined_by_hand() -> None:
    forward = frozenset({(0, 0), (1, 1), (1, 2), (4, 4)})
    backward = frozenset({(0, 0), (1, 1), (2, 2), (5, 6)})
    joined = {how: symmetrise(forward, backward, how) for how in SYMMETRISATIONS}
    both = {(0, 0), (1, 1)}
    assert joined["target"] == forward and joined["source"] == backward
    assert joined["intersection"] == both and joined["union"] == forward | backward
    # (1, 2) touches (1, 1) and serves the target word 2; then (2, 2) touches it and serves the source word 2.
    assert joined["grow-diag"] == both | {(1, 2), (2, 2)}
    assert joined["grow-diag-final"] == joined["grow-diag-final-and"] == forward | backward
    # Both words of (2, 2) have none; of (1, 2) one has.
    assert joined["grow-diag-strict"] == both | {(2, 2)}
    assert joined["grow-diag-strict-final"] == both | {(2, 2), (4, 4), (5, 6)}


def test_final_takes_what_serves_one_word_and_final_and_what_serves_two() -> None:
    forward, backward = frozenset({(0, 0), (0, 3)}), frozenset({(0, 0), (5, 5)})
    assert symmetrise(forward, backward, "grow-diag") == {(0, 0)}
    assert symmetrise(forward, backward, "grow-diag-final") == {(0, 0), (0, 3), (5, 5)}
    assert symmetrise(forward, backward, "grow-diag-final-and") == {(0, 0), (5, 5)}


def drawn(generator: random.Random) -> tuple[Links, Links]:
    forward = {(generator.randrange(7), target) for target in range(5) if generator.random() < 0.8}
    return frozenset(forward), frozenset((source, generator.randrange(5)) for source in range(7))


def test_symmetrisations_lie_between_intersection_and_union() -> None:
    generator = random.Random(5)
    for _ in range(60):
        forward, backward = drawn(generator)
        joined = {how: symmetrise(forward, backward, how) for how in SYMMETRISATIONS}
        order = ["intersection", "grow-diag-strict", "grow-diag-strict-final", "union"]
        assert all(joined[low] <= joined[high] for low, high in itertools.pairwise(order))
        for last in ("grow-diag-final", "grow-diag-final-and"):
            order = ["intersection", "grow-diag", last, "union"]
            assert all(joined[low] <= joined[high] for low, high in itertools.pairwise(order))
        sources, targets = zip(*forward | backward, strict=True)
        assert {source for source, _ in joined["grow-diag-final"]} == set(sources)
        assert {target for _, target in joined["grow-diag-final"]} == set(targets)


def test_errors_by_hand() -> None:
    gold = [
        GoldLine(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 1)})),
        GoldLine(frozenset(), frozenset()),
    ]
    errors = count_errors([frozenset({(0, 0), (2, 1), (3, 3)}), frozenset({(0, 0)})], gold)
    assert (errors.num_links, errors.num_sure, errors.num_in_sure, errors.num_in_possible) == (4, 2, 1, 2)
    assert errors.precision == 2 / 4 and errors.recall == 1 / 2
    assert errors.aer == 1 - (1 + 2) / (4 + 2)
    assert errors.to_text() == "AER 50.00, precision 50.00, recall 50.00 (4 links, 2 sure)"
    with pytest.raises(ValueError, match="longer"):
        count_errors([frozenset()], gold)


def test_no_link_at_all_is_all_wrong_and_nothing_asked_is_nothing_wrong() -> None:
    sure = frozenset({(0, 0)})
    assert count_errors([frozenset()], [GoldLine(sure, sure)]).aer == 1
    assert count_errors([frozenset()], [GoldLine(frozenset(), sure)]).aer == 0
    assert count_errors([sure], [GoldLine(sure, sure)]).aer == 0


def test_the_diagonal() -> None:
    assert diagonal(3, 3) == {(0, 0), (1, 1), (2, 2)}
    assert diagonal(2, 5) == {(0, 0), (0, 1), (1, 2), (1, 3), (1, 4)}
    assert diagonal(5, 2) == {(1, 0), (3, 1)}
    assert diagonal(0, 2) == diagonal(2, 0) == frozenset()


def test_lines_come_back() -> None:
    links = frozenset({(10, 2), (2, 11), (2, 3)})
    assert format_links(links) == "2-3 2-11 10-2"
    assert parse_links(format_links(links)) == (links, frozenset())
    assert parse_links("0-1 2p0 1?1") == ({(0, 1)}, {(2, 0), (1, 1)})
    assert parse_links("1-2", is_one_based=True) == ({(0, 1)}, frozenset())


@pytest.mark.parametrize("word", ["0", "0-", "a-b", "0-1-2", "-1-0", "0–1", "١-0"])
def test_what_is_no_link_is_named(tmp_path: Path, word: str) -> None:
    (tmp_path / "links").write_text(f"0-0\n\n0-0 {word}\n", "utf-8")
    with pytest.raises(DataError, match=f"links:3: `{word}` is no link"):
        read_alignments(tmp_path / "links")


def test_gold_tables(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "gold.tsv.gz", "wt") as file:
        file.write(TABLE)
    gold = read_gold(tmp_path / "gold.tsv.gz")
    assert gold[0] == GoldLine(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2), (1, 1)}), "a b", "x y z")
    assert read_gold(tmp_path / "gold.tsv.gz", split="test") == gold[1:]
    with pytest.raises(ConfigError, match=r"no set `tset`. Did you mean `test`"):
        read_gold(tmp_path / "gold.tsv.gz", split="tset")


def test_gold_lines(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("1-1 2p2\n\n", "utf-8")
    assert read_gold(tmp_path / "gold", is_one_based=True) == [
        GoldLine(frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)})),
        GoldLine(frozenset(), frozenset()),
    ]
    with pytest.raises(ConfigError, match="Leave out `--split`"):
        read_gold(tmp_path / "gold", split="test")


def test_gold_that_counts_otherwise_is_told(tmp_path: Path) -> None:
    (tmp_path / "gold.tsv").write_text(TABLE.replace("1-2", "2-3"), "utf-8")
    message = r"gold.tsv:2: link 2-3 \(counted from 0\) lies outside the source, which has 2 words.*--one-based"
    with pytest.raises(DataError, match=message):
        read_gold(tmp_path / "gold.tsv")
    with pytest.raises(DataError, match=r"link 0-0: words were said to count from 1. Leave out `--one-based`"):
        read_gold(tmp_path / "gold.tsv", is_one_based=True)
    with pytest.raises(DataError, match="lies outside the target, which has 1 words"):
        check_range(frozenset({(0, 1)}), "a b", "x", "f", 1)


def test_a_table_without_links(tmp_path: Path) -> None:
    (tmp_path / "gold.tsv").write_text("src\ttarget\tsure\na\tb\t0-0\n", "utf-8")
    with pytest.raises(DataError, match=r"no column `tgt`. Did you mean `target`"):
        read_gold(tmp_path / "gold.tsv")
