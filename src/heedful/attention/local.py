"""Local attention (Luong et al. 2015, section 3.2): a decoder looks only at a window of the source around a centre.

A locality says where: which keys are kept, and by what factor weights are lessened. It knows no scores, so it goes
with each of them::

    nearby = locality(query, first_query, source_lengths, num_keys)
    weights = nearby.lessen(masked_softmax(scores, mask & nearby.mask))
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.masks import AttentionMask
from heedful.core.config import Config


class MonotonicLocalityConfig(Config):
    """The window's centre goes along with the target: for position t it is t.

    Attributes:
        reach: positions seen on each side of the centre.
    """

    kind: Literal["monotonic"] = "monotonic"
    reach: PositiveInt = 10


class PredictiveLocalityConfig(Config):
    """The window's centre is predicted from the decoder's state.

    Attributes:
        reach: positions seen on each side of the centre.
    """

    kind: Literal["predictive"] = "predictive"
    reach: PositiveInt = 10


AnyLocalityConfig = Annotated[MonotonicLocalityConfig | PredictiveLocalityConfig, Field(discriminator="kind")]


@dataclass(frozen=True)
class Nearby:
    """Where a query may look.

    Attributes:
        mask: the window.
        factor: by what each weight is lessened, or None; the weights are not brought back to a sum of 1 (eq. 10).
    """

    mask: AttentionMask
    factor: Float[Tensor, "B Q K"] | None

    def lessen(self, weights: Float[Tensor, "B Q K"]) -> Float[Tensor, "B Q K"]:
        """Return the weights times the factor."""
        return weights if self.factor is None else weights * self.factor.to(weights.dtype)


class Locality(nn.Module, ABC):
    """Says where each query may look."""

    @abstractmethod
    def forward(
        self, query: Float[Tensor, "B Q D"], first_query: int, source_lengths: Int[Tensor, " B"], num_keys: int
    ) -> Nearby:
        """Return where the queries may look among ``num_keys`` positions; the first query is the target's
        position ``first_query``.
        """


class MonotonicLocality(Locality):
    """The centre is ``p_t = t`` ("local-m").

    Where the target has outrun the source, the window stays on the source's last positions; as published it would be
    empty.
    """

    def __init__(self, config: MonotonicLocalityConfig, query_dim: int) -> None:
        super().__init__()
        self.reach = config.reach

    def forward(
        self, query: Float[Tensor, "B Q D"], first_query: int, source_lengths: Int[Tensor, " B"], num_keys: int
    ) -> Nearby:
        """Return where the queries may look."""
        targets = torch.arange(first_query, first_query + query.shape[1], device=query.device)
        centres = torch.minimum(targets, (source_lengths[:, None] - 1).clamp(min=0))
        return Nearby(AttentionMask(keep=_distances(centres, num_keys).abs() <= self.reach), None)


class PredictiveLocality(Locality):
    """The centre is ``p_t = S sigmoid(v . tanh(W h_t))`` (eq. 9, "local-p"), with S the length of the source.

    Weights are lessened by a Gaussian around it, of standard deviation ``reach / 2`` (eq. 10), through which the
    prediction learns.
    """

    def __init__(self, config: PredictiveLocalityConfig, query_dim: int) -> None:
        super().__init__()
        self.reach = config.reach
        self.weight = nn.Parameter(torch.empty(query_dim, query_dim))
        self.vector = nn.Parameter(torch.empty(query_dim))
        nn.init.xavier_uniform_(self.weight)
        nn.init.normal_(self.vector, std=query_dim**-0.5)

    def forward(
        self, query: Float[Tensor, "B Q D"], first_query: int, source_lengths: Int[Tensor, " B"], num_keys: int
    ) -> Nearby:
        """Return where the queries may look."""
        logits_BQ = torch.tanh(functional.linear(query, self.weight)) @ self.vector
        # bfloat16 could not tell neighbouring positions apart beyond 256.
        wide_BQ = logits_BQ if logits_BQ.dtype == torch.float64 else logits_BQ.float()
        distances = _distances(source_lengths[:, None] * torch.sigmoid(wide_BQ), num_keys)
        factor = torch.exp(-(distances**2) / (2 * (self.reach / 2) ** 2))
        return Nearby(AttentionMask(keep=distances.detach().abs() <= self.reach), factor)


def _distances(centres: Tensor, num_keys: int) -> Tensor:
    """Return how far each key is from each centre, ``B Q K``."""
    return torch.arange(num_keys, device=centres.device) - centres[:, :, None]


LOCALITIES: dict[str, Callable[[Any, int], Locality]] = {
    "monotonic": MonotonicLocality,
    "predictive": PredictiveLocality,
}


def build_locality(config: AnyLocalityConfig, query_dim: int) -> Locality:
    """Return the locality that the configuration names, for queries of that width."""
    return LOCALITIES[config.kind](config, query_dim)
