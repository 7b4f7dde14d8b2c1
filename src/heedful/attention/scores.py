"""How well a key fits a query: the scoring functions of recurrent attention.

Each does once per source what depends on the keys alone (``prepare``), and the rest for every query. A new scoring
function is a configuration, a class and its line in ``SCORES``.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.pairs import score_pairs
from heedful.core.config import Config
from heedful.core.errors import ConfigError, RequestError


class DotScoreConfig(Config):
    """Query times key."""

    kind: Literal["dot"] = "dot"


class ScaledDotScoreConfig(Config):
    """Query times key, divided by the root of their width."""

    kind: Literal["scaled_dot"] = "scaled_dot"


class BilinearScoreConfig(Config):
    """Query times a matrix times key ("general" in Luong et al.)."""

    kind: Literal["bilinear"] = "bilinear"


class AdditiveScoreConfig(Config):
    """A small network of query and key, each with a matrix of its own.

    Attributes:
        inner_dim: width of its hidden layer; absent means the query's.
    """

    kind: Literal["additive"] = "additive"
    inner_dim: PositiveInt | None = None


class ConcatScoreConfig(Config):
    """A small network of query and key, put behind one another."""

    kind: Literal["concat"] = "concat"


class LocationScoreConfig(Config):
    """Scores of positions, from the query alone.

    Attributes:
        max_positions: longest source it can score.
    """

    kind: Literal["location"] = "location"
    max_positions: PositiveInt = 512


AnyScoreConfig = Annotated[
    DotScoreConfig
    | ScaledDotScoreConfig
    | BilinearScoreConfig
    | AdditiveScoreConfig
    | ConcatScoreConfig
    | LocationScoreConfig,
    Field(discriminator="kind"),
]


class Score(nn.Module, ABC):
    """A scoring function: ``score(query, score.prepare(keys))`` is a score for each query and key, before any mask."""

    @abstractmethod
    def prepare(self, keys: Float[Tensor, "B K D"]) -> Float[Tensor, "B K X"]:
        """Do once per source what depends on the keys alone."""

    @abstractmethod
    def forward(self, query: Float[Tensor, "B Q I"], prepared: Float[Tensor, "B K X"]) -> Float[Tensor, "B Q K"]:
        """Return the score of every key for every query."""


class DotScore(Score):
    """``q . k`` (Luong et al. 2015, section 3.1, "dot")."""

    def __init__(self, config: DotScoreConfig, query_dim: int, key_dim: int) -> None:
        super().__init__()
        _check_one_width(config.kind, query_dim, key_dim)

    def prepare(self, keys: Float[Tensor, "B K D"]) -> Float[Tensor, "B K D"]:
        """Return the keys as they are."""
        return keys

    def forward(self, query: Float[Tensor, "B Q D"], prepared: Float[Tensor, "B K D"]) -> Float[Tensor, "B Q K"]:
        """Return the score of every key for every query."""
        return query @ prepared.mT


class ScaledDotScore(Score):
    """``q . k / sqrt(D)`` (Vaswani et al. 2017, eq. 1): scores keep their spread, however wide the vectors."""

    def __init__(self, config: ScaledDotScoreConfig, query_dim: int, key_dim: int) -> None:
        super().__init__()
        _check_one_width(config.kind, query_dim, key_dim)
        self.scale = 1 / math.sqrt(key_dim)

    def prepare(self, keys: Float[Tensor, "B K D"]) -> Float[Tensor, "B K D"]:
        """Return the keys scaled."""
        return keys * self.scale

    def forward(self, query: Float[Tensor, "B Q D"], prepared: Float[Tensor, "B K D"]) -> Float[Tensor, "B Q K"]:
        """Return the score of every key for every query."""
        return query @ prepared.mT


class BilinearScore(Score):
    """``q . W k`` (Luong et al. 2015, section 3.1, "general"); ``W k`` is prepared, so a step is a dot.

    Where both are of one width, ``W`` starts as the identity with a little noise, so the score starts as the dot, which
    needs not learn first that like goes with like.
    """

    def __init__(self, config: BilinearScoreConfig, query_dim: int, key_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(query_dim, key_dim))
        nn.init.xavier_uniform_(self.weight)
        if query_dim == key_dim:
            with torch.no_grad():
                self.weight.mul_(0.1).diagonal().add_(1)

    def prepare(self, keys: Float[Tensor, "B K D"]) -> Float[Tensor, "B K I"]:
        """Return ``W k``."""
        return functional.linear(keys, self.weight)

    def forward(self, query: Float[Tensor, "B Q I"], prepared: Float[Tensor, "B K I"]) -> Float[Tensor, "B Q K"]:
        """Return the score of every key for every query."""
        return query @ prepared.mT


class AdditiveScore(Score):
    """``v . tanh(W q + U k)`` (Bahdanau et al. 2015, appendix A.1.2); ``U k`` is prepared."""

    def __init__(self, config: AdditiveScoreConfig, query_dim: int, key_dim: int) -> None:
        super().__init__()
        inner_dim = config.inner_dim or query_dim
        self.query_weight = nn.Parameter(torch.empty(inner_dim, query_dim))
        self.key_weight = nn.Parameter(torch.empty(inner_dim, key_dim))
        self.vector = nn.Parameter(torch.empty(inner_dim))
        nn.init.xavier_uniform_(self.query_weight)
        nn.init.xavier_uniform_(self.key_weight)
        nn.init.normal_(self.vector, std=inner_dim**-0.5)

    def prepare(self, keys: Float[Tensor, "B K D"]) -> Float[Tensor, "B K M"]:
        """Return ``U k``."""
        return functional.linear(keys, self.key_weight)

    def forward(self, query: Float[Tensor, "B Q I"], prepared: Float[Tensor, "B K M"]) -> Float[Tensor, "B Q K"]:
        """Return the score of every key for every query."""
        return score_pairs(functional.linear(query, self.query_weight), prepared, self.vector)


class ConcatScore(Score):
    """``v . tanh(W [q; k])`` (Luong et al. 2015, section 3.1, "concat"), as wide inside as the query.

    The part of ``W`` that meets the key is applied beforehand, so nothing is concatenated.
    """

    def __init__(self, config: ConcatScoreConfig, query_dim: int, key_dim: int) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.weight = nn.Parameter(torch.empty(query_dim, query_dim + key_dim))
        self.vector = nn.Parameter(torch.empty(query_dim))
        nn.init.xavier_uniform_(self.weight)
        nn.init.normal_(self.vector, std=query_dim**-0.5)

    def prepare(self, keys: Float[Tensor, "B K D"]) -> Float[Tensor, "B K I"]:
        """Return the key's part of ``W [q; k]``."""
        return functional.linear(keys, self.weight[:, self.query_dim :])

    def forward(self, query: Float[Tensor, "B Q I"], prepared: Float[Tensor, "B K I"]) -> Float[Tensor, "B Q K"]:
        """Return the score of every key for every query."""
        return score_pairs(functional.linear(query, self.weight[:, : self.query_dim]), prepared, self.vector)


class LocationScore(Score):
    """``W q``, a score for each position whatever stands there (Luong et al. 2015, section 3.1, eq. 8, "location")."""

    def __init__(self, config: LocationScoreConfig, query_dim: int, key_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(config.max_positions, query_dim))
        nn.init.xavier_uniform_(self.weight)

    def prepare(self, keys: Float[Tensor, "B K D"]) -> Float[Tensor, "B K 0"]:
        """Return the keys without their content: how many they are is all that matters.

        Raises:
            RequestError: the source is longer than the positions it has scores for.
        """
        if keys.shape[1] > self.weight.shape[0]:
            raise RequestError(
                f"A source of {keys.shape[1]} positions is longer than the {self.weight.shape[0]} that location scores "
                "know. Shorten the line, or train with a larger `model.attention.max_positions`."
            )
        return keys[:, :, :0]

    def forward(self, query: Float[Tensor, "B Q I"], prepared: Float[Tensor, "B K 0"]) -> Float[Tensor, "B Q K"]:
        """Return the score of every position for every query."""
        return functional.linear(query, self.weight[: prepared.shape[1]])


def _check_one_width(kind: str, query_dim: int, key_dim: int) -> None:
    if query_dim != key_dim:
        raise ConfigError(
            f"`model.attention.kind` `{kind}` needs queries ({query_dim}) and keys ({key_dim}) of one width. "
            "Try `bilinear`."
        )


SCORES: dict[str, Callable[[Any, int, int], Score]] = {
    "dot": DotScore,
    "scaled_dot": ScaledDotScore,
    "bilinear": BilinearScore,
    "additive": AdditiveScore,
    "concat": ConcatScore,
    "location": LocationScore,
}


def build_score(config: AnyScoreConfig, query_dim: int, key_dim: int) -> Score:
    """Return the scoring function that the configuration names.

    Raises:
        ConfigError: it cannot score such queries and keys.
    """
    return SCORES[config.kind](config, query_dim, key_dim)
