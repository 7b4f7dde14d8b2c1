"""What is added to cards and told of them, on the terminal and on the page."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.analysis.heads_samples import SIZES, TARGETS, task_of

from heedful.analysis.alignment_error import GoldLine
from heedful.analysis.bootstrap import Estimate
from heedful.analysis.heads import Line
from heedful.analysis.heads_card import ByDistance, HeadCard, RoleFamily, Score
from heedful.analysis.heads_summary import HeadsReport, format_comparison, format_report, summary_rows
from heedful.analysis.treebank import read_treebank
from heedful.core.runtime import RuntimeConfig
from heedful.models.interfaces import AttentionSite
from heedful.pruning.removal import reduce_task
from heedful.runs import heads as heads_module
from heedful.runs.config import RunConfig
from heedful.runs.heads import add_scores, count_frequencies, heads_text
from heedful.runs.heads_page import write_heads_page
from heedful.runs.loaded import LoadedModel
from heedful.tasks import Task
from heedful.training import TrainingConfig

UP, DOWN = "dependent → head", "head → dependent"
TREE = "1\tthe\t_\t_\t_\t_\t2\tdet\t_\t_\n2\tcat\t_\t_\t_\t_\t0\troot\t_\t_\n\n"


def score(family: RoleFamily, share: float) -> Score:
    return Score(family, family, 100, Estimate(share, share, share), None, None, 0.1)


def card(*scores: Score, head: int = 1) -> HeadCard:
    return HeadCard(
        site="decoder.layers.0.cross_attention",
        kind="cross",
        layer=0,
        head=head,
        confidence=None,
        entropy=None,
        evenness=None,
        offsets={},
        scores=scores,
        roles=tuple(each.name for each in scores),
    )


def relation(name: str, share: float, baseline: float = 0.34) -> Score:
    """Return a syntactic score that is right more often at distance 1 than from 9 on."""
    near = ByDistance(1, 1, 60, share + 0.1, 0.65, 0.043)
    far = ByDistance(9, None, 40, share - 0.15, 0.02, 0.021)
    return Score(name, "syntactic", 100, Estimate(share, share - 0.02, share + 0.03), baseline, 1, 0.057, (near, far))


def reader(*scores: Score, head: int = 0, roles: tuple[str, ...] = ()) -> HeadCard:
    """Return a card of an encoder's head."""
    found = card(*sorted(scores, key=lambda each: -each.gain), head=head)
    figures = [Estimate(value, value - 0.04, value + 0.05) for value in (0.41, 1.73, 0.62)]
    sure, entropy, even = figures
    return replace(
        found, site="encoder.layers.0", kind="encoder", confidence=sure, entropy=entropy, evenness=even, roles=roles
    )


def report(*cards: HeadCard, name: str = "mine") -> HeadsReport:
    return HeadsReport(name, f"runs/{name}", 7, "none", "the text itself", 50, cards)


def test_roles_stay_in_their_order_whichever_text_they_come_from() -> None:
    own, other = card(score("sink", 0.6), score("copy", 0.9)), card(score("alignment", 0.7), score("positional", 0.95))
    both = add_scores(own, other, ("alignment",))
    assert [each.name for each in both.scores] == ["copy", "alignment", "sink"]  # by how much they are above the mark
    assert both.roles == ("sink", "alignment", "copy")  # the most telling first


def test_the_terminal_shows_every_figure_beside_what_it_is_held_against() -> None:
    subject = f"nsubj: {UP}"
    cards = [reader(relation(subject, 0.55), roles=(subject,)), reader(relation(subject, 0.31), head=1)]
    told = format_report(report(*cards))
    assert "confidence, 95 %" in told and "entropy, nats" in told
    assert re.search(r"^encoder\.0:0 +0\.41 \(0\.37 to 0\.46\) +1\.73 +0\.62  nsubj", told, re.MULTILINE)
    assert f"{subject} 55.0% (53.0% to 58.0%, baseline 34.0%, chance 5.7%)" in told
    assert f"no role; most: {subject} 31.0% (29.0% to 34.0%, baseline 34.0%, chance 5.7%)" in told
    # The best head for subjects by distance, and only that.
    assert told.count("by distance") == 1
    assert f"{subject}, by distance: encoder.0:0\n" in told
    assert "  1           65.0% (baseline 65.0%, chance 4.3%) of 60 cases\n" in told
    assert "  9 and more  40.0% (baseline 2.0%, chance 2.1%) of 40 cases\n" in told
    assert "--json" in heads_text([report(*cards)])


def test_a_score_without_a_baseline_is_held_against_chance_alone() -> None:
    told = format_report(report(card(score("sink", 0.6))))
    assert "sink 60.0% (60.0% to 60.0%, chance 10.0%)" in told and "baseline" not in told


def test_models_are_compared_direction_by_direction() -> None:
    """The baseline of an adjective's noun is not that of a noun's adjective, whichever a model is better at."""
    up, down = f"amod: {UP}", f"amod: {DOWN}"
    one = report(reader(relation(up, 0.73, 0.784), relation(down, 0.5, 0.861)))
    two = report(reader(relation(up, 0.4, 0.784), relation(down, 0.97, 0.861), roles=(down,)), name="other")
    rows = [dict(summary_rows(each)) for each in (one, two)]
    assert [each[up][:28] for each in rows] == ["0; most: encoder.0:0: 73.0% ", "0; most: encoder.0:0: 40.0% "]
    assert all("baseline 78.4%" in each[up] and "baseline 86.1%" in each[down] for each in rows)
    assert rows[1][down].startswith("1 (encoder.0:0); most: encoder.0:0: 97.0%")
    assert rows[0][f"obj: {UP}"] == "not measured"
    assert re.search(rf"^{down}\n  mine +0; most: .*\n  other +1 ", format_comparison([one, two]), re.MULTILINE)


def test_the_page_shows_both_marks_all_distances_of_main_relations_and_what_is_left_out(tmp_path: Path) -> None:
    others = [relation(f"r{number}: {UP}", 0.9 - number / 100) for number in range(40)]
    worst = relation(f"nsubj: {DOWN}", 0.2)
    write_heads_page([report(reader(*others, worst, card(score("sink", 0.6)).scores[0]))], tmp_path / "heads.html")
    page = (tmp_path / "heads.html").read_text("utf-8")
    assert "<dt>confidence</dt><dd>0.41 (0.37 to 0.46)</dd>" in page
    assert "<dt>entropy, nats</dt><dd>1.73 (1.69 to 1.78)</dd>" in page
    assert "<small>baseline 34.0%, chance 5.7%, 100 cases</small>" in page
    assert page.count('<i class="tick" style="--b:34.0%"></i><i class="tick chance" style="--b:5.7%"></i>') == 5
    assert re.findall(r"<caption>(.*?)</caption>", page) == [*(f"r{each}: {UP}" for each in range(5)), worst.name]
    assert f"<td>{worst.name}</td>" in page  # among the next scores, though it is the last of 42
    assert "12 more scores are there too" in page and "<code>--json</code>" in page


def site_paths(task: Task, kind: str) -> list[str]:
    sites: list[AttentionSite] = task.model.attention_sites()
    return [each.path for each in sites if each.kind == kind]


@pytest.fixture
def pair(tmp_path: Path) -> Line:
    (tmp_path / "t.conllu").write_text(TREE, "utf-8")
    (tree,) = read_treebank(tmp_path / "t.conllu")
    sure = frozenset({(0, 0), (1, 1)})
    return Line("the cat", "die katze", tree, ("the", "cat"), ("die", "katze"), GoldLine(sure, sure))


def model_of(task: Task) -> LoadedModel:
    """Return a task as if it had been loaded."""
    config = RunConfig(task.config, TrainingConfig(max_steps=1), RuntimeConfig())
    return LoadedModel(Path("runs/mine"), config, task)


def describe(task: Task, line: Line, *, with_gold: bool) -> HeadsReport:
    return heads_module._describe(model_of(task), "mine", [line], [line] if with_gold else None, 1)


def test_what_nobody_is_left_to_ask_is_told(pair: Line) -> None:
    whole = task_of({**SIZES, "kind": "transformer", "encoder_layers": 1, "decoder_layers": 1})
    gone = [*site_paths(whole, "encoder"), *site_paths(whole, "cross")]
    found = describe(reduce_task(whole, dict.fromkeys(gone, ())), pair, with_gold=True)
    assert found.notes[:2] == (
        "nobody was asked about the dependency trees, for every encoder head was pruned away",
        "nobody was asked about the gold alignments, for every cross head was pruned away",
    )
    assert {each.kind for each in found.cards} == {"decoder"}
    recurrent = task_of({"kind": "recurrent", "embedding_dim": 6, "hidden_dim": 8, "attention": {"kind": "additive"}})
    told = describe(recurrent, pair, with_gold=True).notes
    assert told[0] == "nobody was asked about the dependency trees, for the model never had encoder heads"
    asked = describe(whole, pair, with_gold=True).notes
    assert not [each for each in asked if "nobody" in each]


def test_a_language_model_counts_the_symbols_of_the_text_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    writer = task_of({**SIZES, "kind": "transformer_language_model", "num_layers": 1}, "language_modelling")
    whole = task_of({**SIZES, "kind": "transformer", "encoder_layers": 1, "decoder_layers": 1})
    lines = [Line("a dog", TARGETS[0]), Line("dog", "die die"), Line("", "")]

    def frequencies(task: Task) -> tuple[torch.Tensor, str]:
        return count_frequencies(task, task.config.data.train, lines)

    for is_there in (False, True):
        if is_there:
            Path("x").write_text("s\tt\ndog dog\tkatze\ndog\tdie\n", "utf-8")
        counts, told = frequencies(writer)
        assert counts[writer.codec.target_symbols("die")[0]] == (1 if is_there else 3)
        assert int(counts.sum()) == (2 if is_there else 7)
        assert told.startswith("2 lines of the training data" if is_there else "the text itself")
        counts, _ = frequencies(whole)
        assert counts[whole.codec.encode_source("dog")[0]] == (3 if is_there else 2)
