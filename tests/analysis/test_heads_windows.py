"""Where attention sees a window only, its roles are measured over that."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.analysis.heads_samples import (
    SIZES,
    TREES,
    cards_of,
    lines_of,
    score,
    survey,
    task_of,
)
from torch import Tensor

from heedful.analysis.heads import Line
from heedful.analysis.treebank import read_treebank
from heedful.models.interfaces import AttentionSite


def test_a_rarest_token_beyond_the_window_is_no_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.analysis.heads_counts.COMMON_TOKENS", 4)
    task = task_of({**SIZES, "kind": "transformer", "encoder_layers": 1, "decoder_layers": 1, "attention_window": 1})
    frequencies = torch.full((task.codec.source_size,), 9)
    frequencies[task.codec.encode_source("owl")[0]] = 3

    def make(site: AttentionSite, line: int, queries: int, keys: int) -> Tensor:
        return torch.ones(site.num_heads, queries, keys) / keys

    lines = [Line("the big cat sees the rare owl now", "hund"), Line("owl", "hund")]
    card = survey(task, lines, make, monkeypatch, frequencies=frequencies)[0]
    assert score(card, "rare token").cases == 3  # it, and the words beside it; where it stands alone there is no choice
    assert score(card, "rare token").chance == pytest.approx((1 / 3 + 1 / 3 + 1 / 2) / 3)
    assert score(card, "rare token").baseline == pytest.approx(1 / 3)


@pytest.mark.parametrize(("kind", "window"), [("word", 1), ("character", 2)])
def test_words_beyond_a_window_are_no_case_and_no_chance(
    kind: str, window: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either window reaches the neighbouring words and no others."""
    model = {**SIZES, "kind": "transformer", "encoder_layers": 1, "decoder_layers": 1, "attention_window": window}
    (tmp_path / "t.conllu").write_text(TREES, "utf-8")
    trees = read_treebank(tmp_path / "t.conllu")
    lines = [replace(line, tree=tree) for line, tree in zip(lines_of(), trees, strict=True)]

    def make(site: AttentionSite, line: int, queries: int, keys: int) -> Tensor:
        return torch.ones(site.num_heads, queries, keys) / keys

    card = cards_of(survey(task_of(model, kind=kind), lines, make, monkeypatch), "encoder")[0]
    determiner, subject = score(card, "det: dependent → head"), score(card, "nsubj: dependent → head")
    assert (determiner.cases, determiner.chance) == (2, 1 / 2)  # "the cat" and "a dog" at the start of their lines
    assert (subject.cases, subject.chance) == (3, pytest.approx(1 / 3))
    assert card.score("obj: dependent → head") is None  # three words away


def test_within_a_window_even_is_even_and_chance_is_of_what_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    model = {**SIZES, "kind": "transformer", "encoder_layers": 1, "decoder_layers": 1, "attention_window": 1}
    task = task_of(model)
    assert [each.window for each in task.model.attention_sites()] == [1, 1, None]

    def make(site: AttentionSite, line: int, queries: int, keys: int) -> Tensor:
        weights = torch.ones(site.num_heads, queries, keys)
        if site.window is not None:
            weights = weights.tril(0 if site.kind == "decoder" else 1).triu(-1)
        return weights / weights.sum(-1, keepdim=True)

    cards = survey(task, lines_of(), make, monkeypatch)
    assert all(card.evenness.value == pytest.approx(1.0) and card.is_nearly_uniform for card in cards)
    # A word of the source that has one before it sees that, itself, and what comes next; one of the target two.
    for kind, chance in (("encoder", 1 / 3), ("decoder", 1 / 2)):
        card = cards_of(cards, kind)[0]
        assert score(card, "one back").chance == pytest.approx(chance)
        assert set(card.offsets) == ({-1, 0, 1} if kind == "encoder" else {-1, 0})


def test_local_attention_is_measured_over_what_it_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target word sees the source's word at its own place and those beside it; the window ends with the source."""
    local = {"attention": {"kind": "additive"}, "locality": {"kind": "monotonic", "reach": 1}}
    task = task_of({"kind": "recurrent", "embedding_dim": 6, "hidden_dim": 8, **local})
    (site,) = task.model.attention_sites()
    assert site.is_local

    def make(site: AttentionSite, line: int, queries: int, keys: int) -> Tensor:
        centres = torch.arange(queries).clamp(max=keys - 1)[:, None]
        weights = ((torch.arange(keys) - centres).abs() <= 1).float()[None]
        return weights / weights.sum(-1, keepdim=True)

    (card,) = survey(task, [Line("a cat sees a dog", "sieht hund owl")], make, monkeypatch)
    assert card.evenness.value == pytest.approx(1.0) and card.is_nearly_uniform
    assert card.score("copy") is None
    pairs = [("owl naps", "ein owl"), ("big owl naps sees", "die hund owl"), ("owl naps sees", "die hund owl")]
    (card,) = survey(task, [Line(*each) for each in pairs], make, monkeypatch)
    copied = score(card, "copy")
    assert copied.cases == 2  # the third "owl" is two words from that of the source
    assert copied.chance == pytest.approx((1 / 2 + 1 / 3) / 2)
