"""How attention is watched and changed from outside: taps listen at named points, gates scale heads.

A point's name is the path of the layer and what is seen there:
``encoder.layers.3.self_attention.weights``, also ``.query``, ``.key``, ``.value``, ``.scores``, ``.context``,
and ``.factor`` where local attention lessens its weights.
Both are values handed down the forward pass; no module remembers them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


class Tap(ABC):
    """A listener. It says which points it wants, sees their tensors, and hands back the tensor to go on with."""

    @abstractmethod
    def wants(self, point: str) -> bool:
        """Say whether this point is listened to; a layer computes weights only for a listener."""

    @abstractmethod
    def visit(self, point: str, value: Tensor) -> Tensor:
        """See the tensor at a wanted point; return it, or its replacement of the same shape."""


@dataclass(frozen=True)
class ScopedTap:
    """A tap as a layer sees it: with the layer's path already before its points."""

    tap: Tap
    path: str

    def wants(self, point: str) -> bool:
        """Say whether ``path.point`` is listened to."""
        return self.tap.wants(f"{self.path}.{point}")

    def visit(self, point: str, value: Tensor) -> Tensor:
        """Show a tensor where ``path.point`` is wanted; return what to go on with."""
        name = f"{self.path}.{point}"
        return self.tap.visit(name, value) if self.tap.wants(name) else value


AnyTap = Tap | ScopedTap | None


def scope_tap(tap: AnyTap, path: str) -> ScopedTap | None:
    """Return the tap as the part at ``path`` should see it; None stays None."""
    if tap is None:
        return None
    return ScopedTap(tap.tap, f"{tap.path}.{path}") if isinstance(tap, ScopedTap) else ScopedTap(tap, path)


@dataclass(frozen=True)
class Gates:
    """A factor for each head of the named attentions, e.g. ``{"decoder.layers.0.cross_attention": gate_H}``.

    A head's context is multiplied by its gate before the output projection: 0 silences it, 1 leaves it as it is.
    Attentions that are not named have all gates open.
    """

    factors: Mapping[str, Float[Tensor, " H"]]
    path: str = ""

    def scope(self, path: str) -> "Gates":
        """Return the gates as the part at ``path`` should see them."""
        return Gates(self.factors, f"{self.path}.{path}" if self.path else path)

    def here(self) -> Float[Tensor, " H"] | None:
        """Return the gates of the attention at this path, or None when all are open."""
        return self.factors.get(self.path)


def scope_gates(gates: Gates | None, path: str) -> Gates | None:
    """Return the gates as the part at ``path`` should see them; None stays None."""
    return None if gates is None else gates.scope(path)
