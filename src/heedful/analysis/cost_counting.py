"""Counting what a computation does: operations of matrix products, bytes moved, and the most memory alive at once.

torch's own ``FlopCounterMode`` counts the same products but does not know the CPU's fused attention, so that it finds
nothing where self-attention does most. A test holds both equal on what both know. Softmax, activations, norms and other
elementwise work are left out of the operations, as in the classic table; what they move is counted.
"""

import math
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten


def _matrix(left: Tensor, right: Tensor) -> int:
    """Multiply-adds of ``... N X @ ... X O``."""
    return left.numel() * right.shape[-1]


def _attended(query: Tensor, keys: Tensor) -> int:
    """Multiply-adds of one product between all queries and all keys, ``B H Q E`` and ``B H K E``."""
    return query.numel() * keys.shape[2]


_PRODUCTS: dict[Any, Callable[..., int]] = {
    aten.mm: lambda left, right, **_: _matrix(left, right),
    aten.bmm: lambda left, right, **_: _matrix(left, right),
    aten.mv: lambda left, right, **_: left.numel(),
    aten.dot: lambda left, right, **_: left.numel(),
    aten.addmm: lambda added, left, right, **_: _matrix(left, right),
    aten.baddbmm: lambda added, left, right, **_: _matrix(left, right),
    aten._scaled_dot_product_flash_attention_for_cpu: lambda query, keys, *_, **__: 2 * _attended(query, keys),
    # Scores are computed anew, then gradients of queries, keys, values and weights.
    aten._scaled_dot_product_flash_attention_for_cpu_backward: lambda grad, query, keys, *_, **__: (
        5 * _attended(query, keys)
    ),
}
"""Multiply-adds of every kind of product that the layers use."""

_UNTOUCHED = (aten.empty, aten.empty_like, aten.empty_strided, aten.new_empty, aten.new_empty_strided)
"""What only sets memory aside."""


class Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts while it is entered. Two operations are one multiply-add.

    Attributes:
        operations: of all matrix products.
        num_products: how many were computed one after the other.
        bytes_moved: read and written by all operations, as though nothing stayed in a cache.
        peak_bytes: the most that was alive at once of what was made inside, temporaries of single kernels left out.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = 0
        self.num_products = 0
        self.bytes_moved = 0
        self.peak_bytes = 0
        self._alive_bytes = 0
        self._known: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, and count it."""
        kwargs = kwargs or {}
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        for each in given:
            self._watch(each, is_made=False)
        made = func(*args, **kwargs)
        returned = [each for each in tree_leaves(made) if isinstance(each, Tensor)]
        packet = func._overloadpacket
        if packet in _PRODUCTS:
            self.operations += 2 * _PRODUCTS[packet](*args, **kwargs)
            self.num_products += 1
        self._count_bytes(func, given, returned)
        for each in returned:
            self._watch(each, is_made=True)
        return made

    def _count_bytes(self, func: Any, given: list[Tensor], returned: list[Tensor]) -> None:
        places = {each.untyped_storage().data_ptr() for each in given}
        is_view = not func._schema.is_mutable and all(
            each.untyped_storage().data_ptr() in places for each in returned if each.numel()
        )
        if is_view or func._overloadpacket in _UNTOUCHED:
            return
        self.bytes_moved += sum(map(_size, given)) + sum(map(_size, returned))

    def _watch(self, tensor: Tensor, *, is_made: bool) -> None:
        """Count memory that was made inside when it is first seen, and take it back when it is given up."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._known:
            return
        self._known[key] = storage.nbytes() if is_made else 0
        self._alive_bytes += self._known[key]
        self.peak_bytes = max(self.peak_bytes, self._alive_bytes)
        weakref.finalize(storage, self._forget, key)

    def _forget(self, key: int) -> None:
        self._alive_bytes -= self._known.pop(key, 0)


def _size(tensor: Tensor) -> int:
    """Return how many different bytes a tensor stands for: an axis that was only expanded has one."""
    shape = [size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride]
    return math.prod(shape) * tensor.element_size() if tensor.numel() else 0


def count(work: Callable[[], object]) -> Counting:
    """Do the work once and return what it did."""
    counting = Counting()
    with counting:
        work()
    return counting
