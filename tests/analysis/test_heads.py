"""Hand-made attention gets the role it was made for, and the numbers come out as by hand."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.analysis.heads_samples import (
    SIZES,
    SOURCES,
    TARGETS,
    TREES,
    cards_of,
    conllu,
    lines_of,
    moving,
    score,
    survey,
    task_of,
)
from torch import Tensor

from heedful.analysis.alignment_error import GoldLine
from heedful.analysis.heads import Line, survey_heads
from heedful.analysis.treebank import read_treebank
from heedful.core.errors import RequestError
from heedful.models.interfaces import AttentionSite
from heedful.pruning.removal import reduce_task
from heedful.tasks import Task


@pytest.fixture(scope="module")
def transformer() -> Task:
    return task_of({**SIZES, "kind": "transformer", "encoder_layers": 1, "decoder_layers": 1})


@pytest.fixture(scope="module")
def by_letters() -> Task:
    return task_of({**SIZES, "kind": "transformer", "encoder_layers": 1, "decoder_layers": 1}, kind="character")


def test_a_head_that_always_looks_one_back_is_positional(transformer: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    cards = survey(transformer, lines_of(), moving(-1, 1, 0), monkeypatch)
    back, ahead, itself = cards_of(cards, "encoder")
    assert (back.roles[0], ahead.roles[0], itself.roles[0]) == ("one back", "one ahead", "itself")
    assert back.name == "encoder.0:0" and ahead.name == "encoder.0:1"
    # 6 + 3 + 8 words, of which the first of each line has none before it; the last has EOS ahead of it.
    assert (score(back, "one back").cases, score(ahead, "one ahead").cases) == (14, 17)
    assert score(back, "one back").share.value == 1.0
    # Chance: one of 7, 4 and 9 keys (EOS too), weighted by cases.
    assert score(back, "one back").chance == pytest.approx((5 / 7 + 2 / 4 + 7 / 9) / 14)
    assert "one back" in cards_of(cards, "decoder")[0].roles


def test_confidence_and_entropy_by_hand(transformer: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(site: AttentionSite, line: int, queries: int, keys: int) -> Tensor:
        weights = torch.zeros(site.num_heads, queries, keys)
        weights[0] = 1 / keys
        weights[1, :, -1] = 1  # the end of a source, the newest word of a target
        weights[2, :, 0], weights[2, :, -1] = 0.125, 0.375  # lessened, as local attention does
        return weights

    cards = survey(transformer, lines_of(), make, monkeypatch)
    uniform, end, split = cards_of(cards, "encoder")
    sizes = {7: 6, 4: 3, 9: 8}  # keys: words that look
    assert uniform.confidence.value == pytest.approx(sum(n / k for k, n in sizes.items()) / 17)
    assert uniform.evenness.value == pytest.approx(1.0)
    assert uniform.is_nearly_uniform and not end.is_nearly_uniform
    assert end.confidence.value == 0.0  # EOS is left out
    assert end.entropy.value == 0.0 and end.roles[0] == "sink"
    assert split.confidence.value == pytest.approx(0.125)
    assert split.entropy.value == pytest.approx(0.562335, abs=1e-5)
    assert score(end, "sink").chance == pytest.approx(sum(n / k for k, n in sizes.items()) / 17)


def test_the_rarest_token(transformer: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.analysis.heads_counts.COMMON_TOKENS", 4)
    codec = transformer.codec
    frequencies = torch.zeros(codec.source_size, dtype=torch.long)
    for word, count in {"the": 90, "a": 80, "cat": 70, "dog": 60, "big": 50, "sees": 40, "now": 9, "owl": 3}.items():
        frequencies[codec.encode_source(word)[0]] = count
    frequencies[codec.encode_source("naps")[0]] = 60
    frequencies[codec.encode_source("rare")[0]] = 3

    def make(site: AttentionSite, line: int, queries: int, keys: int) -> Tensor:
        weights = torch.full((site.num_heads, queries, keys), 0.01)
        weights[0, :, {0: 2, 1: 2, 2: 6}[line]] = 1.0  # sees, naps, owl
        weights[1, :, 0] = 1.0
        weights[2, :, -1], weights[2, :, 5 % (keys - 1)] = 2.0, 1.0  # EOS above all, which is left out
        return weights / weights.sum(-1, keepdim=True)

    cards = survey(transformer, lines_of(), make, monkeypatch, frequencies=frequencies)
    sharp, first, third = cards_of(cards, "encoder")
    # Rarest: sees (40) of line 1; line 2 has dog and naps (60), one of which is no common one; rare and owl of line 3.
    assert score(sharp, "rare token").cases == 17
    assert score(sharp, "rare token").share.value == 1.0
    assert "rare token" in sharp.roles
    assert score(first, "rare token").share.value == 0.0
    assert score(third, "rare token").share.value == pytest.approx((3 + 8) / 17)
    assert score(sharp, "rare token").chance == pytest.approx((6 / 6 + 3 * 2 / 3 + 8 * 2 / 8) / 17)
    monkeypatch.setattr("heedful.analysis.heads_counts.COMMON_TOKENS", 500)
    unasked = survey(transformer, lines_of(), make, monkeypatch, frequencies=frequencies)
    assert unasked[0].score("rare token") is None


def test_a_writer_looks_back_at_the_rarest_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """A language model is asked from the rarest token on, where it sees another one too."""
    monkeypatch.setattr("heedful.analysis.heads_counts.COMMON_TOKENS", 4)
    writer = task_of({**SIZES, "kind": "transformer_language_model", "num_layers": 1}, "language_modelling")
    texts = ["die katze sieht die owl owl", "hund ein die", "die die"]
    frequencies = torch.zeros(writer.codec.target_size, dtype=torch.long)
    for word, count in {"die": 90, "ein": 80, "katze": 70, "sieht": 60, "owl": 3, "hund": 2}.items():
        (index,) = writer.codec.target_symbols(word)
        frequencies[index] = count

    def make(site: AttentionSite, line: int, queries: int, keys: int) -> Tensor:
        weights = torch.zeros(site.num_heads, queries, keys)
        for query in range(queries):
            weights[0, query, {0: 5, 1: 1, 2: 1}[line] if query >= 5 or line else 0] = 1.0  # BOS is at 0
            weights[1, query, query] = 1.0
            weights[2, query, 0], weights[2, query, min(query, 1)] = 0.6, 0.4  # BOS is left out
        return weights

    lines = [Line(None, text) for text in texts]
    sharp, newest, first = survey(writer, lines, make, monkeypatch, frequencies=frequencies)
    # Both "owl" of the first line; "ein" and "die" after "hund", which sees nothing but itself; the third has none.
    assert score(sharp, "rare token").cases == 4
    assert score(sharp, "rare token").share.value == 1.0
    assert score(newest, "rare token").share.value == 2 / 4
    assert score(first, "rare token").share.value == 2 / 4
    assert score(sharp, "rare token").chance == pytest.approx((1 / 5 + 2 / 6 + 1 / 2 + 1 / 3) / 4)
    # At itself twice; one back from the second "owl" and from "ein"; two back once.
    assert (score(sharp, "rare token").baseline, score(sharp, "rare token").baseline_offset) == (2 / 4, 0)


@pytest.mark.parametrize("task_name", ["transformer", "by_letters"])
def test_a_head_that_follows_the_tree_is_syntactic(
    task_name: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once with words as symbols, once with letters, whose weights are summed and averaged into those of words."""
    task = request.getfixturevalue(task_name)
    (tmp_path / "t.conllu").write_text(TREES, "utf-8")
    trees = read_treebank(tmp_path / "t.conllu")

    def positions(line: int, word: int) -> list[int]:
        if task_name == "transformer":
            return [word]
        units = trees[line].units
        first = len(" ".join(units[:word])) + bool(word)
        return list(range(first, first + len(units[word])))

    def make(site: AttentionSite, line: int, queries: int, keys: int) -> Tensor:
        weights = torch.full((site.num_heads, queries, keys), 1e-3)
        if site.kind != "encoder":
            return weights
        for index, word in enumerate(trees[line].words):
            head = index if word.head is None else word.head
            for query in positions(line, index):
                weights[0, query, positions(line, head)[-1]] = 0.7
                weights[1, query, positions(line, max(index - 1, 0))[0]] = 0.7
        return weights

    lines = [replace(line, tree=tree) for line, tree in zip(lines_of(), trees, strict=True)]
    cards = survey(task, lines, make, monkeypatch)
    follower, back, _ = cards_of(cards, "encoder")
    subject = score(follower, "nsubj: dependent → head")
    assert (subject.cases, subject.share.value) == (3, 1.0)
    assert (subject.baseline, subject.baseline_offset) == (1.0, 1)  # each subject stands right before its verb
    assert "nsubj: dependent → head" not in follower.roles  # nothing that an offset could not do
    direct = score(follower, "obj: dependent → head")
    assert (direct.cases, direct.share.value, direct.baseline) == (2, 1.0, 1.0)
    determiner = score(follower, "det: dependent → head")
    # 1, 2, 1, 2 and 2 words on: the offset 2 is right in 3 of 5.
    assert (determiner.cases, determiner.baseline, determiner.baseline_offset) == (5, 0.6, 2)
    assert "det: dependent → head" in follower.roles
    assert determiner.chance == pytest.approx((2 / 6 + 1 / 3 + 2 / 8) / 5)
    near, far = determiner.by_distance
    assert ((near.first, near.cases, near.baseline), (far.first, far.cases, far.baseline)) == ((1, 2, 0.0), (2, 3, 1.0))
    assert near.share == far.share == 1.0
    assert score(back, "nsubj: head → dependent").share.value == 1.0
    assert score(back, "obj: dependent → head").share.value == 0.0


def test_trees_of_a_source_are_not_asked_of_a_decoder(
    transformer: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without encoder heads nobody can answer: the places of source words are those of other words in a target."""
    (tmp_path / "t.conllu").write_text(TREES, "utf-8")
    trees = read_treebank(tmp_path / "t.conllu")
    lines = [replace(line, tree=tree) for line, tree in zip(lines_of(), trees, strict=True)]
    encoder = [each.path for each in transformer.model.attention_sites() if each.kind == "encoder"]
    pruned = reduce_task(transformer, dict.fromkeys(encoder, ()))
    cards = survey(pruned, lines, moving(-1, 1, 0), monkeypatch)
    assert {each.kind for each in cards} == {"decoder", "cross"}
    assert not [each.name for card in cards for each in card.scores if each.family == "syntactic"]
    assert score(cards_of(cards, "decoder")[0], "previous target word").cases == 8  # what it was asked before


def test_a_head_of_many_is_right_at_any(transformer: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("the", 2, "det"), ("cat", 3, "obj"), ("sees", 0, "root"), ("a", 4 - 1, "obj"), ("big", 3, "obj")]
    (tmp_path / "t.conllu").write_text(conllu([*rows, ("dog", 3, "obj")]), "utf-8")
    (tree,) = read_treebank(tmp_path / "t.conllu")
    cards = survey(transformer, [replace(lines_of()[0], tree=tree)], moving(-1, 2, 0), monkeypatch)
    for card, right in zip(cards_of(cards, "encoder"), (1.0, 1.0, 0.0), strict=True):
        down = score(card, "obj: head → dependent")
        assert (down.cases, down.share.value, down.baseline) == (1, right, 1.0)
        assert down.chance == pytest.approx(4 / 6)


def test_previous_target_word_and_copies(transformer: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(site: AttentionSite, line: int, queries: int, keys: int) -> Tensor:
        if site.kind == "cross":
            weights = torch.full((site.num_heads, queries, keys), 0.01)
            weights[0, :, min(6, keys - 1)] = 1.0  # owl in the third line
            return weights
        return moving(0, -1, -2)(site, line, queries, keys)

    cards = survey(transformer, lines_of(), make, monkeypatch)
    newest, before, _ = cards_of(cards, "decoder")
    previous = score(newest, "previous target word")
    # What is predicted at a place comes after the word read there. The first word has no word before it, and before
    # the second there is one alone: nothing to choose from.
    assert (previous.cases, previous.share.value, previous.baseline) == (3 + 1 + 4, 1.0, None)
    assert "previous target word" in newest.roles and "itself" in newest.roles
    assert score(before, "previous target word").share.value == 0.0
    again = score(before, "earlier same word")  # "die" and "owl" of the third line, 3 and 1 back from what is predicted
    assert (again.cases, again.share.value) == (2, 0.0)
    assert score(newest, "earlier same word").share.value == 0.5
    copying, other, _ = cards_of(cards, "cross")
    assert (score(copying, "copy").cases, score(copying, "copy").share.value) == (2, 1.0)
    assert score(other, "copy").share.value == 0.0


def test_alignment_and_its_shift(transformer: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target words 0 to 4 are aligned with the source words 0, 1, 2, 3 and 5; 4 is possible for the last."""
    sure = frozenset({(0, 0), (1, 1), (2, 2), (3, 3), (5, 4)})
    gold = GoldLine(sure, sure | {(4, 4)})
    words = tuple(SOURCES[0].split()), tuple(TARGETS[0].split())
    line = Line(SOURCES[0], TARGETS[0], None, *words, gold)
    cards = survey(transformer, [line], moving(0, -1, 1), monkeypatch)
    aligned, shifted, neither = cards_of(cards, "cross")
    assert aligned.roles[:2] == ("same place", "alignment")
    assert score(aligned, "alignment").share.value == 1.0  # 4 is possible
    assert (score(shifted, "alignment of the previous word").cases, shifted.roles) == (
        4,
        ("one back", "alignment of the previous word"),
    )
    assert score(neither, "alignment").share.value == pytest.approx(0.2)  # 5 alone


def test_lines_of_one_word_and_blank_lines(transformer: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [Line("cat", "hund"), Line("", "")]
    for card in survey_heads(transformer, lines):
        assert not card.roles
        assert all(0 <= each.share.value <= 1 for each in card.scores)
    for card in survey_heads(transformer, [Line("", "")]):
        assert (card.confidence, card.scores, card.roles) == (None, (), ())


def test_a_batch_counts_as_its_lines(by_letters: Task, tmp_path: Path) -> None:
    (tmp_path / "t.conllu").write_text(TREES, "utf-8")
    trees = read_treebank(tmp_path / "t.conllu")
    lines = [replace(line, tree=tree) for line, tree in zip(lines_of(), trees, strict=True)]
    together = survey_heads(by_letters, lines, min_cases=1)
    alone = [survey_heads(by_letters, [line], min_cases=1) for line in lines]
    for index, card in enumerate(together):
        for name in ("det: dependent → head", "det: head → dependent", "sink"):
            parts = [each for one in alone if (each := one[index].score(name)) is not None]
            whole = card.score(name)
            if whole is None:
                assert not parts
                continue
            assert whole.cases == sum(each.cases for each in parts)
            hits = sum(each.cases * each.share.value for each in parts)
            assert whole.cases * whole.share.value == pytest.approx(hits)
        entropies = [one[index].entropy.value for one in alone]
        assert min(entropies) <= card.entropy.value <= max(entropies)


def test_other_models(tmp_path: Path) -> None:
    writer = task_of({**SIZES, "kind": "transformer_language_model", "num_layers": 1}, "language_modelling")
    rows = [("die", 2, "det"), ("katze", 3, "nsubj"), ("sieht", 0, "root"), ("einen", 5, "det"), ("hund", 3, "obj")]
    (tmp_path / "t.conllu").write_text(conllu(rows), "utf-8")
    (tree,) = read_treebank(tmp_path / "t.conllu")
    card = survey_heads(writer, [Line(None, TARGETS[0], tree)], min_cases=1)[0]
    assert card.score("obj: dependent → head").cases == 1  # the verb was read before
    assert card.score("nsubj: dependent → head") is None  # the verb comes later
    judge = task_of({"kind": "classifier", "pooling": "attention"}, "classification",
                    data={"train": {"kind": "tsv", "path": "x", "source": "s", "label": "t"}})  # fmt: skip
    (pooling,) = survey_heads(judge, [Line(SOURCES[0], None), Line("cat", None)])
    assert pooling.kind == "pooling" and pooling.confidence.value > 0
    assert not pooling.offsets
    recurrent = task_of({"kind": "recurrent", "embedding_dim": 6, "hidden_dim": 8, "attention": {"kind": "additive"}})
    (cross,) = survey_heads(recurrent, lines_of())
    assert cross.kind == "cross" and cross.score("copy").cases == 2
    deaf = task_of({"kind": "classifier", "pooling": "max"}, "classification",
                   data={"train": {"kind": "tsv", "path": "x", "source": "s", "label": "t"}})  # fmt: skip
    with pytest.raises(RequestError, match="no attention"):
        survey_heads(deaf, [Line(SOURCES[0], None)])


def test_where_chance_is_half_a_role_takes_more_than_half(transformer: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a source of one word, word and end are seen: a look at random falls on the end half of the time."""

    def make(site: AttentionSite, line: int, queries: int, keys: int) -> Tensor:
        weights = torch.zeros(site.num_heads, queries, keys)
        for head, num_at_end in enumerate((11, 13, 0)):
            weights[head, :, -1 if line < num_at_end else 0] = 1.0
        return weights

    just_half, more, none = cards_of(survey(transformer, [Line("cat", "hund")] * 20, make, monkeypatch), "encoder")
    assert (score(just_half, "sink").chance, score(just_half, "sink").share.value) == (0.5, pytest.approx(0.55))
    assert "sink" not in just_half.roles and "sink" not in none.roles
    assert "sink" in more.roles


def test_a_blank_line_is_nothing_to_a_classifier() -> None:
    judge = task_of({"kind": "classifier", "pooling": "attention"}, "classification",
                    data={"train": {"kind": "tsv", "path": "x", "source": "s", "label": "t"}})  # fmt: skip
    filled = [Line(SOURCES[0], None), Line("cat", "b")]
    (card,) = survey_heads(judge, [filled[0], Line("", None), filled[1], Line("", "")])
    (expected,) = survey_heads(judge, filled)
    assert card.confidence.value == pytest.approx(expected.confidence.value)
    assert [each.cases for each in card.scores] == [each.cases for each in expected.scores]
