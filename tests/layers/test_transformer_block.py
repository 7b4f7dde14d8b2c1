import pytest
import torch

from heedful.attention.masks import AttentionMask
from heedful.attention.tap import Tap
from heedful.layers.transformer_block import AttentionSizes, BlockSizes, DecoderBlock, EncoderBlock, Residual, Source
from heedful.layers.transformer_stack import TransformerDecoder, TransformerEncoder

B, S, T, D = 2, 7, 5, 6


class Watch(Tap):
    def wants(self, point: str) -> bool:
        return True

    def visit(self, point: str, value: torch.Tensor) -> torch.Tensor:
        return value


def _randomize(module: torch.nn.Module) -> None:
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)


def test_residuals_by_hand() -> None:
    hidden = torch.tensor([[[3.0, 1.0]]])
    # Post: (3, 1) + (6, 2) = (9, 3), normalised to (1, -1). Pre: (3, 1) + 2 (1, -1).
    post = Residual(2, norm="post", dropout=0.0)(hidden, lambda each: 2 * each)
    pre = Residual(2, norm="pre", dropout=0.0)(hidden, lambda each: 2 * each)
    torch.testing.assert_close(post, torch.tensor([[[1.0, -1.0]]]), atol=1e-4, rtol=0)
    torch.testing.assert_close(pre, torch.tensor([[[5.0, -1.0]]]), atol=1e-4, rtol=0)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_an_encoder_block_equals_its_parts(norm: str) -> None:
    block = EncoderBlock(BlockSizes(model_dim=D, norm=norm), AttentionSizes(num_heads=3, head_dim=4), 11)
    _randomize(block)
    hidden, mask = torch.randn(B, S, D), AttentionMask.padding(torch.arange(S) < torch.tensor([[S], [3]]))
    first, second = block.around_self_attention.norm, block.around_feed_forward.norm
    if norm == "pre":
        middle = hidden + block.self_attention(first(hidden), mask=mask)
        expected = middle + block.feed_forward(second(middle))
    else:
        middle = first(hidden + block.self_attention(hidden, mask=mask))
        expected = second(middle + block.feed_forward(middle))
    torch.testing.assert_close(block(hidden, mask), expected)


def test_a_decoder_block_steps_as_it_reads() -> None:
    heads = AttentionSizes(num_heads=3, head_dim=4)
    block = DecoderBlock(BlockSizes(model_dim=D), heads, AttentionSizes(num_heads=2, head_dim=5), 11)
    _randomize(block)
    hidden = torch.randn(B, T, D)
    pairs = block.cross_attention.project_memory(torch.randn(B, S, D))
    source = Source(pairs, AttentionMask.padding(torch.arange(S) < torch.tensor([[4], [S]])))
    whole = block(hidden, AttentionMask.causal(T), source)
    cache = block.self_attention.start(B)
    for place in range(T):
        step, cache = block.step(hidden[:, place, None], cache, source)
        torch.testing.assert_close(step[:, 0], whole[:, place])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_block_without_heads_computes_what_one_that_is_watched_does(norm: str) -> None:
    none = AttentionSizes(num_heads=0, head_dim=4)
    block = DecoderBlock(BlockSizes(model_dim=D, norm=norm), none, none, 11)
    _randomize(block)
    hidden = torch.randn(B, T, D)
    pairs = block.cross_attention.project_memory(torch.randn(B, S, D))
    source = Source(pairs, AttentionMask.padding(torch.ones(B, S) > 0))
    mask = AttentionMask.causal(T)
    skipped = block(hidden, mask, source)
    torch.testing.assert_close(block(hidden, mask, source, tap=Watch()), skipped)
    step, cache = block.step(hidden[:, 2, None], block.self_attention.start(B), source)
    torch.testing.assert_close(step[:, 0], skipped[:, 2])
    assert cache.select(torch.tensor([1, 1])).keys.shape == (2, 0, 0, 4)
    skipped.sum().backward()
    assert block.self_attention.output_bias.grad is not None


def test_a_window_over_a_long_sequence_equals_its_steps_and_what_a_tap_sees() -> None:
    decoder = TransformerDecoder(
        BlockSizes(model_dim=D, window=2), [AttentionSizes(num_heads=2, head_dim=3)] * 2, None, [11, 13]
    )
    _randomize(decoder)
    hidden = torch.randn(B, 23, D)
    whole = decoder(hidden, [None, None])
    torch.testing.assert_close(decoder(hidden, [None, None], tap=Watch()), whole)
    caches = decoder.start(B)
    for place in range(23):
        step, caches = decoder.step(hidden[:, place, None], caches, [None, None])
        torch.testing.assert_close(step[:, 0], whole[:, place])


def test_a_window_hides_what_is_far() -> None:
    sizes = BlockSizes(model_dim=D, window=1)
    encoder = TransformerEncoder(sizes, [AttentionSizes(num_heads=2, head_dim=3)], [11])
    decoder = TransformerDecoder(sizes, [AttentionSizes(num_heads=2, head_dim=3)], None, [11])
    hidden = torch.randn(B, S, D)
    changed = hidden.clone()
    changed[:, 3] += torch.randn(B, D)
    mask = AttentionMask.padding(torch.ones(B, S, dtype=torch.bool))
    moved = (encoder(changed, mask) - encoder(hidden, mask)).abs().sum(-1) > 1e-6
    assert moved.all(0).tolist() == [False, False, True, True, True, False, False]
    assert torch.equal(moved.any(0), moved.all(0))
    moved = (decoder(changed, [None]) - decoder(hidden, [None])).abs().sum(-1) > 1e-6
    assert moved.all(0).tolist() == [False, False, False, True, True, False, False]
    assert torch.equal(moved.any(0), moved.all(0))
