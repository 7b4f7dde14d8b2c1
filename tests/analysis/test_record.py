"""What is recorded is what the model attended to, without the padding."""

import pytest
import torch

from heedful.analysis import record
from heedful.attention.scores import BilinearScoreConfig
from heedful.core.symbols import BOS_ID, EOS_ID
from heedful.core.types import Batch
from heedful.models.catalogue import build_model
from heedful.models.classifier import ClassifierConfig
from heedful.models.interfaces import VocabularySizes
from heedful.models.recurrent import RecurrentConfig
from heedful.models.transformer import TransformerConfig

SIZES = VocabularySizes(source=13, target=11, num_classes=3)
BATCH = Batch(
    lines=torch.arange(2),
    source=torch.tensor([[5, 6, 7, 8, EOS_ID], [9, EOS_ID, 0, 0, 0]]),
    source_lengths=torch.tensor([5, 2]),
    target=torch.tensor([[BOS_ID, 4, 5, EOS_ID], [BOS_ID, 6, EOS_ID, 0]]),
    target_lengths=torch.tensor([4, 3]),
)


@pytest.fixture(params=["transformer", "recurrent", "classifier"])
def model(request):
    configs = {
        "transformer": TransformerConfig(
            encoder_layers=2, decoder_layers=1, model_dim=8, num_heads=2, inner_dim=7, dropout=0.5
        ),
        "recurrent": RecurrentConfig(
            embedding_dim=5, hidden_dim=6, attention=BilinearScoreConfig(), has_input_feeding=True
        ),
        "classifier": ClassifierConfig(pooling="attention"),
    }
    torch.manual_seed(1)
    return build_model(configs[request.param], SIZES).train()


def test_maps_are_distributions_over_the_real_positions(model) -> None:
    recording = record(model, BATCH)
    sizes = {
        "encoder": ((5, 5), (2, 2)),
        "decoder": ((3, 3), (2, 2)),
        "cross": ((3, 5), (2, 2)),
        "pooling": ((1, 5), (1, 2)),
    }
    for row in range(2):
        maps = list(recording.maps(row))
        assert [each.site for each in maps] == model.attention_sites() != []
        for each in maps:
            assert tuple(each.weights.shape) == (each.site.num_heads, *sizes[each.site.kind][row])
            assert torch.allclose(each.weights.sum(dim=2), torch.ones(1))
    assert model.training


def test_company_is_not_recorded(model) -> None:
    alone = BATCH.select(torch.tensor([1]))
    together, single = list(record(model, BATCH).maps(1)), list(record(model, alone).maps(0))
    for one, other in zip(together, single, strict=True):
        assert torch.allclose(one.weights, other.weights, atol=1e-6)


def test_a_pattern_chooses(model) -> None:
    if len(model.attention_sites()) > 1:
        points = record(model, BATCH, "decoder.*.cross_attention.weights").points
        assert list(points) == ["decoder.layers.0.cross_attention.weights"]
    assert record(model, BATCH, "nothing").points == {}
