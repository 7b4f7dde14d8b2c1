from typing import Any

import pytest
import torch

from heedful.core.config import parse_config, read_toml, write_toml
from heedful.core.errors import ConfigError
from heedful.models import VocabularySizes, build_model
from heedful.models.transformer import Transformer, TransformerConfig

SIZES = VocabularySizes(source=23, target=29)
JOINT = VocabularySizes(source=23, target=23, is_shared=True)
SMALL: dict[str, Any] = {"model_dim": 12, "inner_dim": 17, "encoder_layers": 1, "decoder_layers": 2, "num_heads": 3}


def _build(sizes: VocabularySizes = SIZES, **values: Any) -> Transformer:
    model = build_model(parse_config(TransformerConfig, {**SMALL, **values}, prefix="model"), sizes)
    assert isinstance(model, Transformer)
    return model


@pytest.mark.parametrize(("tied", "num_matrices"), [("none", 3), ("target", 2), ("all", 1)])
def test_tied_embeddings_are_one_parameter(tied: str, num_matrices: int) -> None:
    model = _build(JOINT, tied_embeddings=tied)
    assert sum(parameter.shape == (23, 12) for parameter in model.parameters()) == num_matrices


def test_each_site_has_its_own_heads() -> None:
    heads = {"encoder": [2], "decoder": [0, 1], "cross": 3}
    model = _build(num_heads=heads, head_dim={"encoder": 5, "decoder": 7, "cross": [2, 3]})
    assert [(site.path, site.num_heads, site.head_dim) for site in model.attention_sites()] == [
        ("encoder.layers.0.self_attention", 2, 5),
        ("decoder.layers.0.self_attention", 0, 7),
        ("decoder.layers.0.cross_attention", 3, 2),
        ("decoder.layers.1.self_attention", 1, 7),
        ("decoder.layers.1.cross_attention", 3, 3),
    ]


def test_each_feed_forward_layer_has_its_own_width() -> None:
    model = _build(inner_dim={"encoder": 5, "decoder": [7, 2]})
    assert {path: block.feed_forward.inner_dim for path, block in model.blocks().items()} == {
        "encoder.layers.0": 5,
        "decoder.layers.0": 7,
        "decoder.layers.1": 2,
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_heads": 5}, r"`model.num_heads` must divide `model.model_dim` \(12\), but is 5. Try "),
        ({"num_heads": {"encoder": 3, "decoder": [3], "cross": 3}}, r"`model.num_heads.decoder` has 1 numbers"),
        ({"num_heads": {"encoder": 3, "decoder": 0, "cross": 3}}, r"`model.head_dim` is missing"),
        ({"num_heads": {"encoder": -1}, "head_dim": 2}, r"`model.num_heads.encoder` has a negative number"),
        ({"inner_dim": {"encoder": 5}}, r"`model.inner_dim.decoder` must be at least 1 in every layer, but is 0"),
        ({"inner_dim": {"encoder": 5, "decoder": [5]}}, r"`model.inner_dim.decoder` has 1 numbers"),
        ({"inner_dim": 0}, r"`model.inner_dim` is 0"),
        ({"tied_embeddings": "all"}, r"Try `text.is_joint=true`"),
        ({"positions": "sinus"}, r"Did you mean `sinusoidal`"),
        ({"num_head": 5}, r"`model.num_head` is not a known key. Did you mean `num_heads`"),
    ],
)
def test_mistakes_are_explained(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _build(**values)


def test_a_configuration_survives_toml(tmp_path) -> None:
    config = TransformerConfig(num_heads={"encoder": [2, 0], "decoder": 3}, positions={"kind": "rotary"})
    (tmp_path / "model.toml").write_text(write_toml(config.model_dump()))
    assert parse_config(TransformerConfig, read_toml(tmp_path / "model.toml")) == config


def test_fresh_logits_are_of_order_one() -> None:
    torch.manual_seed(3)
    model = _build(VocabularySizes(source=500, target=500), model_dim=64, num_heads=4)
    logits = model.output(torch.nn.functional.layer_norm(torch.randn(50, 64), (64,)))
    assert 0.7 < logits.std() < 1.4
