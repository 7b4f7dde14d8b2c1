"""The ways to find out which heads a model can do without, while it learns to.

Each is asked for gates at every batch and told at every update how many heads should be open (`Budget`); at the end it
names those that stay. They differ in where the ranking comes from.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.pruning import hard_concrete, subsets
from heedful.pruning.heads import Heads

METHODS = ("gates", "exact", "gradient", "confidence", "random")

Rank = Callable[[Float[Tensor, " heads"]], Float[Tensor, " heads"]]
"""Given which heads are open (1) and closed (0), say what each is worth."""


START_SPREAD = 4.0
"""How far apart what is learnt of the first and of the last head to close starts. Gates are all open nevertheless, and
those that would close last, three of eight, begin alike at `HardConcreteGates.furthest`. The noise of a subset's keys,
with a standard deviation of 1.3, lets every head be drawn."""


def _spread(heads: Heads, start: Float[Tensor, " heads"] | None) -> Float[Tensor, " heads"]:
    return torch.zeros(len(heads)) if start is None else START_SPREAD * (start - 0.5)


def order_of_closing(rank: Rank, num_heads: int, share: float = 0.15) -> Float[Tensor, " heads"]:
    """Return when each head would be closed by a ranking that is asked anew each time: 0 first, 1 last.

    Nothing is trained between. Heads that the ranking no longer tells apart are all last.

    Args:
        rank: says what heads are worth.
        num_heads: how many there are.
        share: of those still open that are closed at each time, those worth least.
    """
    when = torch.ones(num_heads)
    is_open = torch.ones(num_heads)
    while (left := int(is_open.sum())) > 1:
        worth = rank(is_open).masked_fill(is_open == 0, torch.inf)
        if worth[is_open > 0].max() - worth.min() < 1e-6:
            break
        closed = worth.sort(stable=True).indices[: max(1, round(share * left))]
        when[closed] = (num_heads - left) / num_heads
        is_open[closed] = 0.0
    return when


class HeadGates(nn.Module, ABC):
    """What gates are while a model is pruned.

    The parameters are float32 masters whatever type the model computes in: a gate's location must be able to move by
    less than bfloat16 can tell.

    Attributes:
        heads: which heads.
        rate: learning rate of its own parameters, which have far to go.
    """

    rate = 0.05

    def __init__(self, heads: Heads) -> None:
        super().__init__()
        self.heads = heads

    @abstractmethod
    def sample(self) -> Float[Tensor, " heads"]:
        """Return a factor for each head, drawn anew for each batch where the method draws."""

    @abstractmethod
    def expected(self) -> Float[Tensor, " heads"]:
        """Return the factors without noise."""

    @abstractmethod
    def advance(self, num_open: float) -> Tensor | None:
        """Take note of how many heads should be open; return what the update adds to its mean loss, or None."""

    @abstractmethod
    def num_open(self) -> int:
        """Return how many heads it would keep as it stands."""

    @abstractmethod
    def kept(self, num_heads: int) -> dict[str, tuple[int, ...]]:
        """Return the heads that would stay if exactly so many did."""


class HardConcreteGates(HeadGates):
    """L0 regularisation with hard-concrete gates (Louizos et al. 2018; on heads: Voita et al. 2019, section 6).

    The expected number of open gates E is held to the wanted number W by a price, in nats per target for each head
    that is open more often than not: the multiplier of the constraint E = W, which rises while too many are open and
    falls while too few are, with a term in proportion to the error that keeps it from swinging (an augmented
    Lagrangian; Wang, Wohlwend and Lei 2020, section 3.2). Nothing has to be tuned for a number of heads, and as the
    price is that of one head, it means the same however many layers are gated.

    All gates start open (around `hard_concrete.OPEN`): without noise each is exactly 1, so the model begins as it was.

    Args:
        heads: which heads.
        start: when each should close where nothing speaks against it, 0 first, 1 last; None for no such order.
    """

    integral_rate = 0.003
    """By how much the price rises in an update at which all heads are open and none should be."""
    proportion = 0.6
    """Price of a head on top when all heads are open and none should be.

    The two were found on 48 heads of a toy whose worth is known: of the pairs tried they keep the number nearest to the
    wanted one, and choose as well as any.
    """
    furthest = 5.0
    """How far a location may go from 0: beyond, a closed gate would hardly ever be drawn open again."""

    price: Tensor

    def __init__(self, heads: Heads, start: Float[Tensor, " heads"] | None = None) -> None:
        super().__init__(heads)
        self.log_alpha = nn.Parameter(hard_concrete.OPEN + _spread(heads, start))
        self._master = (self.log_alpha,)  # not a parameter's place, so that nobody swaps in a copy of another type
        self.register_buffer("price", torch.zeros(()))

    def sample(self) -> Float[Tensor, " heads"]:
        (log_alpha,) = self._master
        uniform = torch.rand_like(log_alpha).clamp(1e-6, 1 - 1e-6)
        return hard_concrete.sample(log_alpha, uniform)

    def expected(self) -> Float[Tensor, " heads"]:
        return hard_concrete.without_noise(self._master[0].detach())

    def advance(self, num_open: float) -> Tensor | None:
        with torch.no_grad():
            self._master[0].clamp_(-self.furthest, self.furthest)
        expected_open = hard_concrete.open_probability(self._master[0]).sum()
        excess = expected_open - num_open
        share = excess.detach() / len(self.heads)
        self.price = (self.price + self.integral_rate * share).clamp(-1.0, 1.0)
        return (self.price + self.proportion * share) * excess

    def num_open(self) -> int:
        return int((hard_concrete.open_probability(self._master[0].detach()) > 0.5).sum())

    def kept(self, num_heads: int) -> dict[str, tuple[int, ...]]:
        return self.heads.best(self._master[0], num_heads)


class SubsetGates(HeadGates):
    """Exactly as many open heads as wanted, at every batch (Li, Cotterell and Sachan 2021, section 3).

    Keys of the heads are learnt through the relaxation of Gumbel top-k, while the model sees whole heads or none
    (straight-through). As the number falls from all heads to those that stay, so do temperature and noise, so that
    training ends with the subset that is kept.

    Args:
        heads: which heads.
        end: how many stay.
        start: when each should close where nothing speaks against it, 0 first, 1 last; None for no such order.
    """

    temperatures = (1.0, 0.2)
    """At the beginning and at the end."""

    size: Tensor
    progress: Tensor

    def __init__(self, heads: Heads, end: int, start: Float[Tensor, " heads"] | None = None) -> None:
        super().__init__(heads)
        self.end = end
        self.keys = nn.Parameter(_spread(heads, start))
        self._master = (self.keys,)
        self.register_buffer("size", torch.tensor(len(heads)))
        self.register_buffer("progress", torch.zeros(()))

    def sample(self) -> Float[Tensor, " heads"]:
        (keys,) = self._master
        noisy = keys + (1 - self.progress) * subsets.gumbel(keys)
        first, last = self.temperatures
        return subsets.straight_through(noisy, int(self.size), first + (last - first) * float(self.progress))

    def expected(self) -> Float[Tensor, " heads"]:
        return subsets.top(self._master[0].detach(), int(self.size))

    def advance(self, num_open: float) -> Tensor | None:
        self.size.fill_(round(num_open))
        self.progress.fill_(1 - (num_open - self.end) / max(len(self.heads) - self.end, 1))
        return None

    def num_open(self) -> int:
        return int(self.size)

    def kept(self, num_heads: int) -> dict[str, tuple[int, ...]]:
        return self.heads.best(self._master[0], num_heads)


class RankedGates(HeadGates):
    """Heads closed for good in a few steps, at each those that a ranking finds worth least.

    Args:
        heads: which heads.
        end: how many stay.
        rank: says what each head is worth, given which are open.
        num_steps: in how many steps heads close; each ranks anew.
    """

    is_open: Tensor

    def __init__(self, heads: Heads, end: int, rank: Rank, num_steps: int = 8) -> None:
        super().__init__(heads)
        self.end = end
        self.rank = rank
        self.step_size = max(1, -(-(len(heads) - end) // num_steps))
        self.register_buffer("is_open", torch.ones(len(heads)))

    def sample(self) -> Float[Tensor, " heads"]:
        return self.is_open

    def expected(self) -> Float[Tensor, " heads"]:
        return self.is_open

    def advance(self, num_open: float) -> Tensor | None:
        wanted, now = round(num_open), self.num_open()
        if now - wanted >= self.step_size or now > wanted == self.end:
            self.is_open = self._ranked(wanted)
        return None

    def num_open(self) -> int:
        return int(self.is_open.sum())

    def kept(self, num_heads: int) -> dict[str, tuple[int, ...]]:
        """Return the heads that stay; those still to be closed are ranked, and left open until it is time."""
        is_open = self._ranked(num_heads) if num_heads < self.num_open() else self.is_open
        return self.heads.best(is_open, num_heads)

    def _ranked(self, num_heads: int) -> Float[Tensor, " heads"]:
        """Return which heads are open where so many stay."""
        worth = self.rank(self.is_open).to(self.is_open).masked_fill(self.is_open == 0, -torch.inf)
        return self.heads.binary(self.heads.best(worth, num_heads)).to(self.is_open)
