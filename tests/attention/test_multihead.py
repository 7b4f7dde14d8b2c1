import pytest
import torch
from torch import Tensor

from heedful.attention import (
    AttentionMask,
    CrossAttention,
    Gates,
    KeyValues,
    MultiHeadAttention,
    Rotary,
    SelfAttention,
    Tap,
    padding_keep,
    scope_tap,
    split_model_dim,
)
from heedful.core.errors import ConfigError

B, T, K, D, M, H, E = 3, 5, 7, 11, 13, 2, 4


class Recorder(Tap):
    """Sees everything under its points, and replaces what it is told to."""

    def __init__(self, *points: str, replace: dict[str, Tensor] | None = None) -> None:
        self.points = points
        self.replace = replace or {}
        self.seen: dict[str, Tensor] = {}

    def wants(self, point: str) -> bool:
        return point.rsplit(".", 1)[1] in self.points

    def visit(self, point: str, value: Tensor) -> Tensor:
        name = point.rsplit(".", 1)[1]
        self.seen[name] = value
        return self.replace.get(name, value)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(3)


def self_attention(**changes: object) -> SelfAttention:
    return SelfAttention(D, H, E, **changes).double()  # type: ignore[arg-type]


def cross_attention() -> CrossAttention:
    return CrossAttention(D, M, H, E, output_dim=17).double()


def test_self_attention_by_hand() -> None:
    attention = SelfAttention(2, 1, 2, bias=False)
    with torch.no_grad():
        attention.input_weight.copy_(torch.cat([torch.eye(2), torch.eye(2), 3 * torch.eye(2)]))
        attention.output_weight.copy_(torch.eye(2))
    hidden = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    # Scores 1/sqrt(2) on the diagonal and 0 off it; the weight of oneself is e^s / (e^s + 1).
    own = torch.tensor(2**-0.5).exp() / (torch.tensor(2**-0.5).exp() + 1)
    expected = torch.stack([torch.stack([own, 1 - own]), torch.stack([1 - own, own])])[None] * 3
    torch.testing.assert_close(attention(hidden), expected)


def test_sizes_and_taps_of_cross_attention() -> None:
    attention, tap = cross_attention(), Recorder("query", "key", "value", "scores", "weights", "context")
    memory = attention.project_memory(torch.randn(B, K, M, dtype=torch.float64))
    output = attention(torch.randn(B, T, D, dtype=torch.float64), memory, tap=scope_tap(tap, "here"))
    assert output.shape == (B, T, 17)
    assert {name: tuple(value.shape) for name, value in tap.seen.items()} == {
        "query": (B, H, T, E),
        "key": (B, H, K, E),
        "value": (B, H, K, E),
        "scores": (B, H, T, K),
        "weights": (B, H, T, K),
        "context": (B, H, T, E),
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("kind", ["none", "padding", "causal", "both"])
def test_watched_and_unwatched_are_equal(dtype: torch.dtype, kind: str) -> None:
    attention = SelfAttention(D, H, E).to(dtype)
    hidden = torch.randn(B, T, D, dtype=dtype)
    padding = AttentionMask.padding(padding_keep(torch.tensor([5, 0, 2]), T))
    causal = AttentionMask.causal(T)
    mask = {"none": None, "padding": padding, "causal": causal, "both": padding & causal}[kind]
    watched = attention(hidden, mask=mask, tap=scope_tap(Recorder("weights"), "here"))
    tolerance = {torch.float32: 1e-6, torch.float64: 1e-13, torch.bfloat16: 2e-2}[dtype]
    torch.testing.assert_close(attention(hidden, mask=mask), watched, atol=tolerance, rtol=tolerance)


def test_an_empty_row_gets_the_output_bias_alone() -> None:
    attention = self_attention()
    torch.nn.init.normal_(attention.output_bias)
    hidden = torch.randn(2, T, D, dtype=torch.float64, requires_grad=True)
    mask = AttentionMask.padding(padding_keep(torch.tensor([T, 0]), T))
    for tap in (None, scope_tap(Recorder("weights"), "here")):
        output = attention(hidden, mask=mask, tap=tap)
        torch.testing.assert_close(output[1], attention.output_bias.expand(T, D))
        output.sum().backward()
        assert torch.isfinite(hidden.grad).all()


def test_padding_changes_nothing() -> None:
    attention = self_attention()
    hidden = torch.randn(1, 3, D, dtype=torch.float64)
    padded = torch.cat([hidden, torch.randn(1, 2, D, dtype=torch.float64)], dim=1)
    mask = AttentionMask.padding(padding_keep(torch.tensor([3]), 5))
    torch.testing.assert_close(attention(padded, mask=mask)[:, :3], attention(hidden))


@pytest.mark.parametrize("rotary", [None, Rotary(E)])
def test_steps_equal_the_whole(rotary: Rotary | None) -> None:
    attention = self_attention(rotary=rotary)
    hidden = torch.randn(B, 41, D, dtype=torch.float64)  # longer than the first room of a cache
    whole = attention(hidden, mask=AttentionMask.causal(41))
    cache, outputs = attention.start(B), []
    for begin, stop in [(0, 3), (3, 4), *((step, step + 1) for step in range(4, 41))]:
        output, cache = attention.step(hidden[:, begin:stop], cache)
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, dim=1), whole)


def test_a_cache_is_a_value() -> None:
    attention = self_attention()
    first, left, right, last = torch.randn(4, B, 1, D, dtype=torch.float64).unbind(0)
    _, trunk = attention.step(first, attention.start(B))
    _, left_cache = attention.step(left, trunk)
    _, right_cache = attention.step(right, trunk)
    rows = torch.tensor([2, 0, 0])
    expected, _ = attention.step(last[rows], left_cache.select(rows))
    after, _ = attention.step(last, left_cache)
    torch.testing.assert_close(after[rows], expected)
    other, _ = attention.step(last, right_cache)
    whole = attention(torch.cat([first, right, last], dim=1), mask=AttentionMask.causal(3))
    torch.testing.assert_close(other, whole[:, 2:])


def test_a_cache_taken_to_where_it_is_stays_a_value() -> None:
    attention = self_attention()
    first, left, right = torch.randn(3, B, 1, D, dtype=torch.float64).unbind(0)
    _, trunk = attention.step(first, attention.start(B))
    _, left_cache = attention.step(left, trunk)
    kept = left_cache.keys.clone()
    attention.step(right, trunk.to(first.device))
    torch.testing.assert_close(left_cache.keys, kept)


def test_a_growing_cache_is_rarely_copied() -> None:
    attention = self_attention()
    cache, buffers = attention.start(1), set()
    for _ in range(500):
        _, cache = attention.step(torch.zeros(1, 1, D, dtype=torch.float64), cache)
        buffers.add(cache.key_room.data_ptr())
    assert len(buffers) <= 20 and cache.keys.shape == (1, H, 500, E)


def test_hypotheses_as_queries_equal_a_repeated_memory() -> None:
    attention = cross_attention()
    source = torch.randn(B, K, M, dtype=torch.float64)
    query = torch.randn(B, 4, D, dtype=torch.float64)
    keep = padding_keep(torch.tensor([7, 1, 4]), K)
    together = attention(query, attention.project_memory(source), mask=AttentionMask.padding(keep))
    memory = attention.project_memory(source.repeat_interleave(4, 0))
    mask = AttentionMask.padding(keep.repeat_interleave(4, 0))
    alone = attention(query.flatten(0, 1)[:, None], memory, mask=mask)
    torch.testing.assert_close(together, alone.view(B, 4, 17))


def run(attention: MultiHeadAttention, **context: object) -> Tensor:
    torch.manual_seed(5)
    hidden, source = torch.randn(B, T, D, dtype=torch.float64), torch.randn(B, K, M, dtype=torch.float64)
    if isinstance(attention, CrossAttention):
        return attention(hidden, attention.project_memory(source), **context)
    return attention(hidden, **context)


@pytest.mark.parametrize("make", [self_attention, cross_attention])
def test_a_closed_gate_equals_a_removed_head(make: type) -> None:
    attention = make()
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter)
    gates = Gates({"here": torch.tensor([0.0, 1.0])}, "here")
    gated = run(attention, gates=gates)
    assert not torch.allclose(gated, run(attention))
    attention.keep_heads([1])
    assert attention.num_heads == 1
    torch.testing.assert_close(run(attention), gated)


@pytest.mark.parametrize("make", [self_attention, cross_attention])
@pytest.mark.parametrize("tap", [None, scope_tap(Recorder("weights", "query", "context"), "here")])
def test_no_heads_leave_the_output_bias(make: type, tap: object) -> None:
    attention = make()
    torch.nn.init.normal_(attention.output_bias)
    attention.keep_heads([])
    mask = AttentionMask.padding(padding_keep(torch.tensor([2, 1, 2]), K if make is cross_attention else T))
    output = run(attention, tap=tap, mask=mask)
    torch.testing.assert_close(output, attention.output_bias.expand_as(output))
    output.sum().backward()
    torch.testing.assert_close(attention.output_bias.grad, torch.full_like(attention.output_bias, B * T))


def test_size_does_not_depend_on_the_number_of_heads() -> None:
    sizes = {
        sum(each.numel() for each in SelfAttention(12, heads, split_model_dim(12, heads)).parameters())
        for heads in (1, 2, 3, 4, 6, 12)
    }
    assert len(sizes) == 1
    with pytest.raises(ConfigError, match=r"must divide `model.model_dim` \(512\), but is 7. Try 8"):
        split_model_dim(512, 7)


@pytest.mark.parametrize("point", ["query", "key", "value", "scores", "weights", "context"])
def test_a_tap_may_replace(point: str) -> None:
    attention, watcher = cross_attention(), Recorder(point)
    run(attention, tap=scope_tap(watcher, "here"))
    value = watcher.seen[point]
    zeros = Recorder(point, "weights", replace={point: torch.zeros_like(value)})
    changed = run(attention, tap=scope_tap(zeros, "here"))
    if point in ("query", "key", "scores"):
        torch.testing.assert_close(zeros.seen["weights"], torch.full_like(zeros.seen["weights"], 1 / K))
    else:
        torch.testing.assert_close(changed, attention.output_bias.expand_as(changed))


def test_gradients() -> None:
    attention = SelfAttention(3, 2, 2).double()
    hidden = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    mask = AttentionMask.padding(padding_keep(torch.tensor([3, 1]), 3)) & AttentionMask.causal(3)
    assert torch.autograd.gradcheck(
        lambda *tensors: attention(tensors[0], mask=mask), (hidden, *attention.parameters())
    )


def test_selected_memory() -> None:
    attention, rows = cross_attention(), torch.tensor([2, 0])
    query, source = torch.randn(B, T, D, dtype=torch.float64), torch.randn(B, K, M, dtype=torch.float64)
    mask = AttentionMask.padding(padding_keep(torch.tensor([7, 3, 2]), K))
    memory: KeyValues = attention.project_memory(source)
    whole = attention(query, memory, mask=mask)
    torch.testing.assert_close(attention(query[rows], memory.select(rows), mask=mask.select(rows)), whole[rows])


@pytest.mark.parametrize("make", [self_attention, cross_attention])
def test_gates_of_another_type_do_not_change_that_of_the_output(make: type) -> None:
    attention = make().float()
    torch.manual_seed(5)
    hidden, source = torch.randn(B, T, D), torch.randn(B, K, M)
    inputs = (hidden,) if make is self_attention else (hidden, attention.project_memory(source))
    gated = attention(*inputs, gates=Gates({"here": torch.tensor([0.5, 1.0], dtype=torch.float64)}, "here"))
    assert gated.dtype == torch.float32
    torch.testing.assert_close(gated, attention(*inputs, gates=Gates({"here": torch.tensor([0.5, 1.0])}, "here")))


def test_gates_come_to_where_the_weights_are() -> None:
    attention = self_attention().to("meta")
    hidden = torch.zeros(B, T, D, dtype=torch.float64, device="meta")
    assert attention(hidden, gates=Gates({"here": torch.ones(H)}, "here")).device.type == "meta"
