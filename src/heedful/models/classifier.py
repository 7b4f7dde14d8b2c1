"""A classifier of texts: an encoder, one vector for the row, a logit for each class."""

from typing import Literal

import pydantic
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.dropout import Dropout
from heedful.attention.tap import Gates, Tap, scope_gates, scope_tap
from heedful.core.config import Config
from heedful.core.errors import ConfigError
from heedful.core.types import Batch
from heedful.layers.pooling import PoolingName, build_pooling
from heedful.layers.transformer_block import TransformerBlock
from heedful.models.interfaces import AttentionSite, Classifies, VocabularySizes
from heedful.models.text_encoders import AnyTextEncoderConfig, ConvolutionalTextConfig, build_text_encoder


class ClassifierConfig(Config):
    """Keys of a classifier. As they stand they are those of Kim (2014, section 3.1), but for his `max_norm` of 3.

    Attributes:
        encoder: a table whose ``kind`` is ``recurrent``, ``convolutional`` or ``transformer``.
        pooling: ``mean``, ``max``, ``first`` or ``attention``.
        dropout: rate on the pooled vector.
        max_norm: longest that the weight vector of a class may be; absent means any length.
    """

    kind: Literal["classifier"] = "classifier"
    encoder: AnyTextEncoderConfig = pydantic.Field(default_factory=ConvolutionalTextConfig)
    pooling: PoolingName = "max"
    dropout: float = pydantic.Field(0.5, ge=0, lt=1)
    max_norm: float | None = pydantic.Field(None, gt=0)


class Classifier(Classifies):
    """Encoder, pooling and a linear layer.

    Raises:
        ConfigError: there is no source vocabulary, or there are no labels.
    """

    def __init__(self, config: ClassifierConfig, sizes: VocabularySizes) -> None:
        super().__init__()
        if sizes.source is None or sizes.num_classes is None:
            raise ConfigError("`model.kind` is `classifier`, which needs a source vocabulary and labels.")
        self.encoder = build_text_encoder(config.encoder, sizes.source)
        self.pooling = build_pooling(config.pooling, self.encoder.output_dim)
        self.dropout = Dropout(config.dropout)
        self.output = BoundedLinear(self.encoder.output_dim, sizes.num_classes, config.max_norm)

    def attention_sites(self) -> list[AttentionSite]:
        """List the encoder's, then the pooling's where it is an attention."""
        sites = self.encoder.sites("encoder")
        if self.pooling.num_heads:
            width = self.encoder.output_dim
            sites.append(AttentionSite(path="pooling", kind="pooling", layer=0, num_heads=1, head_dim=width))
        return sites

    def blocks(self) -> dict[str, TransformerBlock]:
        """Return the encoder's."""
        return self.encoder.blocks("encoder")

    def classify(self, batch: Batch, *, tap: Tap | None = None, gates: Gates | None = None) -> Float[Tensor, "B C"]:
        """Return a logit for each class."""
        values = self.encoder(batch, tap=scope_tap(tap, "encoder"), gates=scope_gates(gates, "encoder"))
        pooled = self.pooling(
            values, batch.source_keep, tap=scope_tap(tap, "pooling"), gates=scope_gates(gates, "pooling")
        )
        logits: Tensor = self.output(self.dropout(pooled))
        return logits


class BoundedLinear(nn.Module):
    """A linear layer whose weight vectors have at most a given length (max-norm; Hinton et al. 2012, section 2.1).

    A vector that has grown too long is scaled back whenever it is used, rather than after each update, so that no
    training loop needs to know.

    Args:
        input_dim: width of the input.
        num_classes: width of the output.
        max_norm: the length; None means any.
    """

    def __init__(self, input_dim: int, num_classes: int, max_norm: float | None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_classes, input_dim))
        self.bias = nn.Parameter(torch.zeros(num_classes))
        self.max_norm = max_norm
        nn.init.xavier_uniform_(self.weight)

    def forward(self, inputs: Float[Tensor, "B D"]) -> Float[Tensor, "B C"]:
        """Return logits."""
        weight = self.weight
        if self.max_norm is not None:
            length = weight.norm(dim=1, keepdim=True).clamp(min=self.max_norm)
            weight = weight * (self.max_norm / length)
        return functional.linear(inputs, weight, self.bias)
