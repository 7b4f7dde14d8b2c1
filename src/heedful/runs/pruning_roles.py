"""What heads do, before some of them are removed: looked at over held-out lines, or as ``heedful heads`` wrote it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.analysis.heads import Line, survey_heads
from heedful.analysis.heads_card import ROLE_ORDER
from heedful.core.errors import ConfigError
from heedful.data.config import DataConfig
from heedful.data.prepare import read_split
from heedful.pruning.heads import KeptHeads
from heedful.runs.heads import bundle_name, count_frequencies
from heedful.runs.loaded import LoadedModel
from heedful.tasks import find_bundle

ROLE_LINES = 1000
"""So many held-out lines are looked at, at most: seconds."""

TOLD = {"previous": "previous word", "sink": "end sink", "shifted": "shifted alignment", "rare": "rare token"}
"""Families of roles that are told in other words."""

NO_ROLE = "without a role"


@dataclass(frozen=True)
class HeadRoles:
    """The roles of all heads of the whole model.

    Attributes:
        source: where they come from.
        of: by the path of an attention and the number of a head, each role's name with its family.
    """

    source: str
    of: Mapping[tuple[str, int], Mapping[str, str]]

    def names(self, path: str, head: int) -> list[str]:
        """Return the names of a head's roles, the most telling first."""
        return list(self.of[path, head])

    def survivors(self, kept: KeptHeads) -> dict[str, dict[str, int]]:
        """Return for each family of roles how many heads had one of it, and how many of them are left.

        A head with roles of several families counts in each. Those without any stand last.

        Args:
            kept: the heads that stay, by the path of their attention; all of one that is absent.
        """
        found: dict[str, dict[str, int]] = {}
        for family in (*ROLE_ORDER, None):
            heads = [key for key, roles in self.of.items() if (family in roles.values() if family else not roles)]
            if heads:
                left = [(path, head) for path, head in heads if path not in kept or head in kept[path]]
                found[TOLD.get(family, family) if family else NO_ROLE] = {"before": len(heads), "after": len(left)}
        return found


def survey_roles(whole: LoadedModel, data: DataConfig) -> HeadRoles:
    """Look at what the heads of a model do over the dev data, with their targets where a model reads some.

    Args:
        whole: the model.
        data: whose dev part is read; its training part tells which tokens are rare.

    Raises:
        DataError: the dev data cannot be read.
    """
    examples = read_split(data, "dev", Path.cwd())[:ROLE_LINES]
    lines = [Line(each.source, each.target) for each in examples]
    frequencies, _ = count_frequencies(whole.task, data.train, lines)
    cards = survey_heads(whole.task, lines, frequencies=frequencies)
    families = [{each.name: each.family for each in card.scores} for card in cards]
    return HeadRoles(
        f"{len(lines):,} lines of the dev data",
        {
            (card.site, card.head): {name: own[name] for name in card.roles}
            for card, own in zip(cards, families, strict=True)
        },
    )


def read_roles(file: Path, whole: LoadedModel) -> HeadRoles:
    """Return the roles that ``heedful heads --json`` wrote of a model.

    Raises:
        ConfigError: it is another file, or of another model.
    """
    remedy = f"Make it with `heedful heads {whole.path} --json FILE`, or leave out `--roles`."
    try:
        bundles = json.loads(file.read_bytes())["bundles"]
        found = [(each["path"], each["bundle"], _roles_of(each["heads"])) for each in bundles]
        if not found:
            raise ValueError
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise ConfigError(f"{file}: not what `heedful heads --json FILE` writes. {remedy}") from None
    place, name = find_bundle(whole.path).resolve(), bundle_name(whole.path)
    of_place = [roles for path, _, roles in found if _is_at(path, place)]
    of_name = [roles for path, each, roles in found if name in (each, bundle_name(Path(path)))]
    if not of_place and len(of_name) != 1:
        told = ", ".join(f"`{each}`" for _, each, _ in found)
        raise ConfigError(f"{file}: of other models than `{name}`, namely {told}. {remedy}")
    roles = (of_place or of_name)[0]
    heads = {(site.path, head) for site in whole.model.attention_sites() for head in range(site.num_heads)}
    if roles.keys() != heads:
        raise ConfigError(f"{file}: it tells of {len(roles)} heads that are not the {len(heads)} of `{name}`. {remedy}")
    return HeadRoles(str(file), roles)


def _is_at(path: str, place: Path) -> bool:
    return place in (Path(path).resolve(), (Path(path) / "bundle").resolve())


def _roles_of(cards: Sequence[Any]) -> dict[tuple[str, int], dict[str, str]]:
    found = {}
    for card in cards:
        families = {each["name"]: each["family"] for each in card["scores"]}
        found[str(card["site"]), int(card["head"])] = {name: families[name] for name in card["roles"]}
    return found
