"""Matrices as JSON: whole numbers with a scale where weights need few digits, float32 where sums are followed.

A matrix is an object ``{"shape", "code", "scale", "data"}``. ``data`` is base64 of a zlib stream of little-endian
numbers in row-major order. In the codes ``u1`` and ``u2`` they are unsigned integers of one or two bytes, and a value
is its integer times the ``scale`` of its first index (of its head), so that it is off by at most half a scale. In the
code ``f4`` they are float32 and ``scale`` is empty. With numpy::

    numbers = np.frombuffer(zlib.decompress(base64.b64decode(m["data"])), "<" + m["code"]).reshape(m["shape"])
    values = numbers * np.array(m["scale"])[:, None, None] if m["scale"] else numbers
"""

import base64
import binascii
import math
import zlib
from typing import Annotated, Literal

import numpy as np
import pydantic
import torch
from torch import Tensor

Code = Literal["u1", "u2", "f4"]
Count = Annotated[int, pydantic.Field(ge=0, le=1 << 20)]

MAX_NUMBERS = 1 << 28
"""A file that claims larger matrices is refused before anything is unpacked."""


class LensValue(pydantic.BaseModel):
    """What the values of a lens have in common: frozen, and checked when they are read back."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Matrix(LensValue):
    """Numbers in compact form.

    Attributes:
        shape: sizes of the axes; the first is that of the heads.
        code: how each number is written.
        scale: what an integer is multiplied by, for each first index; empty for float32.
        data: base64 of zlib of the numbers.
    """

    shape: tuple[Count, ...]
    code: Code
    scale: tuple[float, ...] = ()
    data: str

    @classmethod
    def pack(cls, values: Tensor, code: Code) -> "Matrix":
        """Return numbers in compact form; integers need them to be at least 0."""
        numbers = values.detach().to("cpu", torch.float64)
        scale: tuple[float, ...] = ()
        if code != "f4":
            highest = 255 if code == "u1" else 65535
            largest_H = numbers.flatten(1).amax(1) if numbers.numel() else numbers.new_zeros(numbers.shape[0])
            scale = tuple((largest_H / highest).tolist())
            steps = (largest_H / highest).clamp(min=1e-300)
            numbers = (numbers / steps.view(-1, *[1] * (numbers.ndim - 1))).round()
        data = zlib.compress(numbers.numpy().astype(f"<{code}").tobytes(), 6)
        return cls(shape=tuple(values.shape), code=code, scale=scale, data=base64.b64encode(data).decode())

    @property
    def num_numbers(self) -> int:
        """How many there are."""
        return math.prod(self.shape)

    def unpack(self) -> Tensor:
        """Return the numbers as float32.

        Raises:
            ValueError: there are not as many as the shape says.
        """
        if self.num_numbers > MAX_NUMBERS:
            raise ValueError(f"a matrix of {self.num_numbers:,} numbers is larger than any lens writes")
        size = self.num_numbers * int(self.code[1])
        reader = zlib.decompressobj()
        try:
            content = reader.decompress(base64.b64decode(self.data, validate=True), size + 1)
        except (binascii.Error, zlib.error):
            raise ValueError("a matrix is damaged: its data are not base64 of zlib") from None
        if len(content) != size or (self.code != "f4" and len(self.scale) != self.shape[0]):
            raise ValueError(f"a matrix is damaged: its data do not fit its shape {list(self.shape)}")
        numbers = torch.from_numpy(np.frombuffer(content, f"<{self.code}").astype(np.float32)).view(self.shape)
        if not self.scale:
            return numbers
        return numbers * torch.tensor(self.scale).view(-1, *[1] * (len(self.shape) - 1))

    @pydantic.model_validator(mode="after")
    def _check(self) -> "Matrix":
        if not self.shape:
            raise ValueError("a matrix is damaged: it has no axes")
        self.unpack()
        return self
