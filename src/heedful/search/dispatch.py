"""The way in: search and stream, for any kind of search."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.core.errors import ConfigError
from heedful.core.types import Selectable, StepFn
from heedful.search.beam import beam_search
from heedful.search.config import AnySearchConfig, BeamConfig, GreedyConfig, SamplingConfig
from heedful.search.constraints import Constraints
from heedful.search.greedy import Greedy
from heedful.search.hypothesis import Hypothesis, rank
from heedful.search.sampling import Sampler
from heedful.search.walk import Chooser, Symbols, walk


@torch.no_grad()
def search(
    step_fn: StepFn,
    memory: Selectable,
    state: Selectable,
    config: AnySearchConfig,
    *,
    lines: Int[Tensor, " B"],
    source_lengths: Int[Tensor, " B"] | None = None,
    seed: int = 0,
    prefix: list[list[int]] | None = None,
    allowed: Bool[Tensor, " V"] | None = None,
    keep_attention: bool = False,
) -> list[list[Hypothesis]]:
    """Find outputs for a batch of sentences.

    Args:
        step_fn: the model, one step at a time; the search writes into the log-probabilities it gives.
        memory: rows are sentences, never repeated for the beam.
        state: before the first step, ONE row for each sentence whatever the beam: ``model.start(memory)``.
        config: the kind of search.
        lines: the number of each row's line in its file or request; seeds sampling.
        source_lengths: real source positions (EOS counted), for limits of length and the coverage penalty.
        seed: of sampling.
        prefix: symbols each output must begin with, of any length, without BOS.
        allowed: False for symbols never to be generated (PAD and BOS never are, EOS always may be).
        keep_attention: give each hypothesis its attention; `step_fn` must give it.

    Returns:
        For each sentence its hypotheses, best first, never none.

    Raises:
        ConfigError: attention or source lengths are needed and not given.
        RequestError: a prefix that cannot be used.
    """
    constraints = Constraints.build(
        config, lines.shape[0], lines.device, source_lengths=source_lengths, prefix=prefix, allowed=allowed
    )
    if isinstance(config, BeamConfig):
        return beam_search(
            step_fn, memory, state, config, constraints, source_lengths=source_lengths, keep_attention=keep_attention
        )
    chooser = _chooser(config, constraints, lines, seed)
    finished: list[list[Hypothesis]] = [[] for _ in range(lines.shape[0])]
    for _ in walk(step_fn, memory, state, chooser, constraints, finished, keep_attention=keep_attention):
        pass
    return [rank(each, chooser.num_paths) for each in finished]


def stream(
    step_fn: StepFn,
    memory: Selectable,
    state: Selectable,
    config: AnySearchConfig,
    *,
    lines: Int[Tensor, " B"],
    source_lengths: Int[Tensor, " B"] | None = None,
    seed: int = 0,
    prefix: list[list[int]] | None = None,
    allowed: Bool[Tensor, " V"] | None = None,
) -> Iterator[Symbols]:
    """Return an iterator over each step's symbols, given as soon as they are chosen; arguments are those of `search`.

    Raises:
        ConfigError: a beam, whose symbols are certain only at the end.
    """
    if isinstance(config, BeamConfig):
        raise ConfigError("A beam cannot be streamed, its words are certain only at the end. Try `search.kind=greedy`.")
    constraints = Constraints.build(
        config, lines.shape[0], lines.device, source_lengths=source_lengths, prefix=prefix, allowed=allowed
    )
    return walk(step_fn, memory, state, _chooser(config, constraints, lines, seed), constraints, [[] for _ in lines])


def _chooser(config: GreedyConfig | SamplingConfig, constraints: Constraints, lines: Tensor, seed: int) -> Chooser:
    if isinstance(config, GreedyConfig):
        return Greedy()
    longest = int(constraints.rows.max_length.max()) if lines.shape[0] else 0
    return Sampler.build(config, lines.tolist(), longest, lines.device, seed=seed)
