"""Lexicon, model, its file, and what is learnt from pairs of lines."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load, save

from heedful.analysis.alignment_chain import FARTHEST
from heedful.analysis.alignment_learning import MAX_WORDS, NUM_ROUNDS, learn
from heedful.analysis.alignment_lexicon import RAREST, Lexicon, Vocabulary
from heedful.analysis.alignment_model import MAX_CELLS, AlignmentModel, Line, links_above
from heedful.analysis.alignment_model_file import from_bytes, to_bytes
from heedful.core.errors import DataError

WORDS = {"eins": "one", "zwei": "two", "drei": "three", "vier": "four", "fünf": "five", "Sechs": "SIX"}


def even_line(source: Sequence[str], target: Sequence[str]) -> Line:
    return Line(source, target, torch.full((len(target), len(source)), 1 / max(len(source), 1)))


def turned_line(rng: random.Random) -> Line:
    """Return some words and their translations, the last first; attention knows nothing."""
    source = rng.sample(list(WORDS), rng.randint(1, 5))
    return even_line(source, [WORDS[word] for word in reversed(source)])


@pytest.fixture(scope="module")
def learnt() -> AlignmentModel:
    rng = random.Random(2)
    return learn([turned_line(rng) for _ in range(300)])


def test_words_and_jumps_are_learnt_from_pairs_alone(learnt: AlignmentModel) -> None:
    assert set(learnt.source.words) == {word.casefold() for word in WORDS}
    lexicon = learnt.lexicon
    for german, english in WORDS.items():
        (source,), (target,) = learnt.source.numbers([german]), learnt.target.numbers([english])
        count = float(lexicon.counted(lexicon.find(torch.tensor([[source]]), torch.tensor([[target]]))))
        assert count > 0.95 * lexicon.source_totals[source] and count > 0.95 * lexicon.target_totals[target]
    assert int(learnt.jumps[0].argmax()) == int(learnt.jumps[1].argmax()) == FARTHEST - 1
    (agreement,) = learnt.agreement([even_line(["eins", "zwei", "SECHS"], ["six", "Two", "one"])])
    assert links_above(agreement, 0.5) == {(0, 2), (1, 1), (2, 0)}


def test_attention_tells_of_words_that_were_never_seen(learnt: AlignmentModel) -> None:
    weights = torch.tensor([[0.9, 0.1], [0.1, 0.9]])
    for each, wanted in ((weights, {(0, 0), (1, 1)}), (weights.flip(0), {(0, 1), (1, 0)})):
        (agreement,) = learnt.agreement([Line(["neu", "fremd"], ["new", "strange"], each)])
        assert links_above(agreement, 0.3) == wanted


def test_what_was_cut_has_no_links_and_costs_nothing(learnt: AlignmentModel) -> None:
    """As if the words that follow the last one with any weight were not there; many of them would not fit in memory."""
    short = Line(["eins", "zwei"], ["two", "one"], torch.tensor([[0.5, 0.5], [0.5, 0.5]]))
    weights = torch.zeros(3, 200_000)
    weights[:2, :2] = 0.5
    long = Line([*short.source, *["drei"] * 199_998], [*short.target, "three"], weights)
    whole, cut = learnt.agreement([long, short])
    assert whole.shape == (3, 200_000) and torch.equal(whole[:2, :2], cut)
    assert links_above(whole, 0.0) == links_above(cut, 0.0) and links_above(cut, 0.5) == {(0, 1), (1, 0)}


def test_known_words_that_never_stood_together_are_left_to_attention() -> None:
    pairs = [("eins", "one"), ("zwei", "two"), ("drei", "three")] * 2
    model = learn([even_line([source], [target]) for source, target in pairs])
    weights = torch.tensor([[0.95, 0.05], [0.05, 0.95]])
    (agreement,) = model.agreement([Line(["eins", "zwei"], ["three", "two"], weights)])
    assert links_above(agreement, 0.3) == {(0, 0), (1, 1)}


def test_attention_changes_what_is_learnt() -> None:
    """Two words that always stand together are told apart by attention alone, whichever way it points."""
    for weights, wanted in ((torch.eye(2), {(0, 0), (1, 1)}), (torch.eye(2).flip(0), {(0, 1), (1, 0)})):
        model = learn([Line(["a", "b"], ["x", "y"], weights)] * 20)
        (agreement,) = model.agreement([even_line(["a", "b"], ["x", "y"])])
        assert links_above(agreement, 0.5) == wanted


def test_numbers_that_are_none_are_not_learnt_from() -> None:
    with pytest.raises(ArithmeticError, match="not finite"):
        learn([Line(["a", "b"], ["x"], torch.tensor([[float("nan"), 1.0]]))])


def test_lines_are_told_alike_in_any_company(learnt: AlignmentModel) -> None:
    rng = random.Random(4)
    lines = [turned_line(rng) for _ in range(40)]
    lines[3:3] = [even_line([], ["one"]), even_line(["eins"], []), even_line([], [])]
    lines.append(even_line(["eins", "zwei"] * 400, ["two", "one"] * 100))  # alone more than a batch takes
    together = learnt.agreement(lines)
    assert [tuple(each.shape) for each in together] == [(len(each.target), len(each.source)) for each in lines]
    for line, found in zip(lines, together, strict=True):
        (alone,) = learnt.agreement([line])
        torch.testing.assert_close(found, alone, rtol=1e-4, atol=1e-6)
    several = [each.weights.numel() for each in learnt.batches(lines[:-1] * 200)]
    assert len(several) > 1 and MAX_CELLS / 2 < max(several) <= MAX_CELLS


def test_rounds_are_told_and_long_lines_left_out() -> None:
    told: list[int] = []
    long_line = even_line(["lang"] * (MAX_WORDS + 1), ["long"])
    model = learn([even_line(["eins"], ["one"]), long_line, even_line([], ["one"])], tell=told.append)
    assert told == list(range(1, NUM_ROUNDS + 1)) and model.source.words == ("eins",)
    for lines in ([], [long_line], [even_line(["eins"], [])]):
        with pytest.raises(DataError, match="no pair of lines with 1 to 100 words on both sides"):
            learn(lines)


def test_a_lexicon_finds_its_pairs() -> None:
    lexicon = Lexicon(torch.tensor([1, 4, 6]), torch.tensor([0.5, 0.1, 2.0]), 2, 3)
    torch.testing.assert_close(lexicon.source_totals, torch.tensor([0.5, 2.1, 0.0]))
    torch.testing.assert_close(lexicon.target_totals, torch.tensor([0.1, 0.5, 2.0, 0.0]))
    places = lexicon.find(torch.tensor([[0, 1]]), torch.tensor([[0, 1, 2, 3]]))
    assert places.tolist() == [[[3, 1], [0, 3], [3, 2], [3, 3]]]
    torch.testing.assert_close(lexicon.counted(places)[0, :2], torch.tensor([[0.0, 0.1], [0.5, 0.0]]))
    empty = lexicon.pruned(3.0)
    assert lexicon.pruned(0.5).codes.tolist() == [1, 6] and len(empty) == 0
    assert empty.counted(empty.find(torch.tensor([[0]]), torch.tensor([[0]]))).tolist() == [[[0.0]]]


def test_a_vocabulary_counts_words_whatever_their_capitals() -> None:
    words = Vocabulary.of([["Der", "der", "die"], ["DIE", "das"]])
    assert words.words == ("der", "die", "das") and words.numbers(["DAS", "dem"]) == [2, 3]
    torch.testing.assert_close(words.shares, torch.tensor([0.4, 0.4, 0.2, RAREST]))


def test_a_file_gives_back_what_was_written(learnt: AlignmentModel) -> None:
    content = to_bytes(learnt)
    again = from_bytes(content)
    assert again.source.words == learnt.source.words and again.target.words == learnt.target.words
    assert torch.equal(again.lexicon.codes, learnt.lexicon.codes) and torch.equal(again.jumps, learnt.jumps)
    assert to_bytes(again) == content
    line = even_line(["drei", "eins"], ["one", "three"])
    assert torch.equal(again.agreement([line])[0], learnt.agreement([line])[0])


def test_a_damaged_file_is_told(learnt: AlignmentModel) -> None:
    whole = load(to_bytes(learnt))
    for content, message in (
        (b"", "not safetensors"),
        (to_bytes(learnt)[:-9], "not safetensors"),
        (save({"codes": whole["codes"]}), "not the tensors source_words"),
        (save(whole | {"counts": whole["counts"].double()}), "not the tensors"),
        (save(whole | {"source_words": whole["source_words"][:-6]}), "`source_shares` are not one probability"),
        (save(whole | {"target_words": torch.full((3,), 255, dtype=torch.uint8)}), "can't decode"),
        (save(whole | {"source_words": torch.frombuffer(bytearray(b"a a b"), dtype=torch.uint8)}), "stands twice"),
        (save(whole | {"target_shares": whole["target_shares"] * 0}), "`target_shares` are not one probability"),
        (save(whole | {"codes": whole["codes"].flip(0)}), "not pairs of these words in order"),
        (save(whole | {"codes": whole["codes"] + 10_000}), "not pairs of these words in order"),
        (save(whole | {"source_words": whole["source_words"][None]}), "`source_words` are not one row of bytes"),
        (save(whole | {"codes": whole["codes"][:-1]}), "`counts` are not one number for each of"),
        (save(whole | {"counts": whole["counts"] * float("nan")}), "`counts` are not one number for each of"),
        (save(whole | {"counts": -whole["counts"]}), "`counts` are not one number for each of"),
        (save(whole | {"jumps": whole["jumps"] * 1e-30}), "`jumps` are not two rows"),
        (save(whole | {"jumps": whole["jumps"][:1]}), "`jumps` are not two rows"),
        (save(whole | {"jumps": whole["jumps"] * 0}), "`jumps` are not two rows"),
    ):
        with pytest.raises(ValueError, match=message):
            from_bytes(content)


def test_an_empty_lexicon_leaves_all_to_attention(learnt: AlignmentModel) -> None:
    nothing = replace(learnt, lexicon=learnt.lexicon.pruned(1e9))
    again = from_bytes(to_bytes(nothing))
    weights = torch.tensor([[0.9, 0.1], [0.1, 0.9]])
    (agreement,) = again.agreement([Line(["neu", "fremd"], ["new", "strange"], weights)])
    assert links_above(agreement, 0.3) == {(0, 0), (1, 1)}
