"""Word alignments out of weights: which source word each target word goes with, from one view or several.

A link is a pair of indices (source word, target word), both from 0.
"""

from collections.abc import Callable, Iterable
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

Link = tuple[int, int]
Links = frozenset[Link]

Symmetrisation = Literal[
    "target",
    "source",
    "intersection",
    "union",
    "grow-diag",
    "grow-diag-final",
    "grow-diag-final-and",
    "grow-diag-strict",
    "grow-diag-strict-final",
]
Serves = Callable[[Iterable[bool]], bool]
"""Whether a link may be added, told whether its source word and its target word have none yet: ``any`` or ``all``."""

SYMMETRISATIONS: tuple[Symmetrisation, ...] = get_args(Symmetrisation)


def views(weights: Float[Tensor, "T S"], threshold: float = 0.0) -> tuple[Links, Links]:
    """Return the two views of one matrix: each target word's strongest source word, and the reverse.

    Args:
        weights: of each target word over the source's words; what goes to no word may be missing.
        threshold: a strongest weight that is not above it makes no link: the word stands alone.
    """
    if 0 in weights.shape:
        return frozenset(), frozenset()
    by_target, sources = (each.tolist() for each in weights.max(dim=1))
    by_source, targets = (each.tolist() for each in weights.max(dim=0))
    forward = {(source, target) for target, source in enumerate(sources) if by_target[target] > threshold}
    backward = {(source, target) for source, target in enumerate(targets) if by_source[source] > threshold}
    return frozenset(forward), frozenset(backward)


def symmetrise(forward: Iterable[Link], backward: Iterable[Link], how: Symmetrisation) -> Links:
    """Join two views of one pair of texts (Och and Ney 2003, section 4; Koehn et al. 2003, section 4.4).

    Args:
        forward: one link at most for each target word.
        backward: one link at most for each source word.
        how: ``target`` and ``source`` take one view as it is; ``intersection`` is exact, ``union`` complete;
            ``grow-diag`` adds to the intersection, step by step, links of the union that touch one in place, across
            or diagonally, and serve a word that has none; ``-final`` then adds every link of a view that serves a
            word without one, ``-final-and`` only those whose words both have none. ``grow-diag-strict`` grows only
            by links whose words both have none, and its ``-final`` likewise: the "grow-diagonal" of Zenkel et al.
            (2019), more exact and less complete.
    """
    first, second = frozenset(forward), frozenset(backward)
    return _WAYS[how](first, second)


def _grow(forward: Links, backward: Links, serves: Serves = any) -> Links:
    grown = set(forward & backward)
    sources, targets = {source for source, _ in grown}, {target for _, target in grown}
    waiting = sorted((forward | backward) - grown)
    is_growing = True
    while is_growing:
        is_growing = False
        for link in waiting:
            source, target = link
            is_free = link not in grown and serves((source not in sources, target not in targets))
            if is_free and _touches(link, grown):
                grown.add(link)
                sources.add(source)
                targets.add(target)
                is_growing = True
    return frozenset(grown)


def _touches(link: Link, links: set[Link]) -> bool:
    source, target = link
    return any((source + step, target + side) in links for step in (-1, 0, 1) for side in (-1, 0, 1))


def _finish(grown: Links, forward: Links, backward: Links, serves: Serves) -> Links:
    links = set(grown)
    sources, targets = {source for source, _ in links}, {target for _, target in links}
    for view in (forward, backward):
        for source, target in sorted(view):
            if serves((source not in sources, target not in targets)):
                links.add((source, target))
                sources.add(source)
                targets.add(target)
    return frozenset(links)


_WAYS: dict[Symmetrisation, Callable[[Links, Links], Links]] = {
    "target": lambda forward, _: forward,
    "source": lambda _, backward: backward,
    "intersection": lambda forward, backward: forward & backward,
    "union": lambda forward, backward: forward | backward,
    "grow-diag": _grow,
    "grow-diag-final": lambda forward, backward: _finish(_grow(forward, backward), forward, backward, any),
    "grow-diag-final-and": lambda forward, backward: _finish(_grow(forward, backward), forward, backward, all),
    "grow-diag-strict": lambda forward, backward: _grow(forward, backward, all),
    "grow-diag-strict-final": lambda forward, backward: _finish(_grow(forward, backward, all), forward, backward, all),
}


def diagonal(num_source: int, num_target: int) -> Links:
    """Return the baseline that knows only lengths: each target word goes with the source word at the same share."""
    if not num_source:
        return frozenset()
    places = (torch.arange(num_target) + 0.5) * num_source / max(num_target, 1)
    return frozenset((int(place), target) for target, place in enumerate(places.tolist()))
