"""Counting what heads do, batch by batch, all heads of a site at once.

Everything is a sum over the places of a sentence and the number of such places, kept by sentence, so that shares, means
and their intervals come out of one table at the end. What does not depend on a head (places, chance, baselines) is
counted once for all sites of a kind.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.content import content_places
from heedful.analysis.heads_questions import BUCKETS, Case, Interviewer, LineWords, Question, View, bucket_of
from heedful.analysis.reading import Reading, Side
from heedful.attention.masks import causal_keep, window_keep
from heedful.core.symbols import PAD_ID
from heedful.core.types import Batch
from heedful.models.interfaces import AttentionSite

CONFIDENCE, ENTROPY, EVENNESS, SINK, RARE = "confidence", "entropy", "evenness", "sink", "rare token"
FARTHEST_OFFSET = 8
OFFSETS = tuple(range(-FARTHEST_OFFSET, FARTHEST_OFFSET + 1))
FEATURES = (CONFIDENCE, ENTROPY, EVENNESS, SINK, RARE, *map(str, OFFSETS))
COMMON_TOKENS = 500
"""Sentences count for the rare-token role if their rarest token is not among so many most frequent ones."""

_VIEWS: dict[str, tuple[View, ...]] = {
    "encoder": ("encoder",),
    "decoder": ("reading", "predicting"),
    "cross": ("cross",),
}


@dataclass(frozen=True)
class Places:
    """Which positions of a batch look, and which can be seen, in attentions of one kind.

    Attributes:
        asks: True at positions that look and are no BOS or EOS.
        seen: True where a key is real, not after its query in a decoder, and within the window of windowed
            self-attention or of local attention.
        is_content: True at keys that are no BOS or EOS.
        rarest: True at the least frequent tokens of rows whose rarest is rare enough, else nowhere.
        is_ordered: queries have places, so that there is an offset from query to key.
    """

    asks: Bool[Tensor, "B Q"]
    seen: Bool[Tensor, "B Q K"]
    is_content: Bool[Tensor, "B K"]
    rarest: Bool[Tensor, "B K"]
    is_ordered: bool

    @cached_property
    def num_seen(self) -> Int[Tensor, "B Q"]:
        """How many keys each query sees."""
        return self.seen.sum(-1)

    @cached_property
    def eligible(self) -> list[Bool[Tensor, "B Q"]]:
        """For each feature the queries that count; for the rarest token those that see it beside another token."""
        has_choice = self.asks & (self.num_seen > 1)
        num_content = (self.seen & self.is_content[:, None, :]).sum(-1)
        sees_content = self.asks & (num_content > 0)
        for_rare = self.asks & (num_content > 1) & (self.seen & self.rarest[:, None, :]).any(-1)
        moves = [self._can_move(offset, has_choice) for offset in OFFSETS]
        return [sees_content, self.asks, has_choice, has_choice, for_rare, *moves]

    def _can_move(self, offset: int, has_choice: Bool[Tensor, "B Q"]) -> Bool[Tensor, "B Q"]:
        """Say which queries have a key at the offset."""
        size_Q, size_K = self.seen.shape[1:]
        target_Q = torch.arange(size_Q) + offset
        inside_Q = (target_Q >= 0) & (target_Q < size_K) & self.is_ordered
        at_BQ1 = target_Q.clamp(0, max(size_K - 1, 0))[None, :, None].expand(len(self.seen), -1, 1)
        return has_choice & inside_Q & self.seen.gather(2, at_BQ1)[:, :, 0]

    def cases(self) -> Float[np.ndarray, "B F"]:
        """Return how many queries of each row count for each feature."""
        return torch.stack([each.sum(1) for each in self.eligible], dim=1).float().numpy()


@dataclass
class KindCounts:
    """What holds for all heads of a kind.

    Attributes:
        interviewers: of the views that the kind has.
        cases: by batch, the places of each sentence for each feature, then for each question.
        chance: summed over places, for each feature.
        rare_offsets: how often each offset would have found a rarest token.
    """

    interviewers: dict[View, Interviewer]
    cases: list[Float[np.ndarray, "B X"]] = field(default_factory=list)
    chance: Float[np.ndarray, " F"] = field(default_factory=lambda: np.zeros(len(FEATURES)))
    rare_offsets: Counter[int] = field(default_factory=Counter)

    @property
    def questions(self) -> list[Question]:
        """All questions, view after view."""
        return [question for each in self.interviewers.values() for question in each.questions]


@dataclass
class SiteCounts:
    """What the heads of one attention did.

    Attributes:
        site: which.
        sums: by batch, for each sentence, feature or question, and head.
        by_distance: hits of each question by distance and head.
    """

    site: AttentionSite
    sums: list[Float[np.ndarray, "B X H"]] = field(default_factory=list)
    by_distance: dict[str, Float[np.ndarray, "W H"]] = field(default_factory=dict)


class HeadCounter:
    """Counts for all sites of a model.

    Args:
        sites: the model's attentions; those without heads are left out.
        questions: asked of words.
        frequencies: how often each symbol of the source, or of a language model's text, occurs in the training data,
            for the rare-token role; None leaves it.
    """

    def __init__(
        self,
        sites: Sequence[AttentionSite],
        questions: Sequence[Question],
        frequencies: Int[Tensor, " V"] | None,
    ) -> None:
        self.sites = [SiteCounts(each) for each in sites if each.num_heads]
        self.kinds = {
            kind: KindCounts(
                {view: Interviewer([each for each in questions if each.view == view]) for view in _VIEWS.get(kind, ())}
            )
            for kind in dict.fromkeys(each.site.kind for each in self.sites)
        }
        self.windows: dict[str, int | None] = {each.site.kind: each.site.window for each in self.sites}
        self.frequencies = frequencies
        self.is_common = None if frequencies is None else _most_frequent(frequencies, COMMON_TOKENS)

    def add(self, readings: Sequence[Reading], words: Sequence[LineWords]) -> None:
        """Count a batch: all readings of one recording, with their words."""
        points = readings[0].recording.points
        for kind, counts in self.kinds.items():
            places = self._places(kind, readings)
            asked = {view: _Asked(each, view, words, places) for view, each in counts.interviewers.items()}
            counts.cases.append(
                np.concatenate([places.cases(), *(each.counts for each in asked.values())], axis=1, dtype=np.float32)
            )
            counts.chance += _feature_chance(places)
            counts.rare_offsets.update(_rare_offsets(places))
            for site in self.sites:
                if site.site.kind == kind:
                    weights = points[f"{site.site.path}.weights"].float()
                    self._add_site(site, weights, places, asked)

    def _add_site(self, site: SiteCounts, weights: Tensor, places: Places, asked: dict[View, "_Asked"]) -> None:
        parts = [_feature_sums(weights, places)]
        for each in asked.values():
            hits = each.hits(weights)
            parts.append(each.by_sentence(hits))
            for name, table in each.by_distance(hits).items():
                site.by_distance[name] = site.by_distance.get(name, 0) + table
        site.sums.append(np.concatenate(parts, axis=1, dtype=np.float32))

    def _places(self, kind: str, readings: Sequence[Reading]) -> Places:
        batch = readings[0].recording.batch
        asks, is_content = (each.cpu() for each in content_places(batch, kind))
        rarest = torch.zeros_like(is_content)
        with_rarest = ("decoder",) if batch.source is None else ("encoder", "cross")
        if self.frequencies is not None and self.is_common is not None and kind in with_rarest:
            rarest = _rarest([each.keys(kind) for each in readings], is_content, self.frequencies, self.is_common)
        seen = _seen(batch, kind, asks.shape[1], self.windows[kind])
        for each in self.sites:
            if each.site.kind == kind and each.site.is_local:
                # Its window is known to the model alone, which gives all beyond it no weight, and all within it some.
                seen = seen & (readings[0].recording.points[f"{each.site.path}.weights"].cpu() > 0).any(1)
        return Places(asks, seen, is_content, rarest, is_ordered=kind != "pooling")


def _seen(batch: Batch, kind: str, num_queries: int, window: int | None) -> Bool[Tensor, "B Q K"]:
    real = (batch.target_keep if kind == "decoder" else batch.source_keep).cpu()
    seen = real[:, None, :].expand(-1, num_queries, -1)
    if kind == "decoder":
        seen = seen & causal_keep(*seen.shape[1:])
    if window is not None:
        seen = seen & window_keep(*seen.shape[1:], before=window, after=window)
    return seen


def _most_frequent(frequencies: Int[Tensor, " V"], number: int) -> Bool[Tensor, " V"]:
    common = torch.zeros(len(frequencies), dtype=torch.bool)
    common[frequencies.argsort(descending=True, stable=True)[:number]] = True
    return common


def _rarest(
    keys: Sequence[Side | None], is_content: Bool[Tensor, "B K"], frequencies: Tensor, is_common: Tensor
) -> Bool[Tensor, "B K"]:
    ids = torch.full(is_content.shape, PAD_ID)
    for row, side in enumerate(keys):
        if side is not None:
            ids[row, : len(side.ids)] = torch.tensor(side.ids)
    counts = frequencies[ids].masked_fill(~is_content, torch.iinfo(frequencies.dtype).max)
    rarest = (counts == counts.amin(1, keepdim=True)) & is_content
    return rarest & (rarest & ~is_common[ids]).any(1, keepdim=True)


def _feature_chance(places: Places) -> Float[np.ndarray, " F"]:
    """Return for each feature the sum over its places of what a look at random would give; 0 for those without."""
    by_one = 1 / places.num_seen.clamp(min=1)
    content_BQ = (places.seen & places.is_content[:, None, :]).sum(-1)
    chances = {name: by_one for name in map(str, OFFSETS)}
    chances[SINK] = (places.num_seen - content_BQ) * by_one
    chances[RARE] = (places.seen & places.rarest[:, None, :]).sum(-1) / content_BQ.clamp(min=1)
    pairs = zip(FEATURES, places.eligible, strict=True)
    return np.array([float(chances[name][keep].sum()) if name in chances else 0.0 for name, keep in pairs])


def _rare_offsets(places: Places) -> Counter[int]:
    counts_BQ = places.eligible[FEATURES.index(RARE)]
    _, query, key = (counts_BQ[:, :, None] & places.seen & places.rarest[:, None, :]).nonzero(as_tuple=True)
    offsets, counts = np.unique((key - query).numpy(), return_counts=True)
    return Counter(dict(zip(offsets.tolist(), counts.tolist(), strict=True)))


def _feature_sums(weights_BHQK: Float[Tensor, "B H Q K"], places: Places) -> Float[np.ndarray, "B F H"]:
    """Return for each sentence, feature and head the sum over the positions that count."""
    content_weights = weights_BHQK * places.is_content[:, None, None, :]
    largest = content_weights.amax(-1)
    # Local attention may lessen its weights; entropy is of a distribution.
    shares_BHQK = weights_BHQK / weights_BHQK.sum(-1, keepdim=True).clamp(min=1e-9)
    entropy = torch.special.entr(shares_BHQK).sum(-1)
    evenness = entropy / places.num_seen.clamp(min=2).log()[:, None]
    best = weights_BHQK.argmax(-1)
    at_end = ~places.is_content[:, None, :].expand(-1, weights_BHQK.shape[1], -1).gather(2, best)
    at_rarest = places.rarest[:, None, :].expand(-1, weights_BHQK.shape[1], -1).gather(2, content_weights.argmax(-1))
    moved = best - torch.arange(best.shape[2])
    values = [largest, entropy, evenness, at_end, at_rarest, *(moved == offset for offset in OFFSETS)]
    sums = [(value * keep[:, None, :]).sum(-1).float() for value, keep in zip(values, places.eligible, strict=True)]
    return torch.stack(sums, dim=1).numpy()


class _Asked:
    """The cases of one view in a batch, ready for any head's weights.

    Attributes:
        counts: cases of each sentence and question.
    """

    def __init__(self, interviewer: Interviewer, view: View, words: Sequence[LineWords], places: Places) -> None:
        self.questions = interviewer.questions
        self.num_rows = len(words)
        num_words = [line.num_words(view) for line in words]
        num_queries = max((each for each, _ in num_words), default=0)
        num_keys = max((each for _, each in num_words), default=0)
        owners = [line.owners(view) for line in words]
        from_query = _members([each for each, _ in owners], num_queries, places.seen.shape[1])
        self.from_query = from_query / from_query.sum(-1, keepdim=True).clamp(min=1)
        self.from_key = _members([each for _, each in owners], num_keys, places.seen.shape[2])
        seen = (from_query @ places.seen.float() @ self.from_key.mT > 0).numpy()
        found: list[tuple[int, Case]] = [
            (row, case) for row, line in enumerate(words) for case in interviewer.cases(line, view, seen[row])
        ]
        self.row = torch.tensor([row for row, _ in found], dtype=torch.long)
        self.query = torch.tensor([case.query for _, case in found], dtype=torch.long)
        self.question = torch.tensor([case.question for _, case in found], dtype=torch.long)
        self.bucket = torch.tensor([bucket_of(case.distance) for _, case in found], dtype=torch.long)
        self.accepted = torch.zeros(len(found), num_keys, dtype=torch.bool)
        for index, (_, case) in enumerate(found):
            self.accepted[index, list(case.accepted)] = True
        self.counts = np.zeros((self.num_rows, len(self.questions)), np.float32)
        np.add.at(self.counts, (self.row.numpy(), self.question.numpy()), 1)

    def hits(self, weights_BHQK: Float[Tensor, "B H Q K"]) -> Float[Tensor, "C H"]:
        """Return 1 where a head's strongest weight between words falls on a right one.

        Weights are summed over the symbols of a word that is looked at, and averaged over those of one that looks
        (Clark et al. 2019, section 4.1). BOS and EOS belong to no word.
        """
        if not len(self.row):
            return torch.zeros(0, weights_BHQK.shape[1])
        words_BHQK = self.from_query[:, None] @ weights_BHQK @ self.from_key.mT[:, None]
        best_BHQ = words_BHQK.argmax(-1)
        best_CH = best_BHQ[self.row, :, self.query]
        return self.accepted.gather(1, best_CH).float()

    def by_sentence(self, hits: Float[Tensor, "C H"]) -> Float[np.ndarray, "B X H"]:
        """Return hits by sentence and question."""
        flat = torch.zeros(self.num_rows * len(self.questions), hits.shape[1])
        flat.index_add_(0, self.row * len(self.questions) + self.question, hits)
        return flat.view(self.num_rows, len(self.questions), hits.shape[1]).numpy()

    def by_distance(self, hits: Float[Tensor, "C H"]) -> dict[str, Float[np.ndarray, "W H"]]:
        """Return hits by distance, for each question."""
        flat = torch.zeros(len(self.questions) * len(BUCKETS), hits.shape[1])
        flat.index_add_(0, self.question * len(BUCKETS) + self.bucket, hits)
        tables = flat.view(len(self.questions), len(BUCKETS), hits.shape[1]).numpy().astype(np.float64)
        return {question.name: table for question, table in zip(self.questions, tables, strict=True)}


def _members(owners: Sequence[Sequence[int | None]], num_words: int, num_positions: int) -> Float[Tensor, "B W P"]:
    places = [(r, owner, p) for r, row in enumerate(owners) for p, owner in enumerate(row) if owner is not None]
    members = torch.zeros(len(owners), num_words, num_positions)
    if places:
        members[tuple(torch.tensor(places).T)] = 1
    return members
