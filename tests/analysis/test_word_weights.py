"""Cross-attention between words: symbols find their words, shifts are the right step, choices find the right head."""

from typing import Any

import pytest
import torch

from heedful.analysis.alignment_choice import (
    AlignedHead,
    AlignmentChoice,
    JointChoice,
    choose,
    choose_by_agreement,
    choose_joint,
    default_choice,
    head_sets,
)
from heedful.analysis.alignment_error import GoldLine
from heedful.analysis.record import record
from heedful.analysis.word_weights import HeadName, WordWeights, cross_sites, read_word_weights, word_of_symbols
from heedful.core.config import parse_config
from heedful.core.errors import RequestError
from heedful.models.interfaces import AttentionSite
from heedful.tasks import TASKS, Task, task_class
from heedful.tasks.rows import stack_rows
from heedful.text import Codec
from heedful.text.tokenizer import UNK_TEXT
from heedful.text.unread import Unread

PAIRS = [("ab  cab", "bac ba c"), ("b", "b"), (" a b c", "c b "), ("", "cb")]
DATA = {"train": {"kind": "tsv", "path": "x", "source": "s", "target": "t"}}
SIZES = {"model_dim": 12, "num_heads": 3, "inner_dim": 10, "encoder_layers": 1, "decoder_layers": 2, "dropout": 0.3}


def task_of(model: dict[str, Any], **text: Any) -> Task:
    values = {"task": "translation", "data": DATA, "model": model, "text": {"source": {"kind": "character"}, **text}}
    config = parse_config(TASKS["translation"].config_class, values)
    torch.manual_seed(4)
    return task_class(config)(config, Codec.train(config.text, PAIRS))


@pytest.fixture(scope="module")
def task() -> Task:
    return task_of({"kind": "transformer", **SIZES})


@pytest.mark.parametrize(
    "source", [{"kind": "character"}, {"kind": "byte"}, {"kind": "word"}, {"kind": "subword", "vocab_size": 30}]
)
def test_every_symbol_finds_its_word(source: dict[str, Any]) -> None:
    codec = task_of({"kind": "transformer", **SIZES}, source=source).codec
    text = " ab  ca? ü b"
    owners = word_of_symbols(text, codec.source.encode)
    assert len(owners) == len(codec.source.encode(text))
    for word, expected in enumerate(text.split()):
        ids = [each for each, owner in zip(codec.source.encode(text), owners, strict=True) if owner == word]
        assert ids, f"{expected!r} has no symbol"
        decoded = codec.source.decode(ids).strip()
        assert decoded.startswith("".join(letter for letter in expected if letter in "abc")) or decoded == UNK_TEXT
    assert owners == sorted(owners)


def test_weights_of_words_are_sums_and_means_of_those_of_symbols(task: Task) -> None:
    (words,) = read_word_weights(task, PAIRS[:1])
    batch = stack_rows([task.encode(task.example_of(*PAIRS[0], 1))])
    with task.inference():
        maps = {each.site.path: each.weights for each in record(task.model, batch).maps(0)}
    site = cross_sites(task)[1]
    weights = maps[site.path]
    row = words.heads.index(HeadName(site.path, 2))
    # The source's symbols: a b, two spaces with c a b; the target's b a c, space b a, space c.
    assert words.predicted.shape == (6, 3, 2)
    expected = weights[2, 0:3, 0:2].sum(1).mean()
    torch.testing.assert_close(words.predicted[row, 0, 0], expected)
    expected = weights[2, 3:6, 2:7].sum(1).mean()
    torch.testing.assert_close(words.predicted[row, 1, 1], expected)
    expected = weights[2, 4:7, 2:7].sum(1).mean()  # one step later, when the word's symbols have been read
    torch.testing.assert_close(words.read[row, 1, 1], expected)


def test_lines_without_words_have_no_weights(task: Task) -> None:
    assert [each.read.shape[1:] for each in read_word_weights(task, PAIRS)] == [(3, 2), (1, 1), (2, 3), (1, 0)]


def test_what_is_cut_off_has_weights_of_zero_and_is_told() -> None:
    task = task_of({"kind": "transformer", **SIZES}, max_source_length=3, max_target_length=4)
    unread = Unread()
    (words,) = read_word_weights(task, [("ab cab b", "bac ba c")], unread=unread)
    assert words.predicted.shape[1:] == (3, 3)
    assert bool((words.predicted[:, :, 2] == 0).all()) and bool((words.predicted[:, 2] == 0).all())
    assert bool((words.predicted[:, 0, 0] > 0).all())
    assert unread.cut.count == 1 and unread.cut.first == [1]  # one pair, though both sides are cut


@pytest.mark.parametrize("order", ["luong", "bahdanau"])
def test_a_recurrent_model_has_one_head(order: str) -> None:
    task = task_of(
        {"kind": "recurrent", "embedding_dim": 6, "hidden_dim": 10, "order": order, "attention": {"kind": "additive"}}
    )
    words = list(read_word_weights(task, PAIRS))
    assert words[0].predicted.shape == (1, 3, 2)
    assert not torch.allclose(words[0].predicted, words[0].read)


def test_a_model_without_attention_is_told() -> None:
    task = task_of({"kind": "recurrent", "embedding_dim": 6, "hidden_dim": 10})
    with pytest.raises(RequestError, match=r"`model.kind` is `recurrent`.*need an encoder-decoder with attention"):
        list(read_word_weights(task, PAIRS))


SITES = [AttentionSite(path=f"x.{layer}", kind="cross", layer=layer, num_heads=2, head_dim=4) for layer in range(2)]
GOLD = [GoldLine(links, links) for links in (frozenset({(0, 0), (2, 1), (1, 2)}), frozenset({(1, 0), (0, 1)}))]


def made(good: HeadName, *, is_read: bool) -> list[WordWeights]:
    """Return weights of which one head, at one of the two steps, is the gold alignment."""
    generator = torch.Generator().manual_seed(1)
    lines = []
    for number, gold in enumerate(GOLD):
        size = len(gold.sure)
        heads = tuple(HeadName(site.path, head) for site in SITES for head in range(2))
        both = [torch.rand(4, size, size, generator=generator) * 0.5 for _ in range(2)]
        for source, target in gold.sure:
            both[is_read][heads.index(good), target, source] = 0.9
        lines.append(WordWeights(number, heads, *both))
    return lines


@pytest.mark.parametrize("is_read", [False, True])
def test_the_head_that_aligns_is_found(is_read: bool) -> None:
    tried = choose(made(HeadName("x.1", 0), is_read=is_read), GOLD, SITES)
    assert tried.errors.aer == 0
    assert tried.choice.heads == (AlignedHead(site="x.1", head=0),)
    assert tried.choice.shift == int(is_read)
    choice, agreement = choose_by_agreement(made(HeadName("x.1", 0), is_read=is_read), SITES)
    assert (choice.heads, choice.shift) == (tried.choice.heads, tried.choice.shift)
    assert agreement == 1


def test_two_models_that_know_a_half_each_are_joined() -> None:
    lines = made(HeadName("x.0", 1), is_read=True)
    heads = [HeadName("x.0", 1)]
    forward = [line.mean(heads, 1) for line in lines]
    reverse = [line.mean(heads, 1).T.clone() for line in lines]
    forward[0][0], reverse[0][1:] = 0.5, 0.5
    assert choose_joint(forward, reverse, GOLD)[1].aer == 0
    choice = JointChoice(join="views", symmetrisation="union")
    weights = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
    other = torch.tensor([[0.6, 0.4], [0.1, 0.9], [0.2, 0.8]])
    assert choice.views(weights, other) == ({(0, 0), (2, 1)}, {(0, 0), (1, 1), (2, 1)})
    assert JointChoice(join="mean").views(weights, other) == ({(0, 0), (2, 1)}, {(0, 0), (1, 1), (2, 1)})


def test_two_heads_that_know_a_half_each_are_joined() -> None:
    first, second = made(HeadName("x.0", 0), is_read=False), made(HeadName("x.1", 1), is_read=False)
    lines = []
    for one, other in zip(first, second, strict=True):
        predicted = torch.full_like(one.predicted, 0.1)
        predicted[0, :1], predicted[3, 1:] = one.predicted[0, :1], other.predicted[3, 1:]
        lines.append(WordWeights(one.line, one.heads, predicted, torch.zeros_like(predicted)))
    tried = choose(lines, GOLD, SITES)
    assert tried.errors.aer == 0
    assert {(each.site, each.head) for each in tried.choice.heads} >= {("x.0", 0), ("x.1", 1)}


def test_what_is_tried_and_what_is_taken_unasked() -> None:
    assert list(head_sets(SITES)) == [
        *(f"layer {layer} head {head}" for layer in (0, 1) for head in (0, 1)),
        "layer 0, mean",
        "layer 1, mean",
        "all heads, mean",
    ]
    choice = default_choice(SITES, is_recurrent=False)
    assert (choice.shift, {each.site for each in choice.heads}) == (1, {"x.0"})
    assert default_choice(SITES[:1], is_recurrent=True).shift == 0


def test_a_choice_says_what_it_is_and_comes_back() -> None:
    heads = [AlignedHead(site="x.1", head=0), AlignedHead(site="x.0", head=1), AlignedHead(site="x.1", head=1)]
    choice = AlignmentChoice(heads=tuple(heads), shift=1, threshold=0.1, symmetrisation="union")
    assert choice.describe() == "heads x.0 1; x.1 0, 1; as the word is read, above 0.1; union"
    assert parse_config(AlignmentChoice, choice.model_dump(mode="json")) == choice
