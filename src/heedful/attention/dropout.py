"""Dropout (Srivastava et al. 2014) whose draws come from a table of hashed words.

torch's own draws one Bernoulli number after another. A hash is plain integer arithmetic, which runs on whole registers
and takes a fraction of the time (benchmarks/results/dropout.md).
"""

import functools

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from heedful.core.errors import ConfigError

_TABLE_SIZE = 2**18
"""Words in the table: with what is computed from them they stay in a core's second cache."""


@functools.cache
def _table() -> Tensor:
    """Return int32 words without order: the hash of each index.

    Rounds of xor-shift and multiplication, whose constants are those of Wellons' search for low bias
    (github.com/skeeto/hash-prospector, 0x7feb352d and 0x846ca68b).
    """
    words = torch.arange(_TABLE_SIZE)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        words = (words ^ (words >> shift)) * factor & 0xFFFFFFFF
    return words.to(torch.int32)


def _random_words(count: int) -> Tensor:
    """Return int32 words that look random, as a function of words drawn from torch's default generator.

    Each table of words is changed by two drawn words of its own, of which one is multiplied by ("multiply-shift",
    Dietzfelbinger et al. 1997): what counts is then in the upper half of each word, and is added to the lower, which
    serves as a number of its own.
    """
    table = _table()
    words = torch.empty(count, dtype=torch.int32)
    for begin in range(0, count, _TABLE_SIZE):
        piece = words[begin : begin + _TABLE_SIZE]
        first, second = torch.randint(-(2**31), 2**31, (2,)).tolist()
        torch.bitwise_xor(table[: len(piece)], first, out=piece).mul_(second | 1)
        piece.add_(piece >> 16)
    return words


_WORD_TYPES = {torch.bfloat16: torch.int16, torch.float32: torch.int32}


def _factors(shape: torch.Size, scale: float, dtype: torch.dtype) -> Tensor:
    """Return a factor for each element: 0, or the scale with probability ``1 / scale``.

    The comparison is made in place, in the integer type as wide as the floating-point one, and its 0 or 1 multiplied by
    the bits of the scale, which is then read as floating-point: conversions would cost more than all the rest.
    """
    word_type = _WORD_TYPES[dtype]
    bits = torch.iinfo(word_type).bits
    count = shape.numel()
    words = _random_words((count * bits + 31) // 32).view(word_type)[:count].view(shape)
    threshold = round((1 - 1 / scale) * 2**bits) - 2 ** (bits - 1)
    return words.ge_(threshold).mul_(_bits_of(scale, dtype)).view(dtype)


@functools.cache
def _bits_of(scale: float, dtype: torch.dtype) -> int:
    """Return the bits of a number of that type, read as an integer."""
    return int(torch.tensor(scale, dtype=dtype).view(_WORD_TYPES[dtype]))


class Dropout(nn.Module):
    """In training, set each element to zero with a probability and scale the others up; otherwise do nothing.

    The scale ``1 / (1 - probability)`` is rounded to bfloat16 and the probability adapted to it, so that the expected
    value is the input in every type: 0.1 becomes 0.0986 with the scale 1.109375, and less than 0.004 becomes none.
    torch's default generator alone decides what is dropped.

    Attributes:
        probability: as asked for, from 0 to less than 1.
        scale: factor of what is kept.
        effective_probability: ``1 - 1 / scale``.

    Raises:
        ConfigError: the probability is out of range.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        if not 0 <= probability < 1:
            raise ConfigError(f"`dropout` must be at least 0 and less than 1, but is {probability}. Try 0.1.")
        self.probability = probability
        self.scale = float(torch.tensor(1 / (1 - probability), dtype=torch.bfloat16))
        self.effective_probability = 1 - 1 / self.scale

    @property
    def is_active(self) -> bool:
        """True when a call would change its input."""
        return self.training and self.effective_probability > 0

    def forward(self, values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return the values, some of them set to zero."""
        if not self.is_active:
            return values
        if values.device.type != "cpu":
            return functional.dropout(values, self.effective_probability, training=True)
        return values * self.factors(values.shape, values)

    def add(self, residual: Float[Tensor, "*shape"], values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Return ``residual + self(values)``, in one pass over both."""
        if not self.is_active:
            return residual + values
        return torch.addcmul(residual, values, self.factors(values.shape, values))

    def factors(self, shape: torch.Size, like: Tensor) -> Float[Tensor, "..."]:
        """Return what an active dropout multiplies by: 0 or the scale, drawn anew for each element of the shape.

        Args:
            shape: of the values to be dropped.
            like: gives type and device.
        """
        if like.device.type != "cpu":
            return functional.dropout(like.new_ones(shape), self.effective_probability, training=True)
        if like.dtype in _WORD_TYPES:
            return _factors(shape, self.scale, like.dtype)
        return _factors(shape, self.scale, torch.float32).to(like.dtype)

    def extra_repr(self) -> str:
        """Show the probability."""
        return f"{self.probability}"
