"""One Transformer under neutral names, so that every library starts from the same weights and reads the same batches.

Needs numpy alone, for it runs in every contender's own environment. The architecture is the published one (Vaswani et
al. 2017): post-norm, sinusoidal positions with sines and cosines interleaved, ReLU, embeddings scaled by the root of
their width and shared by both sides and the output, which has no bias.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PAD, UNK, BOS, EOS = 0, 1, 2, 3
Weights = dict[str, np.ndarray]


@dataclass(frozen=True)
class Shape:
    """The size of a model, the same for every contender."""

    name: str
    model_dim: int
    num_layers: int
    inner_dim: int
    num_heads: int
    vocabulary: int = 8000
    dropout: float = 0.1

    def num_parameters(self) -> int:
        """Count the weights, shared ones once."""
        return sum(math.prod(shape) for _, shape in names(self))

    def flops_of(
        self, source_tokens: int, target_tokens: int, source_squares: int, target_squares: int, crossed: int
    ) -> float:
        """Return the floating-point operations of a training step on these real tokens, padding not counted.

        Two for each multiply-add; the backward pass costs twice the forward. The last three are the sums over sentences
        of source length squared, target length squared and their product, for attention.
        """
        attention_dim, layers = self.model_dim, self.num_layers
        square = attention_dim * attention_dim
        encoder = layers * (4 * square + 2 * attention_dim * self.inner_dim)
        decoder = layers * (6 * square + 2 * attention_dim * self.inner_dim) + self.vocabulary * attention_dim
        memory = layers * 2 * square
        products = 2 * layers * attention_dim * (source_squares + target_squares / 2 + crossed)
        return 3 * 2 * ((encoder + memory) * source_tokens + decoder * target_tokens + products)


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("256-wide", model_dim=256, num_layers=3, inner_dim=1024, num_heads=8),
        Shape("128-wide", model_dim=128, num_layers=4, inner_dim=256, num_heads=4),
        Shape("tiny", model_dim=32, num_layers=1, inner_dim=64, num_heads=2),
    )
}


def names(shape: Shape) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield every weight's neutral name and its shape; matrices are ``output x input``."""
    width, inner = shape.model_dim, shape.inner_dim
    yield "embedding", (shape.vocabulary, width)
    for side in ("encoder", "decoder"):
        for layer in range(shape.num_layers):
            prefix = f"{side}.{layer}"
            for attention in ("self",) if side == "encoder" else ("self", "cross"):
                for part in ("query", "key", "value", "output"):
                    yield f"{prefix}.{attention}.{part}.weight", (width, width)
                    yield f"{prefix}.{attention}.{part}.bias", (width,)
                yield f"{prefix}.{attention}.norm.weight", (width,)
                yield f"{prefix}.{attention}.norm.bias", (width,)
            yield f"{prefix}.feed_forward.inner.weight", (inner, width)
            yield f"{prefix}.feed_forward.inner.bias", (inner,)
            yield f"{prefix}.feed_forward.outer.weight", (width, inner)
            yield f"{prefix}.feed_forward.outer.bias", (width,)
            yield f"{prefix}.feed_forward.norm.weight", (width,)
            yield f"{prefix}.feed_forward.norm.bias", (width,)


def fresh_weights(shape: Shape, seed: int) -> Weights:
    """Return weights to start from: matrices after Glorot and Bengio (2010), embeddings of variance 1 once scaled."""
    generator = np.random.default_rng(seed)
    weights = {}
    for name, size in names(shape):
        if name == "embedding":
            value = generator.normal(0, shape.model_dim**-0.5, size)
        elif name.endswith("norm.weight"):
            value = np.ones(size)
        elif len(size) == 1:
            value = np.zeros(size)
        else:
            limit = math.sqrt(6 / (size[0] + size[1]))
            value = generator.uniform(-limit, limit, size)
        weights[name] = value.astype(np.float32)
    return weights


def sinusoids(num_positions: int, model_dim: int) -> np.ndarray:
    """Return the published position table, ``positions x D``: sine at even, cosine at odd columns."""
    angles = np.arange(num_positions)[:, None] * np.exp(np.arange(0, model_dim, 2) * -(math.log(10000.0) / model_dim))
    table = np.zeros((num_positions, model_dim), dtype=np.float32)
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)
    return table


def save_weights(path: Path, weights: Weights) -> None:
    """Write weights under their neutral names."""
    np.savez(path, **weights)


def load_weights(path: Path) -> Weights:
    """Read weights written by ``save_weights``."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs as ids, and the batches that every contender takes in the same order.

    Attributes:
        source: source rows, ``w1 .. wn EOS`` each.
        target: target rows, ``BOS w1 .. wn EOS`` each.
        batches: rows of each batch.
    """

    source: list[np.ndarray]
    target: list[np.ndarray]
    batches: list[np.ndarray]

    def save(self, path: Path) -> None:
        """Write everything as one compressed file."""
        np.savez_compressed(
            path, **_flat("source", self.source), **_flat("target", self.target), **_flat("batches", self.batches)
        )

    @classmethod
    def load(cls, path: Path) -> "Pairs":
        """Read what ``save`` wrote."""
        with np.load(path) as file:
            return cls(*(np.split(file[name], file[f"{name}_ends"][:-1]) for name in ("source", "target", "batches")))

    def padded(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a batch as two padded arrays, source ``B S`` and target ``B T``."""
        rows = self.batches[index]
        return _pad([self.source[row] for row in rows]), _pad([self.target[row] for row in rows])

    def counts(self, first: int, last: int) -> tuple[int, int, int, int, int]:
        """Return what ``Shape.flops_of`` asks, over the batches from first to before last."""
        rows = np.concatenate(self.batches[first:last])
        source = np.array([len(self.source[row]) for row in rows])
        target = np.array([len(self.target[row]) - 1 for row in rows])
        return tuple(
            int(each) for each in (source.sum(), target.sum(), (source**2).sum(), (target**2).sum(), source @ target)
        )


def _flat(name: str, rows: list[np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.concatenate(rows), f"{name}_ends": np.cumsum([len(row) for row in rows])}


def _pad(rows: list[np.ndarray]) -> np.ndarray:
    padded = np.full((len(rows), max(map(len, rows))), PAD, dtype=np.int64)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return padded


def group_by_length(
    source: list[np.ndarray], target: list[np.ndarray], batch_tokens: int, seed: int
) -> list[np.ndarray]:
    """Return batches of pairs of like length, each at most ``batch_tokens`` positions (both sides, padding included).

    Pairs are shuffled, sorted by target then source length, cut, and the batches shuffled.
    """
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(source))
    order = order[np.lexsort(([len(source[row]) for row in order], [len(target[row]) for row in order]))]
    batches: list[np.ndarray] = []
    start, widest_source = 0, 0
    for place, row in enumerate(order):
        widest = max(widest_source, len(source[row]))
        if place > start and (place - start + 1) * (widest + len(target[row])) > batch_tokens:
            batches.append(order[start:place])
            start, widest = place, len(source[row])
        widest_source = widest
    batches.append(order[start:])
    return [batches[place] for place in generator.permutation(len(batches))]
