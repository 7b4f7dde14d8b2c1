"""What may be generated at a step: limits of length, forced prefixes, forbidden symbols, repetition.

Constraints write into the step's log-probabilities in place (minus infinity where a symbol is ruled out), for a copy of
``B N V`` numbers would cost as much as the softmax. What remains is not normalised again: a score stays the model's.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.errors import RequestError
from heedful.core.symbols import BOS_ID, EOS_ID, PAD_ID
from heedful.core.types import Selectable
from heedful.search.config import LimitsConfig

IMPOSSIBLE = float("-inf")


@dataclass(frozen=True)
class RowLimits(Selectable):
    """What differs from sentence to sentence.

    Attributes:
        max_length: symbols of the longest output.
        prefix: forced first symbols, padded at the right; no columns where nothing is forced.
        prefix_lengths: how many are forced.
    """

    max_length: Int[Tensor, " B"]
    prefix: Int[Tensor, "B P"]
    prefix_lengths: Int[Tensor, " B"]


@dataclass(frozen=True)
class Constraints:
    """All constraints of one search.

    Attributes:
        config: the limits asked for.
        rows: those that differ from sentence to sentence.
        forbidden: ids never generated.
        shortest_limit: the least `max_length` of any row, known without looking at a tensor.
    """

    config: LimitsConfig
    rows: RowLimits
    forbidden: Int[Tensor, " _"]
    shortest_limit: int

    @classmethod
    def build(
        cls,
        config: LimitsConfig,
        num_rows: int,
        device: torch.device,
        *,
        source_lengths: Int[Tensor, " B"] | None = None,
        prefix: list[list[int]] | None = None,
        allowed: Bool[Tensor, " V"] | None = None,
    ) -> "Constraints":
        """Prepare the constraints of a batch.

        Raises:
            RequestError: a prefix holds PAD, BOS or EOS, or there is not one for each row.
        """
        prefix_rows = [[]] * num_rows if prefix is None else prefix
        _check_prefix(prefix_rows, num_rows)
        lengths = torch.tensor([len(each) for each in prefix_rows], dtype=torch.long, device=device)
        padded = torch.full((num_rows, max(map(len, prefix_rows), default=0)), PAD_ID, dtype=torch.long)
        for row, ids in enumerate(prefix_rows):
            padded[row, : len(ids)] = torch.tensor(ids, dtype=torch.long)
        limit = torch.full((num_rows,), config.max_length, dtype=torch.long, device=device)
        if source_lengths is not None and config.max_length_ratio:
            relative = (source_lengths.double() * config.max_length_ratio).long() + config.max_length_extra
            limit = torch.minimum(limit, relative.to(device)).clamp(min=max(config.min_length, 1))
        limit = torch.maximum(limit, lengths)
        forbidden = torch.tensor([PAD_ID, BOS_ID], device=device)
        if allowed is not None:
            unwanted = (~allowed.to(device)).nonzero().squeeze(1)
            forbidden = torch.cat([forbidden, unwanted[unwanted != EOS_ID]])
        return cls(config, RowLimits(limit, padded.to(device), lengths), forbidden, int(limit.min()) if num_rows else 0)

    def select(self, rows: Int[Tensor, " _"]) -> "Constraints":
        """Return the constraints of the named sentences."""
        return replace(self, rows=self.rows.select(rows))

    def apply(self, log_probs: Float[Tensor, "B N V"], tokens: Int[Tensor, "B N T"]) -> Bool[Tensor, "B N"] | None:
        """Rule out, in place, what the hypotheses so far may not go on with.

        Returns:
            True where a hypothesis must end now although the model preferred another symbol; None where none must.
        """
        step = tokens.shape[2]
        eos = log_probs[:, :, EOS_ID].clone()
        forced = self._forced_values(log_probs, step)
        log_probs.index_fill_(2, self.forbidden, IMPOSSIBLE)
        if self.config.repetition_penalty != 1:
            penalise_repetition(log_probs, tokens, self.config.repetition_penalty)
        if self.config.no_repeat_ngram:
            block_ngrams(log_probs, tokens, self.config.no_repeat_ngram)
        if step < self.config.min_length:
            log_probs[:, :, EOS_ID] = IMPOSSIBLE
        if forced is not None:
            self._force_prefix(log_probs, forced, step)
        return self._force_end(log_probs, eos, step)

    def _forced_values(self, log_probs: Tensor, step: int) -> Tensor | None:
        """Return the log-probabilities ``B N`` of the prefixes' symbols at this step, or None past every prefix."""
        if step >= self.rows.prefix.shape[1]:
            return None
        ids = self.rows.prefix[:, step, None, None].expand(-1, log_probs.shape[1], 1)
        return log_probs.gather(2, ids).squeeze(2)

    def _force_prefix(self, log_probs: Tensor, forced: Tensor, step: int) -> None:
        rows = (self.rows.prefix_lengths > step).nonzero().squeeze(1)
        log_probs[rows] = IMPOSSIBLE
        log_probs[rows, :, self.rows.prefix[rows, step]] = forced[rows]

    def _force_end(self, log_probs: Tensor, eos: Tensor, step: int) -> Tensor | None:
        """Leave EOS alone to sentences at their limit and to hypotheses for which nothing else is left."""
        can_be_stuck = self.config.no_repeat_ngram > 0 or self.forbidden.shape[0] > 2
        if step < self.shortest_limit and not can_be_stuck:
            return None
        best = log_probs.amax(dim=2)
        is_stuck = best == IMPOSSIBLE
        must_end = (self.rows.max_length <= step)[:, None] | is_stuck
        if not must_end.any():
            return None
        log_probs[must_end] = IMPOSSIBLE
        # Even a model that calls EOS impossible, or no number, must come to an end.
        lowest = torch.finfo(eos.dtype).min
        possible_eos = eos.nan_to_num(nan=lowest, neginf=lowest)
        log_probs[:, :, EOS_ID] = torch.where(must_end, possible_eos, log_probs[:, :, EOS_ID])
        return must_end & ((best > eos) | is_stuck)


def _check_prefix(prefix: list[list[int]], num_rows: int) -> None:
    if len(prefix) != num_rows:
        raise RequestError(
            f"There are {len(prefix)} prefixes for {num_rows} lines. Give one for each line, empty if none."
        )
    if any(each in (PAD_ID, BOS_ID, EOS_ID) for ids in prefix for each in ids):
        raise RequestError("A prefix holds a padding, begin or end symbol. Give only the words' own ids.")


def penalise_repetition(log_probs: Float[Tensor, "B N V"], tokens: Int[Tensor, "B N T"], penalty: float) -> None:
    """Multiply, in place, the log-probabilities of symbols already in the hypothesis (Keskar et al. 2019, 4.1)."""
    log_probs.scatter_(2, tokens, log_probs.gather(2, tokens) * penalty)


def block_ngrams(log_probs: Float[Tensor, "B N V"], tokens: Int[Tensor, "B N T"], size: int) -> None:
    """Rule out, in place, each symbol that would repeat an n-gram of the hypothesis (Paulus et al. 2018, 2.5)."""
    if tokens.shape[2] < size:
        return
    ngrams = tokens.unfold(2, size, 1)
    context = tokens[:, :, tokens.shape[2] - size + 1 :]
    repeats = (ngrams[..., :-1] == context[:, :, None, :]).all(dim=3)
    row, hypothesis, place = repeats.nonzero(as_tuple=True)
    log_probs[row, hypothesis, ngrams[row, hypothesis, place, -1]] = IMPOSSIBLE
