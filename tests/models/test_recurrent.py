"""The recurrent encoder-decoder: in steps, padded, reversed, tapped and in bf16 against whole, alone and plain."""

from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.attention.tap import Gates, Tap
from heedful.core.config import parse_config
from heedful.core.errors import ConfigError
from heedful.core.runtime import compute_in
from heedful.core.symbols import BOS_ID, EOS_ID, PAD_ID
from heedful.core.types import Batch
from heedful.models.interfaces import VocabularySizes
from heedful.models.recurrent import RecurrentConfig, RecurrentModel

SOURCE_SIZE, TARGET_SIZE = 13, 17
S, T = 7, 5
SIZES = VocabularySizes(source=SOURCE_SIZE, target=TARGET_SIZE)
ADDITIVE = {"kind": "additive"}
KINDS: dict[str, dict[str, Any]] = {
    "fixed vector": {},
    "luong": {"attention": ADDITIVE},
    "dot, one way": {"attention": {"kind": "dot"}, "is_bidirectional": False},
    "input feeding": {"attention": ADDITIVE, "has_input_feeding": True, "cell": "gru"},
    "bahdanau": {"attention": ADDITIVE, "order": "bahdanau", "cell": "gru"},
    "local, monotonic": {"attention": {"kind": "bilinear"}, "locality": {"kind": "monotonic", "reach": 1}},
    "local, predictive": {
        "attention": ADDITIVE,
        "locality": {"kind": "predictive", "reach": 2},
        "order": "bahdanau",
    },
    "reversed": {"attention": ADDITIVE, "is_source_reversed": True, "is_bidirectional": False},
}
ATTENTIVE = [name for name in KINDS if name != "fixed vector"]


def build(name: str, **changes: Any) -> RecurrentModel:
    torch.manual_seed(3)
    values = {"embedding_dim": 6, "hidden_dim": 10, "num_layers": 2, "dropout": 0.0, **KINDS[name], **changes}
    return RecurrentModel(parse_config(RecurrentConfig, values), SIZES).eval()


def make_batch() -> Batch:
    generator = torch.Generator().manual_seed(5)
    source_lengths, target_lengths = torch.tensor([7, 2, 5]), torch.tensor([3, 6, 5])
    source = torch.randint(4, SOURCE_SIZE, (3, S), generator=generator)
    target = torch.randint(4, TARGET_SIZE, (3, T + 1), generator=generator)
    target[:, 0] = BOS_ID
    for row in range(3):
        source[row, source_lengths[row] - 1] = EOS_ID
        source[row, source_lengths[row] :] = PAD_ID
        target[row, target_lengths[row] - 1] = EOS_ID
        target[row, target_lengths[row] :] = PAD_ID
    return Batch(
        lines=torch.arange(3),
        source=source,
        source_lengths=source_lengths,
        target=target,
        target_lengths=target_lengths,
    )


class Recorder(Tap):
    """Keeps what it sees; may put something in the weights' place."""

    def __init__(self, replacement: Tensor | None = None) -> None:
        self.seen: dict[str, list[Tensor]] = {}
        self.replacement = replacement

    def wants(self, point: str) -> bool:
        return True

    def visit(self, point: str, value: Tensor) -> Tensor:
        self.seen.setdefault(point, []).append(value)
        return value if self.replacement is None or not point.endswith(".weights") else self.replacement


def decode(model: RecurrentModel, batch: Batch, **options: Any) -> Tensor:
    return model.decode(model.encode(batch), batch.target_input, **options)


@pytest.mark.parametrize("name", KINDS)
def test_steps_equal_decode_for_every_hypothesis(name: str) -> None:
    model, batch = build(name), make_batch()
    memory = model.encode(batch)
    whole = decode(model, batch)
    other = torch.randint(4, TARGET_SIZE, (3, T))
    state = model.start(memory, num_hypotheses=2)
    for t in range(T):
        ids = torch.stack((batch.target_input[:, t], other[:, t]), dim=1)
        hidden, state = model.step(ids, memory, state)
        torch.testing.assert_close(hidden[:, 0], whole[:, t], atol=1e-5, rtol=0)
    assert hidden.shape == (3, 2, 6)


@pytest.mark.parametrize("name", KINDS)
def test_selected_rows_go_on_as_before(name: str) -> None:
    model, batch = build(name), make_batch()
    memory = model.encode(batch)
    _, state = model.step(batch.target_input[:, :1], memory, model.start(memory))
    rows = torch.tensor([2, 0])
    expected, _ = model.step(batch.target_input[:, 1:2], memory, state)
    actual, _ = model.step(batch.target_input[rows, 1:2], memory.select(rows), state.select(rows))
    torch.testing.assert_close(actual, expected[rows])


@pytest.mark.parametrize("name", KINDS)
def test_padded_row_equals_row_alone(name: str) -> None:
    model, batch = build(name), make_batch()
    together = decode(model, batch)
    for row in range(3):
        assert batch.source is not None and batch.source_lengths is not None
        alone = batch.select(torch.tensor([row]))
        length = int(batch.source_lengths[row])
        short = Batch(
            lines=alone.lines,
            source=batch.source[row : row + 1, :length],
            source_lengths=alone.source_lengths,
            target=alone.target,
            target_lengths=alone.target_lengths,
        )
        torch.testing.assert_close(decode(model, short)[0], together[row], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ATTENTIVE)
def test_tap_sees_one_head_over_all_positions_and_changes_nothing(name: str) -> None:
    model, batch, tap = build(name), make_batch(), Recorder()
    torch.testing.assert_close(decode(model, batch, tap=tap), decode(model, batch))
    (weights,) = tap.seen["decoder.cross_attention.weights"]
    assert weights.shape == (3, 1, T, S)
    if name != "local, predictive":  # whose weights are lessened away from the centre
        torch.testing.assert_close(weights.sum(-1), torch.ones(3, 1, T))
    assert (weights[~batch.source_keep[:, None, None].expand_as(weights)] == 0).all()
    seen = {point.rpartition(".")[2] for point in tap.seen}
    factor = {"factor"} if name == "local, predictive" else set()
    assert seen == {"query", "value", "scores", "weights", "context"} | factor
    (values,) = tap.seen["decoder.cross_attention.value"]
    torch.testing.assert_close(values[:, 0], model.encode(batch).values)


@pytest.mark.parametrize("name", ATTENTIVE)
def test_replaced_weights_are_used_in_whole_and_in_steps(name: str) -> None:
    model, batch = build(name), make_batch()
    uniform = batch.source_keep / batch.source_keep.sum(1, keepdim=True)
    whole = decode(model, batch, tap=Recorder(uniform[:, None, None].expand(3, 1, T, S)))
    assert not torch.allclose(whole, decode(model, batch), atol=1e-4)
    memory = model.encode(batch)
    state, tap = model.start(memory), Recorder(uniform[:, None, None])
    for t in range(T):
        hidden, state = model.step(batch.target_input[:, t : t + 1], memory, state, tap=tap)
        torch.testing.assert_close(hidden[:, 0], whole[:, t], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ATTENTIVE)
def test_closed_gate_silences_the_context(name: str) -> None:
    model, batch = build(name), make_batch()
    gates = Gates({"decoder.cross_attention": torch.zeros(1)})
    silent = decode(model, batch, gates=gates)
    zeros = decode(model, batch, tap=Recorder(torch.zeros(3, 1, T, S)))
    torch.testing.assert_close(silent, zeros)


def test_reversed_source_reads_reversed_words_and_keeps_the_order_of_weights() -> None:
    batch = make_batch()
    assert batch.source is not None
    plain, reverse = build("reversed", is_source_reversed=False), build("reversed")
    reverse.load_state_dict(plain.state_dict())
    mirrored = batch.source.clone()
    for row, length in enumerate([7, 2, 5]):
        mirrored[row, : length - 1] = batch.source[row, : length - 1].flip(0)
    other = Batch(
        lines=batch.lines,
        source=mirrored,
        source_lengths=batch.source_lengths,
        target=batch.target,
        target_lengths=batch.target_lengths,
    )
    first, second = Recorder(), Recorder()
    torch.testing.assert_close(decode(reverse, batch, tap=first), decode(plain, other, tap=second))
    (weights,), (expected,) = (each.seen["decoder.cross_attention.weights"] for each in (first, second))
    for row, length in enumerate([7, 2, 5]):
        words = length - 1
        torch.testing.assert_close(weights[row, 0, :, :words], expected[row, 0, :, :words].flip(-1))
        torch.testing.assert_close(weights[row, 0, :, words], expected[row, 0, :, words])


@pytest.mark.parametrize("name", KINDS)
def test_every_weight_gets_a_gradient_through_bf16_copies(name: str) -> None:
    model, batch = build(name).train(), make_batch()
    with compute_in(model, torch.bfloat16):
        hidden = decode(model, batch)
        assert hidden.dtype == torch.bfloat16
        model.output.log_probs(hidden).pow(2).mean().backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.dtype == torch.float32 and parameter.grad.any(), key


def test_local_attention_looks_near_the_diagonal_alone() -> None:
    model, batch, tap = build("local, monotonic"), make_batch(), Recorder()
    decode(model, batch, tap=tap)
    (weights,) = tap.seen["decoder.cross_attention.weights"]
    distance = (torch.arange(S) - torch.arange(T)[:, None]).abs()
    assert ((weights[0, 0] > 0) == (distance <= 1)).all()  # the row whose source is longer than any target


def test_sites_name_the_attention() -> None:
    assert build("fixed vector").attention_sites() == []
    (site,) = build("luong").attention_sites()
    assert (site.path, site.num_heads, site.kind) == ("decoder.cross_attention", 1, "cross")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hidden_dim": 7}, "must be even for an encoder of two directions, but is 7. Try 8."),
        ({"has_input_feeding": True}, "`model.has_input_feeding` needs `model.attention`"),
        ({"locality": {"kind": "monotonic"}}, "`model.locality` needs an attention."),
        ({"cell": "rnn"}, "`model.cell` is 'rnn'"),
    ],
)
def test_config_errors_say_what_to_try(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(RecurrentConfig, values, prefix="model")


def test_all_embeddings_tied_need_a_joint_vocabulary() -> None:
    with pytest.raises(ConfigError, match="joint"):
        build("luong", tied_embeddings="all")
    model = RecurrentModel(
        RecurrentConfig(embedding_dim=6, hidden_dim=10, tied_embeddings="all"),
        VocabularySizes(source=13, target=13, is_shared=True),
    )
    assert model.source_embedding.tokens.weight is model.output.weight


@pytest.mark.parametrize("name", ATTENTIVE)
def test_a_gate_of_another_type_does_not_change_that_of_the_output(name: str) -> None:
    model, batch = build(name), make_batch()
    single, double = (
        decode(model, batch, gates=Gates({"decoder.cross_attention": torch.full((1,), 0.5, dtype=dtype)}))
        for dtype in (torch.float32, torch.float64)
    )
    assert double.dtype == single.dtype == torch.float32
    torch.testing.assert_close(double, single)
