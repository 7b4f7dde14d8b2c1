"""The heads of a model that can be removed, in one order, so that a vector has a place for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attention.tap import Gates
from heedful.core.errors import ConfigError, did_you_mean
from heedful.models.interfaces import AttentionSite, Model

KINDS = ("encoder", "decoder", "cross")

KeptHeads = Mapping[str, Sequence[int]]
"""The heads that stay, by the path of their attention; an attention that is not named keeps all."""


@dataclass(frozen=True)
class Heads:
    """Heads of a model, attention by attention from its input to its output.

    Attributes:
        sites: the attentions whose heads are meant, as they are before anything is removed.
    """

    sites: tuple[AttentionSite, ...]

    def __len__(self) -> int:
        return sum(site.num_heads for site in self.sites)

    def split(self, values: Float[Tensor, " heads"]) -> dict[str, Float[Tensor, " H"]]:
        """Return the values of each attention's heads, by its path."""
        parts = torch.split(values, [site.num_heads for site in self.sites])
        return {site.path: part for site, part in zip(self.sites, parts, strict=True)}

    def gates(self, values: Float[Tensor, " heads"]) -> Gates:
        """Return a factor for each head as gates."""
        return Gates(self.split(values))

    def best(self, ranking: Float[Tensor, " heads"], num_heads: int) -> dict[str, tuple[int, ...]]:
        """Return the heads that stand highest, exactly so many; of equals the earlier."""
        order = ranking.detach().double().sort(descending=True, stable=True).indices
        is_kept = torch.zeros(len(self), dtype=torch.bool)
        is_kept[order[:num_heads].cpu()] = True
        parts = self.split(is_kept.float())
        return {path: tuple(part.nonzero()[:, 0].tolist()) for path, part in parts.items()}

    def binary(self, kept: KeptHeads) -> Float[Tensor, " heads"]:
        """Return 1 for each head that is kept and 0 for every other."""
        values = torch.zeros(len(self))
        parts = self.split(values)
        for path, heads in kept.items():
            parts[path][list(heads)] = 1.0
        return values


def find_heads(model: Model, kinds: Sequence[str] = KINDS) -> Heads:
    """Return the heads of some kinds that can be removed.

    Args:
        model: to be pruned.
        kinds: of attention: ``encoder``, ``decoder``, ``cross``.

    Raises:
        ConfigError: a kind that there is not, or one that the model does not have, or no heads at all.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise ConfigError(f"`{kind}` is no kind of attention that can be pruned. {did_you_mean(kind, KINDS)}")
    blocks = model.blocks()
    if not blocks:
        raise ConfigError(
            "The model has no attention with heads that could be removed. Give the bundle of a Transformer."
        )
    removable = [site for site in model.attention_sites() if site.path.rpartition(".")[0] in blocks]
    present = dict.fromkeys(site.kind for site in removable)
    for kind in kinds:
        if kind not in present and tuple(kinds) != KINDS:
            raise ConfigError(f"The model has no `{kind}` attention. {did_you_mean('', present)}")
    return Heads(tuple(site for site in removable if site.kind in kinds))
