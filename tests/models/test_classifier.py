"""The classifier: it learns what each encoder and pooling can see, and keeps its weights short."""

from typing import Any

import pytest
import torch

from heedful.core.config import parse_config
from heedful.core.errors import ConfigError
from heedful.core.symbols import EOS_ID, PAD_ID
from heedful.core.types import Batch
from heedful.losses import classification_loss
from heedful.models.classifier import BoundedLinear, Classifier, ClassifierConfig
from heedful.models.interfaces import VocabularySizes

SIZES = VocabularySizes(source=11, num_classes=2)
ENCODERS: list[dict[str, Any]] = [
    {"kind": "recurrent", "embedding_dim": 6, "hidden_dim": 10},
    {"kind": "convolutional", "embedding_dim": 6, "num_filters": 11, "filter_widths": [1, 2]},
    {"kind": "transformer", "model_dim": 12, "num_heads": 3, "inner_dim": 13, "num_layers": 1},
]


def make_batch(generator: torch.Generator, rows: int = 32) -> Batch:
    """Return rows labelled by whether the symbol 5 is among them."""
    lengths = torch.randint(2, 8, (rows,), generator=generator)
    source = torch.randint(6, 11, (rows, 7), generator=generator)
    labels = torch.arange(rows) % 2
    for row in range(rows):
        words = int(lengths[row]) - 1
        if labels[row]:
            source[row, int(torch.randint(words, (1,), generator=generator))] = 5
        source[row, words] = EOS_ID
        source[row, words + 1 :] = PAD_ID
    return Batch(lines=torch.arange(rows), source=source, source_lengths=lengths, labels=labels)


@pytest.mark.parametrize("pooling", ["max", "attention"])
@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda each: each["kind"])
def test_learns_to_see_a_word(encoder: dict[str, Any], pooling: str) -> None:
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    values = {"encoder": {**encoder, "dropout": 0.0}, "pooling": pooling, "dropout": 0.1, "max_norm": 3.0}
    model = Classifier(parse_config(ClassifierConfig, values), SIZES)
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-2)
    for _ in range(50):
        batch = make_batch(generator)
        loss = classification_loss(model.classify(batch), batch.labels)
        optimiser.zero_grad()
        (loss.total / loss.count).backward()
        optimiser.step()
    unseen = make_batch(generator, rows=64)
    accuracy = (model.eval().classify(unseen).argmax(1) == unseen.labels).float().mean()
    assert accuracy > 0.9


def test_max_norm_shortens_long_vectors_alone() -> None:
    bounded = BoundedLinear(2, 2, 3.0)
    with torch.no_grad():
        bounded.weight.copy_(torch.tensor([[6.0, 8.0], [1.0, 2.0]]))  # lengths 10 and 2.2
    logits = bounded(torch.tensor([[1.0, 1.0]]))
    torch.testing.assert_close(logits, torch.tensor([[14.0 * 0.3, 3.0]]))


def test_an_even_width_for_two_directions() -> None:
    with pytest.raises(ConfigError, match=r"encoder.hidden_dim` must be even .* is 7. Try 8."):
        parse_config(ClassifierConfig, {"encoder": {"kind": "recurrent", "hidden_dim": 7}})


def test_labels_are_needed() -> None:
    with pytest.raises(ConfigError, match="labels"):
        Classifier(ClassifierConfig(), VocabularySizes(source=11))
