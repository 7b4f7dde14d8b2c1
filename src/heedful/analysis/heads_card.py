"""The role card of a head: its scores beside baseline, chance and interval, and the roles that they make.

Roles after Voita et al. (2019, section 5): positional from 90 % on one offset, syntactic from 10 points above the
baseline of the most frequent offset. The others are ours, and ask for half of the cases and 10 points above the
baseline, or above chance where there is none.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from heedful.analysis.bootstrap import Estimate
from heedful.analysis.importance import HeadImportance

POSITIONAL_FROM = 0.9
ABOVE_BASELINE = 0.1
MOST_FROM = 0.5
UNIFORM_FROM = 0.9
"""Entropy as a share of the largest possible, from which on a head is called nearly uniform."""

MIN_CASES = 50
"""Of fewer cases no role comes, and no relation is asked about."""

RoleFamily = Literal["positional", "sink", "rare", "syntactic", "previous", "copy", "alignment", "shifted"]
ROLE_ORDER = ("positional", "previous", "sink", "alignment", "shifted", "copy", "rare", "syntactic")
"""The most telling first."""


@dataclass(frozen=True)
class ByDistance:
    """A score over words of one distance.

    Attributes:
        first: nearest distance.
        last: farthest; None for no end.
        cases: how many.
        share: that were right.
        baseline: share that the question's baseline offset gets right here.
        chance: share that a look at random gets right here.
    """

    first: int
    last: int | None
    cases: int
    share: float
    baseline: float
    chance: float

    @property
    def span(self) -> str:
        """Return the distances as text."""
        if self.last is None:
            return f"{self.first} and more"
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True)
class Score:
    """How often a head did what a role asks for.

    Attributes:
        name: of the question.
        family: of roles.
        cases: how many.
        share: that were right.
        baseline: share that the one best offset gets right; None where the role is an offset itself.
        baseline_offset: that offset, in words (in tokens for the rare-token role).
        chance: share that a look at random gets right.
        by_distance: the same by distance between the words.
    """

    name: str
    family: RoleFamily
    cases: int
    share: Estimate
    baseline: float | None
    baseline_offset: int | None
    chance: float
    by_distance: tuple[ByDistance, ...] = ()

    @property
    def mark(self) -> float:
        """Return what the share is held against: the baseline, or chance without one."""
        return self.chance if self.baseline is None else self.baseline

    @property
    def gain(self) -> float:
        """Return how far the share lies above the mark."""
        return self.share.value - self.mark

    def is_role(self, min_cases: int) -> bool:
        """Say whether the score makes a role."""
        if self.cases < min_cases:
            return False
        if self.family == "positional":
            return self.share.value >= POSITIONAL_FROM
        is_above = self.share.value >= self.mark + ABOVE_BASELINE
        return is_above and (self.family == "syntactic" or self.share.value >= MOST_FROM)


@dataclass(frozen=True)
class HeadCard:
    """What one head does.

    Attributes:
        site: path of its attention.
        kind: of attention.
        layer: from 0.
        head: from 0.
        confidence: mean largest weight, BOS and EOS left out (Voita et al. 2019, section 4).
        entropy: mean, in nats, of weights brought to a sum of 1.
        evenness: mean entropy as a share of the largest possible over the keys that can be seen, 0 to 1.
        offsets: share of tokens whose strongest weight falls so far ahead, of those with a token there.
        scores: best first.
        roles: names of the scores that make one, the most telling first.
        importance: what the head is worth, where that was asked.
    """

    site: str
    kind: str
    layer: int
    head: int
    confidence: Estimate | None
    entropy: Estimate | None
    evenness: Estimate | None
    offsets: Mapping[int, float]
    scores: tuple[Score, ...]
    roles: tuple[str, ...]
    importance: HeadImportance | None = None

    @property
    def name(self) -> str:
        """Return how people name it, also to ``heedful inspect --silence``: kind, layer and head, both from 0."""
        return f"{self.kind}.{self.layer}:{self.head}"

    @property
    def is_nearly_uniform(self) -> bool:
        """Say whether it looks at everything alike, so that its strongest weight tells little."""
        return self.evenness is not None and self.evenness.value >= UNIFORM_FROM

    def score(self, name: str) -> Score | None:
        """Return a score by its question's name."""
        return next((each for each in self.scores if each.name == name), None)


def order_roles(scores: Iterable[Score]) -> tuple[str, ...]:
    """Return the names of scores that make a role, the most telling first."""
    return tuple(each.name for each in sorted(scores, key=lambda each: (ROLE_ORDER.index(each.family), -each.gain)))


def offset_name(offset: int, kind: str = "encoder") -> str:
    """Return what a person calls a look so many places ahead; cross-attention compares the places of two texts."""
    if offset == 0:
        return "same place" if kind == "cross" else "itself"
    number = {1: "one", 2: "two", 3: "three"}.get(abs(offset), str(abs(offset)))
    return f"{number} {'ahead' if offset > 0 else 'back'}"


def plain(value: Any) -> Any:
    """Return a card, or a part of one, as plain values for JSON."""
    if dataclasses.is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value
