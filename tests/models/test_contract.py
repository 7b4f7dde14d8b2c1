"""What every model of the catalogue promises, whatever its kind."""

from dataclasses import replace

import pytest
import safetensors.torch
import torch
from torch import Tensor

from heedful.attention.tap import Gates, Tap
from heedful.core.config import parse_config
from heedful.core.runtime import compute_in
from heedful.core.symbols import BOS_ID, EOS_ID, NUM_RESERVED, PAD_ID
from heedful.core.types import Batch
from heedful.models import MODELS, Classifies, Generates, Model, VocabularySizes, build_model, make_step_fn

SIZES = VocabularySizes(source=23, target=29, num_classes=3)

_TRANSFORMER = {"model_dim": 12, "inner_dim": 17, "encoder_layers": 1, "decoder_layers": 2, "num_heads": 3}
_RECURRENT = {"embedding_dim": 6, "hidden_dim": 10, "num_layers": 2}
_LANGUAGE_MODEL = {"model_dim": 12, "inner_dim": 17, "num_layers": 2, "num_heads": 3}

EXAMPLES: list[dict] = [
    {"kind": "transformer", **_TRANSFORMER},
    {"kind": "transformer", **_TRANSFORMER, "norm": "pre", "positions": "learned", "activation": "swiglu"},
    {"kind": "transformer", **_TRANSFORMER, "positions": "rotary", "tied_embeddings": "none", "attention_window": 1},
    {"kind": "transformer", **_TRANSFORMER, "has_concatenated_positions": True, "activation": "gelu"},
    {
        "kind": "transformer",
        **_TRANSFORMER,
        "num_heads": {"encoder": [2], "decoder": [0, 1], "cross": [3, 2]},
        "head_dim": {"encoder": 5, "decoder": 7, "cross": [2, 3]},
        "inner_dim": {"encoder": 5, "decoder": [7, 2]},
    },
    {"kind": "transformer_language_model", **_LANGUAGE_MODEL},
    {"kind": "transformer_language_model", **_LANGUAGE_MODEL, "norm": "pre", "positions": "rotary"},
    {"kind": "recurrent", **_RECURRENT},
    {"kind": "recurrent", **_RECURRENT, "attention": {"kind": "additive"}, "is_source_reversed": True},
    {"kind": "recurrent", **_RECURRENT, "attention": {"kind": "dot"}, "has_input_feeding": True, "cell": "gru"},
    {"kind": "recurrent", **_RECURRENT, "attention": {"kind": "additive"}, "order": "bahdanau"},
    {"kind": "recurrent_language_model", **_RECURRENT},
    {"kind": "classifier", "encoder": {"kind": "convolutional", "embedding_dim": 6, "num_filters": 5}, "max_norm": 1.0},
    {"kind": "classifier", "encoder": {"kind": "recurrent", **_RECURRENT}, "pooling": "attention"},
    {
        "kind": "classifier",
        "encoder": {"kind": "transformer", "model_dim": 12, "inner_dim": 17, "num_heads": 3},
        "pooling": "mean",
    },
]
"""Small models: at least one of each kind."""


def _id(values: dict) -> str:
    changed = [
        f"{key}={value}"
        for key, value in values.items()
        if key not in ("kind", *_TRANSFORMER, *_LANGUAGE_MODEL, *_RECURRENT)
    ]
    return "-".join([values["kind"], *changed])


def _build(values: dict) -> Model:
    torch.manual_seed(5)
    config = parse_config(MODELS[values["kind"]][0], values, prefix="model")
    model = build_model(config, SIZES).eval()
    for parameter in model.parameters():
        if parameter.ndim == 1:  # biases and norms start at constants that would hide faults
            torch.nn.init.normal_(parameter, mean=parameter.mean().item(), std=0.3)
    return model


def _rows(vocabulary: int, lengths: list[int], *, first: int | None) -> tuple[Tensor, Tensor]:
    ids = torch.full((len(lengths), max(lengths)), PAD_ID)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.randint(NUM_RESERVED, vocabulary, (length,))
        ids[row, length - 1] = EOS_ID
        if first is not None:
            ids[row, 0] = first
    return ids, torch.tensor(lengths)


def _batch(source_lengths: list[int], target_lengths: list[int]) -> Batch:
    torch.manual_seed(7)
    source, source_sizes = _rows(SIZES.source, source_lengths, first=None)
    target, target_sizes = _rows(SIZES.target, target_lengths, first=BOS_ID)
    return Batch(
        lines=torch.arange(len(source_lengths)),
        source=source,
        source_lengths=source_sizes,
        target=target,
        target_lengths=target_sizes,
    )


BATCH = _batch([5, 1, 3], [4, 7, 6])


def _is_generator(values: dict) -> bool:
    return issubclass(MODELS[values["kind"]][1], Generates)


every_model = pytest.mark.parametrize("values", EXAMPLES, ids=_id)
every_generator = pytest.mark.parametrize("values", [each for each in EXAMPLES if _is_generator(each)], ids=_id)
every_classifier = pytest.mark.parametrize("values", [each for each in EXAMPLES if not _is_generator(each)], ids=_id)


class _Recorder(Tap):
    """Remembers every point it wants, and replaces where asked."""

    def __init__(self, replacements: dict[str, Tensor] | None = None, *, only: str | None = None) -> None:
        self.seen: dict[str, Tensor] = {}
        self.replacements = replacements or {}
        self.only = only

    def wants(self, point: str) -> bool:
        return self.only is None or point == self.only

    def visit(self, point: str, value: Tensor) -> Tensor:
        self.seen[point] = value
        return self.replacements.get(point, value)


def _decode(model: Generates, batch: Batch, **watching: object) -> Tensor:
    memory = model.encode(batch, **watching)
    return model.decode(memory, batch.target_input, **watching)


def _answer(model: Model, batch: Batch, **watching: object) -> Tensor:
    """Return what a model says of a batch, whatever it can do: real positions as rows, or logits."""
    if isinstance(model, Classifies):
        return model.classify(batch, **watching)
    assert isinstance(model, Generates)
    return _decode(model, batch, **watching)[batch.target_keep]


def _assert_close(one: Tensor, other: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_every_kind_has_an_example() -> None:
    assert {each["kind"] for each in EXAMPLES} == set(MODELS)


@every_generator
def test_steps_equal_the_whole_sequence(values: dict) -> None:
    model = _build(values)
    whole = _decode(model, BATCH)
    memory = model.encode(BATCH)
    state = model.start(memory)
    for position in range(BATCH.target_input.shape[1]):
        hidden, state = model.step(BATCH.target_input[:, position, None], memory, state)
        _assert_close(hidden[:, 0], whole[:, position])


@every_generator
def test_hypotheses_equal_rows_of_their_own(values: dict) -> None:
    model = _build(values)
    ids_BNT = torch.randint(NUM_RESERVED, SIZES.target, (len(BATCH), 2, 4))
    memory = model.encode(BATCH)
    state = model.start(memory, 2)
    together = []
    for position in range(ids_BNT.shape[2]):
        hidden, state = model.step(ids_BNT[:, :, position], memory, state)
        together.append(hidden)
    for number in range(2):
        _assert_close(torch.stack(together, dim=2)[:, number], model.decode(memory, ids_BNT[:, number]))


@every_model
def test_padding_changes_nothing(values: dict) -> None:
    model = _build(values)
    pad = torch.nn.functional.pad
    wider = replace(BATCH, source=pad(BATCH.source, (0, 3)), target=pad(BATCH.target, (0, 2)))
    _assert_close(_answer(model, wider), _answer(model, BATCH))


@every_model
def test_a_batch_equals_its_rows(values: dict) -> None:
    model = _build(values)
    alone = []
    for row in range(len(BATCH)):
        one = BATCH.select(torch.tensor([row]))
        source, target = one.source[:, : one.source_lengths[0]], one.target[:, : one.target_lengths[0]]
        alone.append(_answer(model, replace(one, source=source, target=target)))
    _assert_close(torch.cat(alone), _answer(model, BATCH))


@every_generator
def test_selected_rows_go_on_as_they_were(values: dict) -> None:
    model = _build(values)
    rows = torch.tensor([2, 0, 2])
    memory = model.encode(BATCH)
    first, second = BATCH.target[:, 0, None], BATCH.target[:, 1, None]
    _, state = model.step(first, memory, model.start(memory))
    expected, _ = model.step(second, memory, state)
    chosen, _ = model.step(second[rows], memory.select(rows), state.select(rows))
    _assert_close(chosen, expected[rows])


@every_generator
def test_two_continuations_of_a_state_do_not_meet(values: dict) -> None:
    model = _build(values)
    memory = model.encode(BATCH)
    _, state = model.step(BATCH.target[:, 0, None], memory, model.start(memory))
    _, one = model.step(BATCH.target[:, 1, None], memory, state)
    expected, _ = model.step(BATCH.target[:, 2, None], memory, one)
    model.step(BATCH.target[:, 3, None], memory, state)
    again, _ = model.step(BATCH.target[:, 2, None], memory, one)
    _assert_close(again, expected, 0)


@every_model
def test_sites_are_what_the_taps_see(values: dict) -> None:
    model = _build(values)
    recorder = _Recorder()
    watched = _answer(model, BATCH, tap=recorder)
    _assert_close(watched, _answer(model, BATCH))
    weights = {point: value for point, value in recorder.seen.items() if point.endswith(".weights")}
    sites = {f"{site.path}.weights": site for site in model.attention_sites()}
    assert set(weights) == set(sites)
    for point, site in sites.items():
        assert weights[point].shape[1] == site.num_heads


@every_model
def test_a_tap_replaces_what_it_sees(values: dict) -> None:
    model = _build(values)
    before = _answer(model, BATCH)
    recorder = _Recorder()
    _answer(model, BATCH, tap=recorder)
    for site in model.attention_sites():
        if site.num_heads:
            point = f"{site.path}.weights"
            silent = {point: torch.zeros_like(recorder.seen[point])}
            assert not torch.allclose(_answer(model, BATCH, tap=_Recorder(silent, only=point)), before)


@every_model
def test_a_closed_gate_equals_silenced_weights(values: dict) -> None:
    model = _build(values)
    recorder = _Recorder()
    _answer(model, BATCH, tap=recorder)
    for site in model.attention_sites():
        if site.num_heads:
            point = f"{site.path}.weights"
            silent = _Recorder({point: torch.zeros_like(recorder.seen[point])}, only=point)
            gates = Gates({site.path: torch.zeros(site.num_heads)})
            _assert_close(_answer(model, BATCH, gates=gates), _answer(model, BATCH, tap=silent))


@every_model
def test_saved_and_loaded_is_the_same(values: dict, tmp_path) -> None:
    model = _build(values)
    safetensors.torch.save_model(model, str(tmp_path / "model.safetensors"))
    torch.manual_seed(11)
    other = build_model(parse_config(MODELS[values["kind"]][0], values), SIZES).eval()
    assert not torch.equal(_answer(other, BATCH), _answer(model, BATCH))
    safetensors.torch.load_model(other, str(tmp_path / "model.safetensors"))
    _assert_close(_answer(other, BATCH), _answer(model, BATCH), 0)


@every_model
def test_bfloat16_is_near_float32_and_has_gradients(values: dict) -> None:
    model = _build(values)
    exact = _answer(model, BATCH)
    with compute_in(model, torch.bfloat16):
        answer = _answer(model, BATCH)
        assert answer.dtype == torch.bfloat16
        answer.float().square().sum().backward()
    assert (answer - exact).norm() < 0.05 * exact.norm()
    inner = {name: each for name, each in model.named_parameters() if each.numel() and not name.startswith("output")}
    without = [name for name, each in inner.items() if each.grad is None]
    assert not without


@every_model
def test_dropout_acts_in_training_only(values: dict) -> None:
    model = _build(values)
    _assert_close(_answer(model, BATCH), _answer(model, BATCH), 0)
    model.train()
    assert not torch.equal(_answer(model, BATCH), _answer(model, BATCH))


@every_generator
def test_the_step_function_gives_distributions_and_attention(values: dict) -> None:
    model = _build(values)
    memory = model.encode(BATCH)
    step = make_step_fn(model, with_attention=True)
    given = step(torch.full((len(BATCH), 2), BOS_ID), memory, model.start(memory, 2))
    assert given.log_probs.dtype == torch.float32
    _assert_close(given.log_probs.exp().sum(-1), torch.ones(len(BATCH), 2))
    sites = [site for site in model.attention_sites() if site.kind == "cross" and site.num_heads]
    if not sites:
        assert given.attention is None
        return
    assert given.attention.shape == (len(BATCH), 2, BATCH.source.shape[1])
    _assert_close(given.attention.sum(-1), torch.ones(len(BATCH), 2))
    assert not given.attention.masked_select(~BATCH.source_keep[:, None].expand(-1, 2, -1)).any()
