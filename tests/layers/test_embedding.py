import math

import torch

from heedful.core.symbols import BOS_ID, EOS_ID, NUM_RESERVED, PAD_ID, UNK_ID
from heedful.layers.embedding import InputEmbedding, TokenEmbedding
from heedful.layers.positions import LearnedPositions, SinusoidalPositions

V, D = 11, 6


def _ids() -> torch.Tensor:
    return torch.tensor([[BOS_ID, 7, 5, EOS_ID], [BOS_ID, 9, EOS_ID, PAD_ID]])


def test_added_positions_by_hand() -> None:
    tokens, positions = TokenEmbedding(V, D), SinusoidalPositions(D)
    hidden = InputEmbedding(tokens, positions)(_ids())
    expected = tokens.weight[7] * math.sqrt(D)
    # At place 1 the widths' first pair holds the sine and cosine of 1.
    expected = expected + positions(hidden)[1]
    torch.testing.assert_close(hidden[0, 1], expected)
    torch.testing.assert_close(positions(hidden)[1, :2], torch.tensor([math.sin(1), math.cos(1)]))


def test_an_offset_gives_the_later_places() -> None:
    embedding = InputEmbedding(TokenEmbedding(V, D), LearnedPositions(D, 10))
    torch.testing.assert_close(embedding(_ids()[:, 2:], offset=2), embedding(_ids())[:, 2:])


def test_concatenated_positions_equal_two_products() -> None:
    tokens, positions = TokenEmbedding(V, D), LearnedPositions(D, 10)
    embedding = InputEmbedding(tokens, positions, is_concatenated=True)
    of_tokens, of_places = embedding.projection.weight.split(D, dim=1)
    expected = tokens(_ids()) * math.sqrt(D) @ of_tokens.T + positions.weight[:4] @ of_places.T
    torch.testing.assert_close(embedding(_ids()), expected)


def test_word_dropout_spares_reserved_symbols_and_prediction() -> None:
    torch.manual_seed(1)
    tokens = TokenEmbedding(V, D)
    embedding = InputEmbedding(tokens, None, word_dropout=0.5)
    ids = torch.randint(NUM_RESERVED, V, (50, 40))
    ids[:, 0], ids[:, -1] = BOS_ID, EOS_ID
    read = embedding(ids)
    is_unknown = (read == tokens.weight[UNK_ID] * embedding.scale).all(-1)
    assert not is_unknown[:, [0, -1]].any()
    assert 0.45 < is_unknown[:, 1:-1].float().mean() < 0.55
    torch.testing.assert_close(embedding.eval()(ids), tokens.weight[ids] * embedding.scale)


def test_a_shared_weight_is_one_parameter() -> None:
    first = TokenEmbedding(V, D)
    assert TokenEmbedding(V, D, weight=first.weight).weight is first.weight
