"""The lens as a value: what it holds is what the model did, and what loads back is what was written."""

import json
from typing import Any

import pytest
import torch
from tests.analysis.test_reading import PAIRS, SIZES, task_of

from heedful.analysis import AttentionMap, Recorder, read_lines
from heedful.analysis.agreement import account
from heedful.analysis.lens import Lens, LensView, measures_of
from heedful.analysis.lens_causes import answer_log_probs, silence
from heedful.analysis.lens_matrix import Matrix
from heedful.analysis.lens_norms import joint_norms, transform_values, value_weighted_norms
from heedful.analysis.lens_rollout import roll_out
from heedful.analysis.lens_selection import Selection, select
from heedful.analysis.lens_view import view_of
from heedful.attention.tap import Gates
from heedful.core.errors import ConfigError, DataError
from heedful.models.interfaces import AttentionSite
from heedful.models.stepping import make_step_fn
from heedful.search import BeamConfig
from heedful.search import search as run_search
from heedful.tasks import Task

TRANSFORMER = {**SIZES, "kind": "transformer", "encoder_layers": 2, "decoder_layers": 2}
RECURRENT = {"kind": "recurrent", "embedding_dim": 5, "hidden_dim": 6, "attention": {"kind": "additive"}}
MODELS: dict[str, dict[str, Any]] = {
    "transformer": TRANSFORMER,
    "luong": RECURRENT,
    "bahdanau": {**RECURRENT, "order": "bahdanau"},
    "monotonic": {**RECURRENT, "locality": {"kind": "monotonic", "reach": 1}},
    "predictive": {**RECURRENT, "locality": {"kind": "predictive", "reach": 2}},
    "predictive, bahdanau": {**RECURRENT, "order": "bahdanau", "locality": {"kind": "predictive", "reach": 2}},
}


@pytest.fixture(scope="module", params=sorted(MODELS))
def task(request: pytest.FixtureRequest) -> Task:
    return task_of(MODELS[request.param], search={"kind": "beam", "beam_size": 3, "max_length": 9})


@pytest.fixture(scope="module")
def transformer() -> Task:
    return task_of(TRANSFORMER, search={"kind": "beam", "beam_size": 3, "max_length": 9})


def view(task: Task, source: str = "ab cab", target: str | None = None, **options: Any) -> LensView:
    (reading,) = read_lines(task, [(source, target)], pattern="*")
    return view_of(task, reading, "mine", **options)


@pytest.mark.parametrize(("code", "error"), [("u1", 1 / 510), ("u2", 1 / 131070), ("f4", 1e-7)])
def test_a_matrix_is_as_exact_as_its_code_says(code: Any, error: float) -> None:
    values = torch.rand(3, 5, 7)
    matrix = Matrix.pack(values, code)
    assert (matrix.unpack() - values).abs().max() <= error * (1 + 1e-3)
    assert Matrix.model_validate(matrix.model_dump()) == matrix
    assert Matrix.pack(torch.zeros(0, 5, 7), code).unpack().shape == (0, 5, 7)
    assert Matrix.pack(torch.zeros(2, 1, 1), code).unpack().tolist() == [[[0.0]], [[0.0]]]


def test_a_file_loads_back_equal(task: Task) -> None:
    lens = Lens(heedful="1", views=(view(task), view(task, "b", "ab")))
    assert Lens.from_values(json.loads(lens.to_json())) == lens
    assert lens.to_json().isascii()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values.update(format="x"), "this is no lens. Write one with `heedful inspect"),
        (lambda values: values.update(version=2), "format version 2; this Heedful reads version 1"),
        (lambda values: values.pop("views"), "`views`: "),
        (lambda values: values["views"][0].pop("sides"), "damaged: `views.0.sides`: Field required"),
        (lambda values: values["views"][0]["sides"]["source"]["word_of"].pop(), "must name a word for each piece"),
        (lambda values: values["views"][0]["sites"][0].update(num_heads=7), "its heads, queries and keys are"),
        (lambda values: values["views"][0]["sites"][0]["weights"].update(data="AAAA"), "not base64 of zlib"),
        (lambda values: values["views"][0]["sites"][0]["weights"]["shape"].append(2), "do not fit its shape"),
        (lambda values: values["views"][0]["sites"][0]["weights"].update(shape=[1 << 20, 1 << 20]), "larger than any"),
        (lambda values: values["views"][0]["numbers"][0].update(path="x"), "`x` is no attention of this view"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_told(transformer: Task, change: Any, message: str) -> None:
    values = json.loads(Lens(heedful="1", views=(view(transformer),)).to_json())
    change(values)
    with pytest.raises(DataError) as caught:
        Lens.from_values(values, "x.json")
    assert str(caught.value).startswith("x.json: ") and message in str(caught.value)


def test_weights_are_those_that_were_recorded(task: Task) -> None:
    (reading,) = read_lines(task, PAIRS[:1], pattern="*")
    shown = view_of(task, reading, "mine")
    for site, each in zip(shown.sites, reading.maps, strict=True):
        assert site.weights is not None and site.path == each.site.path
        assert (site.weights.unpack() - each.weights).abs().max() < 1e-5


def test_the_model_s_own_answer_is_read_as_it_was_searched(task: Task) -> None:
    """Forcing the answer shows the attention that the beam search, step by step with its caches, had."""
    (reading,) = read_lines(task, [("ab cab", None)])
    batch = reading.recording.batch
    with task.inference():
        memory = task.model.encode(batch)
        ((best, *_),) = run_search(
            make_step_fn(task.model, with_attention=True), memory, task.model.start(memory),
            BeamConfig(beam_size=3, max_length=9), lines=batch.lines, source_lengths=batch.source_lengths,
            keep_attention=True,
        )  # fmt: skip
    assert [*best.ids, 3] == list(reading.target_output.ids)
    last = [each for each in reading.maps if each.site.kind == "cross"][-1]
    torch.testing.assert_close(last.weights.mean(0), best.attention, atol=1e-5, rtol=0)
    steps, state = [], task.model.start(memory)
    with task.inference():
        for id_ in reading.target_input.ids:
            recorder = Recorder("*cross_attention.weights")
            _, state = task.model.step(torch.tensor([[id_]]), memory, state, tap=recorder)
            steps.append(recorder.seen[f"{last.site.path}.weights"][0])
    torch.testing.assert_close(last.weights, torch.cat(steps, dim=1), atol=1e-5, rtol=0)


def test_an_answer_keeps_the_symbols_that_were_found(transformer: Task) -> None:
    (prediction,) = transformer.predict(["ab cab"])
    (reading,) = read_lines(transformer, [("ab cab", None)])
    assert reading.target_output.ids[:-1] == prediction.candidates[0].ids


def maps_of(*matrices: tuple[str, list[list[float]]]) -> list[AttentionMap]:
    return [
        AttentionMap(AttentionSite(f"{kind}.{index}", kind, index, 1, 1), torch.tensor([rows]))
        for index, (kind, rows) in enumerate(matrices)
    ]


def test_rollout_by_hand() -> None:
    one, two = [[0.0, 1.0], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]
    found = roll_out(maps_of(("encoder", one), ("encoder", two), ("decoder", [[1.0]]), ("cross", [[0.25, 0.75]])))
    torch.testing.assert_close(found["encoder.0"], torch.tensor([[0.5, 0.5], [0.25, 0.75]]))
    torch.testing.assert_close(found["encoder.1"], torch.tensor([[0.5, 0.5], [0.375, 0.625]]))
    torch.testing.assert_close(found["decoder.2"], torch.tensor([[1.0]]))
    half = torch.tensor([[0.25 * 0.5 + 0.75 * 0.375, 0.25 * 0.5 + 0.75 * 0.625]]) / 2
    torch.testing.assert_close(found["cross.3"], half)


def test_rollout_shares_out_each_position_between_both_inputs(transformer: Task) -> None:
    (reading,) = read_lines(transformer, PAIRS[:1])
    maps = reading.maps
    found = roll_out([*maps, maps[-2]])  # a last self-attention shows what is left for the target
    target, source = found[maps[-2].site.path], found[maps[-1].site.path]
    assert float(source.sum(1).min()) > 0.1 and float(source.sum(1).max()) < 0.9
    identity = torch.eye(len(target))
    mixed = (maps[-2].weights.mean(0) + identity) / 2
    torch.testing.assert_close(target.sum(1) + (mixed @ source).sum(1), torch.ones(len(target)))


def test_norms_are_lengths_of_what_each_position_adds(transformer: Task) -> None:
    """What a head adds to a position is the sum, over the keys, of the vectors whose lengths the norms are."""
    (reading,) = read_lines(transformer, PAIRS[:1], pattern="*")
    for path, attention in transformer.model.multihead_attentions().items():
        points = {name: reading.recording.points[f"{path}.{name}"][0] for name in ("weights", "value", "context")}
        added = points["weights"][..., None] * transform_values(points["value"], attention)[:, None]
        norms = value_weighted_norms(points["weights"], points["value"], attention)
        torch.testing.assert_close(added.norm(dim=-1), norms)
        joint = joint_norms(points["weights"], points["value"], attention)
        torch.testing.assert_close(joint, added.sum(0).norm(dim=-1))
        assert (joint < norms.sum(0) * 0.999).any()
        whole = added.sum(dim=(0, 2)) + attention.output_bias
        context_QX = points["context"].transpose(0, 1).flatten(1)
        projected = torch.nn.functional.linear(context_QX, attention.output_weight, attention.output_bias)
        torch.testing.assert_close(whole, projected, atol=1e-5, rtol=1e-4)


def test_norms_of_all_heads_are_those_of_their_sum_here_and_where_accounts_are_compared(task: Task) -> None:
    (reading,) = read_lines(task, PAIRS[:1], pattern="*")
    shown = view_of(task, reading, "mine", with_causes=False)
    chosen = select(shown, Selection(measure="norms"))
    compared = account(task.model, reading, task.stack([reading.encoded])).scores["norms"]
    torch.testing.assert_close(chosen.values, compared, atol=1e-4, rtol=0)
    (num_heads,) = {each.num_heads for each in shown.sites}
    assert chosen.title.endswith(f", sum of {num_heads} heads" if num_heads > 1 else "layer 0")
    for site in shown.sites:
        assert (site.joint_norms is None) == (num_heads == 1)
    alone = select(shown, Selection(measure="norms", head=0)).values
    assert torch.allclose(alone, chosen.values, atol=1e-4) == (num_heads == 1)


def test_numbers_follow_from_each_other(task: Task) -> None:
    (reading,) = read_lines(task, PAIRS[:1], pattern="*")
    shown = view_of(task, reading, "mine")
    assert {each.path for each in shown.numbers} == {each.path for each in shown.sites}
    for numbers in shown.numbers:
        value, keep = numbers.value.unpack(), numbers.keep.unpack().bool()
        assert numbers.query is not None
        query = numbers.query.unpack()
        if numbers.key is None:
            assert numbers.scores is not None
            scores = numbers.scores.unpack()
        else:
            scores = query @ numbers.key.unpack().mT / query.shape[-1] ** 0.5
        weights = scores.masked_fill(~keep, float("-inf")).softmax(-1)
        is_lessened = (task.config.model.model_dump().get("locality") or {}).get("kind") == "predictive"
        assert (numbers.factor is not None) == is_lessened
        if numbers.factor is not None:
            weights = weights * numbers.factor.unpack()
            assert float(weights.sum(-1).max()) < 0.999
        recorded = next(each.weights for each in reading.maps if each.site.path == numbers.path)
        torch.testing.assert_close(weights, recorded, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(weights @ value, numbers.context.unpack(), atol=1e-6, rtol=1e-5)


def test_causes_are_what_silencing_costs(task: Task) -> None:
    (reading,) = read_lines(task, PAIRS[:1], pattern="*")
    causes = view_of(task, reading, "mine").causes
    assert causes is not None
    (score,) = task.score([PAIRS[0]])
    assert sum(causes.log_probs) == pytest.approx(score.log_prob, abs=1e-4)
    sites = {each.path: each.num_heads for each in task.model.attention_sites()}
    assert [(each.path, each.head) for each in causes.heads] == [(p, h) for p, n in sites.items() for h in range(n)]
    name = causes.heads[-1]
    gates = torch.ones(sites[name.path])
    gates[name.head] = 0
    with task.inference():
        after = answer_log_probs(task.model, reading.recording.batch, Gates({name.path: gates}))
    expected = torch.tensor(causes.log_probs) - after[0]
    torch.testing.assert_close(causes.losses.unpack()[-1], expected)
    assert silence(task.model.attention_sites(), [(name.path, name.head)]).factors[name.path].tolist() == gates.tolist()


def test_a_classifier_and_a_language_model_are_seen_too() -> None:
    judge = task_of(
        {"kind": "classifier", "pooling": "attention",
         "encoder": {**SIZES, "kind": "transformer", "num_layers": 1}}, "classification",
        data={"train": {"kind": "tsv", "path": "x", "source": "s", "label": "t"}},
    )  # fmt: skip
    shown = view(judge, "ab", "b")
    assert shown.sides["answer"].pieces == ("b",) and shown.causes is not None and shown.causes.side == "answer"
    assert list(measures_of(shown)) == ["weights", "norms", "rollout"]
    assert select(shown, Selection()).queries == ("b",)
    writer = task_of({**SIZES, "kind": "transformer_language_model", "num_layers": 1}, "language_modelling")
    (reading,) = read_lines(writer, [(None, "ab c")], pattern="*")
    assert list(view_of(writer, reading, "mine").sides) == ["target_input", "target_output"]


def test_one_symbol_is_enough(task: Task) -> None:
    shown = view(task, "b")
    assert shown.sites[0].weights is not None
    assert len(shown.sides["source"].pieces) == 2


def test_a_selection_finds_its_matrix_or_says_what_there_is(transformer: Task) -> None:
    (reading,) = read_lines(transformer, PAIRS[:1], pattern="*")
    shown = view_of(transformer, reading, "mine", with_causes=False)
    assert shown.causes is None
    chosen = select(shown, Selection(kind="encoder", layer=1, head=2))
    torch.testing.assert_close(chosen.values, reading.maps[1].weights[2], atol=1e-5, rtol=0)
    assert chosen.title == "attention weights, encoder, layer 1, head 2"
    assert select(shown, Selection(has_words=True)).queries == ("bac", "ba", "</s>")
    torch.testing.assert_close(select(shown, Selection(has_words=True)).values.sum(1), torch.ones(3), atol=1e-4, rtol=0)
    for selection, message in [
        (Selection(kind="pooling"), "`--kind` is `pooling`, which this model has not."),
        (Selection(layer=2), "`--layer` is 2, but cross attention has heads in layers 0, 1."),
        (Selection(head=3), "`--head` is 3, but `decoder.layers.1.cross_attention` has 3 heads, 0 to 2."),
    ]:
        with pytest.raises(ConfigError) as caught:
            select(shown, selection)
        assert message in str(caught.value)


def test_what_has_no_room_is_left_out_and_named(transformer: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = view(transformer, with_causes=False)
    size = sum(len(each.weights.data) for each in whole.sites if each.weights)
    monkeypatch.setattr("heedful.analysis.lens_view.MATRIX_CHARACTERS", size + 10)
    monkeypatch.setattr("heedful.analysis.lens_view.NUMBERS_CHARACTERS", 0)
    small = view(transformer, with_causes=False)
    assert all(each.weights and not each.norms for each in small.sites) and not small.numbers
    names = "encoder 1, decoder 1, cross 1, encoder 0, decoder 0, cross 0"
    assert f"No room in the file for the norms of {names}." in small.notes
    assert any(each.startswith("Not kept in numbers, for want of room: cross 1, decoder 1, ") for each in small.notes)
