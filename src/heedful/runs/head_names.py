"""Heads as a user names them."""

import re
from collections.abc import Sequence

from heedful.core.errors import ConfigError, did_you_mean
from heedful.models.interfaces import AttentionSite


def parse_heads(text: str, sites: Sequence[AttentionSite]) -> list[tuple[str, int]]:
    """Return the heads that a text names, each as its attention's path and its number.

    Args:
        text: ``cross.1:2`` (kind, layer, head, all from 0) or ``decoder.layers.1.cross_attention:2``; several between
            commas.
        sites: the model's attentions.

    Raises:
        ConfigError: it is no such name, or the model has no such attention or head.
    """
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([\w.]+):([0-9]{1,6})\s*", part)
        if match is None:
            raise ConfigError(f"`{part.strip()}` names no head. Write kind, layer and head, for example `cross.1:2`.")
        name, head = match[1], int(match[2])
        known = {f"{each.kind}.{each.layer}": each for each in sites} | {each.path: each for each in sites}
        if name not in known:
            raise ConfigError(f"This model has no attention `{name}`. {did_you_mean(name, known)}")
        site = known[name]
        if head >= site.num_heads:
            heads = f"its heads are 0 to {site.num_heads - 1}" if site.num_heads else "no head of it is left"
            raise ConfigError(f"`{site.path}` has no head {head}: {heads}.")
        found.append((site.path, head))
    return found
