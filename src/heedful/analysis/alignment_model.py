"""Word alignment learnt on top of attention: what a trained model expects, and which words translate each other.

Attention looks where a word is likely to come from before it is known which word it is. Here its weights are what a
hidden Markov chain (`heedful.analysis.alignment_chain`) expects, and a lexicon learnt from pairs of lines says how well
the word that was written fits. There is a chain for each direction, over the same weights; a link is what both find
probable (Liang et al. 2006).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.alignment import Links
from heedful.analysis.alignment_chain import Posterior, Written, infer
from heedful.analysis.alignment_lexicon import Lexicon, Vocabulary
from heedful.attention.masks import padding_keep
from heedful.data.collate import pad

USUAL_THRESHOLD = 0.35
"""Where gold alignments do not tell a better one."""

PRIOR_LINKS = 1.0
"""Words that each word is taken to have been linked with before any was seen, spread as words are on the whole."""

MAX_CELLS = 100_000
"""Pairs of words that are looked at together."""

_LEAST_SHARE = 1e-3
"""Of attention that every word counts as having: it can be wrong."""


@dataclass(frozen=True)
class Line:
    """A pair of lines as words, and what a model's attention says of them.

    Attributes:
        source: its words.
        target: its words.
        weights: of each target word over the source words; what goes to no word may be missing.
    """

    source: Sequence[str]
    target: Sequence[str]
    weights: Float[Tensor, "T S"]


@dataclass(frozen=True)
class LineBatch:
    """Lines of similar length side by side.

    Attributes:
        rows: which lines they are.
        source: numbers of the source words, that of any word beyond the end.
        target: those of the target words.
        source_keep: where source words are.
        target_keep: where target words are.
        weights: 0 beyond the ends.
    """

    rows: Sequence[int]
    source: Int[Tensor, "B S"]
    target: Int[Tensor, "B T"]
    source_keep: Bool[Tensor, "B S"]
    target_keep: Bool[Tensor, "B T"]
    weights: Float[Tensor, "B T S"]


@dataclass(frozen=True)
class AlignmentModel:
    """Lexicon and jumps of both directions.

    Attributes:
        source: words of the source's language.
        target: words of the target's language.
        lexicon: of pairs of them.
        jumps: probabilities, of the chain that writes the target and of the one that writes the source.
    """

    source: Vocabulary
    target: Vocabulary
    lexicon: Lexicon
    jumps: Float[Tensor, "2 X"]

    def batches(self, lines: Sequence[Line]) -> Iterator[LineBatch]:
        """Yield lines in batches of similar length; lines without a word on one side are left out."""
        filled = [row for row, line in enumerate(lines) if line.source and line.target]
        group: list[int] = []
        size = (0, 0)
        for row in sorted(filled, key=lambda row: (len(lines[row].source), len(lines[row].target))):
            wider = (max(size[0], len(lines[row].source)), max(size[1], len(lines[row].target)))
            if group and (len(group) + 1) * wider[0] * wider[1] > MAX_CELLS:
                yield self._stack(lines, group)
                group, wider = [], (len(lines[row].source), len(lines[row].target))
            group.append(row)
            size = wider
        if group:
            yield self._stack(lines, group)

    def _stack(self, lines: Sequence[Line], rows: Sequence[int]) -> LineBatch:
        chosen = [lines[row] for row in rows]
        source, source_lengths = pad([self.source.numbers(each.source) for each in chosen])
        target, target_lengths = pad([self.target.numbers(each.target) for each in chosen])
        source_keep = padding_keep(source_lengths, source.shape[1])
        target_keep = padding_keep(target_lengths, target.shape[1])
        weights = chosen[0].weights.new_zeros(len(rows), target.shape[1], source.shape[1])
        for row, each in enumerate(chosen):
            weights[row, : len(each.target), : len(each.source)] = each.weights
        return LineBatch(rows, source, target, source_keep, target_keep, weights)

    def infer(self, batch: LineBatch, places: Int[Tensor, "B T S"]) -> tuple[Posterior, Posterior]:
        """Return what the chains of both directions say of a batch; the second has its axes exchanged.

        A word that was never seen writes what words write on the whole; one that was seen once may still be the partner
        of another.

        Args:
            batch: of lines.
            places: of their words in the lexicon, see `Lexicon.find`.
        """
        counts, weights = self.lexicon.counted(places), batch.weights.float()
        alone = self.target.shares[batch.target], self.source.shares[batch.source]
        totals = self.lexicon.source_totals[batch.source], self.lexicon.target_totals[batch.target]
        forward = (counts + PRIOR_LINKS * alone[0][:, :, None]) / (totals[0][:, None, :] + PRIOR_LINKS)
        backward = (counts + PRIOR_LINKS * alone[1][:, None, :]) / (totals[1][:, :, None] + PRIOR_LINKS)
        expected = (
            _expect(weights, 2) * batch.source_keep[:, None, :],
            _expect(weights, 1) * batch.target_keep[:, :, None],
        )
        return (
            infer(Written(forward, alone[0], expected[0], batch.target_keep), self.jumps[0]),
            infer(Written(backward.mT, alone[1], expected[1].mT, batch.source_keep), self.jumps[1]),
        )

    def agreement(self, lines: Sequence[Line]) -> list[Float[Tensor, "T S"]]:
        """Return how far both directions find each link of each line probable: the root of the product.

        What follows the last word with any weight was cut and is not read here either; it has no links.
        """
        read = [_as_read(line) for line in lines]
        found = [line.weights.new_zeros(len(line.target), len(line.source), dtype=torch.float32) for line in lines]
        for batch in self.batches(read):
            forward, backward = self.infer(batch, self.lexicon.find(batch.source, batch.target))
            both = (forward.links * backward.links.mT).sqrt()
            for place, row in enumerate(batch.rows):
                num_targets, num_sources = len(read[row].target), len(read[row].source)
                found[row][:num_targets, :num_sources] = both[place, :num_targets, :num_sources]
        return found


def links_above(agreement: Float[Tensor, "T S"], threshold: float) -> Links:
    """Return the links that both directions find more probable than a threshold."""
    targets, sources = torch.nonzero(agreement > threshold, as_tuple=True)
    return frozenset(zip(sources.tolist(), targets.tolist(), strict=True))


def _as_read(line: Line) -> Line:
    """Return a line without the words that its model did not read."""
    rows, columns = (torch.nonzero(line.weights.any(dim)) for dim in (1, 0))
    num_targets, num_sources = (int(each[-1]) + 1 if len(each) else 0 for each in (rows, columns))
    return Line(line.source[:num_sources], line.target[:num_targets], line.weights[:num_targets, :num_sources])


def _expect(weights: Float[Tensor, "B T S"], dim: int) -> Float[Tensor, "B T S"]:
    """Return how much each word is expected: the root of its share, as weights were not learnt to be probabilities of
    links and one chain multiplies many.
    """
    shares = weights / weights.sum(dim, keepdim=True).clamp(min=1e-6)
    return shares.clamp(min=_LEAST_SHARE).sqrt()
