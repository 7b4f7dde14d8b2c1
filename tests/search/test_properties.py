"""What holds for every search over every model."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.toy import log_prob_of, start, step, toy

from heedful.core.symbols import BOS_ID, EOS_ID, PAD_ID
from heedful.search import BeamConfig, GreedyConfig, SamplingConfig, search
from heedful.search.beam import beam_search
from heedful.search.constraints import Constraints

LIMITS = {
    "min_length": st.integers(0, 3),
    "max_length": st.integers(3, 7),
    "max_length_ratio": st.just(0.0) | st.floats(0.5, 2),
    "max_length_extra": st.integers(0, 3),
    "no_repeat_ngram": st.integers(0, 2),
}
BEAMS = st.builds(
    BeamConfig,
    beam_size=st.integers(2, 5),
    num_best=st.integers(1, 2),
    length_penalty=st.sampled_from(["none", "average", "gnmt"]),
    length_alpha=st.floats(0, 1.5),
    coverage_penalty=st.sampled_from([0.0, 0.2]),
    **LIMITS,
)
GREEDY = st.builds(GreedyConfig, **LIMITS)
SAMPLING = st.builds(
    SamplingConfig,
    num_best=st.integers(1, 3),
    temperature=st.floats(0.3, 2),
    top_k=st.integers(0, 4),
    top_p=st.floats(0.3, 1),
    **LIMITS,
)


@settings(deadline=None, max_examples=40)
@given(BEAMS | GREEDY | SAMPLING, st.integers(5, 9), st.integers(0, 999), st.floats(0.3, 4), st.data())
def test_outputs_are_what_was_asked_for(config, vocabulary: int, seed: int, sharpness: float, data) -> None:
    rows = 3
    memory = toy(rows, vocabulary, seed, sharpness=sharpness)
    words = st.lists(st.integers(EOS_ID + 1, vocabulary - 1), max_size=4)
    prefix = data.draw(st.lists(words, min_size=rows, max_size=rows))
    lengths = torch.tensor([1, 3, 2])
    found = search(
        step,
        memory,
        start(memory),
        config,
        lines=torch.arange(rows),
        source_lengths=lengths,
        prefix=prefix,
        seed=seed,
    )
    assert len(found) == rows
    for row, hypotheses in enumerate(found):
        assert 1 <= len(hypotheses) <= (1 if isinstance(config, GreedyConfig) else config.num_best)
        assert [each.score for each in hypotheses] == sorted((each.score for each in hypotheses), reverse=True)
        limit = config.max_length
        if config.max_length_ratio:
            relative = int(float(lengths[row]) * config.max_length_ratio) + config.max_length_extra
            limit = max(min(limit, relative), config.min_length, 1)
        for each in hypotheses:
            assert not {PAD_ID, BOS_ID, EOS_ID} & set(each.ids)
            assert list(each.ids[: len(prefix[row])]) == prefix[row]
            assert len(each.ids) <= max(limit, len(prefix[row]))
            assert len(each.ids) >= config.min_length or not each.is_complete
            assert each.log_prob == pytest.approx(log_prob_of(memory, row, each.ids), abs=1e-4)
        if isinstance(config, BeamConfig):
            assert len({each.ids for each in hypotheses}) == len(hypotheses)


@settings(deadline=None, max_examples=40)
@given(BEAMS, st.integers(5, 9), st.integers(0, 999), st.floats(0.3, 4))
def test_early_stop_never_changes_the_outcome(config, vocabulary: int, seed: int, sharpness: float) -> None:
    memory = toy(3, vocabulary, seed, sharpness=sharpness)
    lengths = torch.tensor([1, 3, 2])
    found = []
    for each in ("certain", "never"):
        changed = config.model_copy(update={"early_stop": each})
        constraints = Constraints.build(changed, 3, torch.device("cpu"), source_lengths=lengths)
        found.append(beam_search(step, memory, start(memory), changed, constraints, source_lengths=lengths))
    assert found[0] == found[1]
