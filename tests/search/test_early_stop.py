"""When a beam is over: early stops spare work; a certain one changes nothing, a likely one only for the worse."""

import pytest
import torch
from tests.search.test_search import PENALTIES, SOURCE_LENGTHS
from tests.search.toy import ToyMemory, start, step, toy

from heedful.core.symbols import BOS_ID
from heedful.search import BeamConfig, Hypothesis
from heedful.search.beam import beam_search
from heedful.search.constraints import Constraints


def find(memory: ToyMemory, early_stop: str, **words) -> tuple[list[list[Hypothesis]], int]:
    """Search, and return what was found and how many hypotheses were computed in all steps."""
    calls = []

    def counted(ids, memory, state):
        calls.append(ids.numel())
        return step(ids, memory, state)

    rows = memory.table.shape[0]
    config = BeamConfig(early_stop=early_stop, **words)
    constraints = Constraints.build(config, rows, torch.device("cpu"))
    lengths = SOURCE_LENGTHS[:rows]
    return beam_search(counted, memory, start(memory), config, constraints, source_lengths=lengths), sum(calls)


@pytest.mark.parametrize("penalties", PENALTIES)
@pytest.mark.parametrize("sharpness", [0.5, 3.0])
def test_a_certain_stop_changes_nothing(penalties: dict, sharpness: float) -> None:
    memory = toy(5, 11, seed=2, sharpness=sharpness)
    words = {"beam_size": 5, "num_best": 2, "max_length": 13, **penalties}
    certain, certain_work = find(memory, "certain", **words)
    never, work = find(memory, "never", **words)
    assert certain == never
    assert certain_work <= work


def test_a_certain_stop_spares_steps() -> None:
    memory = toy(5, 11, seed=3, sharpness=3.0)
    words = {"beam_size": 5, "length_penalty": "none", "max_length": 29}
    assert find(memory, "certain", **words)[1] < find(memory, "never", **words)[1]


def test_a_likely_stop_gives_up_what_only_gains_by_growing_much() -> None:
    """An unlikely first symbol that then goes on for ever: divided by its length, the longest output is the best."""
    memory = toy(1, 6, seed=1)
    memory.table[:, :, BOS_ID] = torch.tensor([1e-9, 1e-9, 1e-9, 0.6, 0.05, 1e-9]).log()
    memory.table[:, :, 4] = torch.tensor([1e-9, 1e-9, 1e-9, 0.01, 0.99, 1e-9]).log()
    words = {"beam_size": 2, "length_penalty": "average", "length_alpha": 1.0, "max_length": 40}
    certain, certain_work = find(memory, "certain", **words)
    likely, work = find(memory, "likely", **words)
    assert certain[0][0].ids == (4,) * 40
    assert likely[0][0].ids == ()
    assert work < certain_work / 10


@pytest.mark.parametrize("penalties", PENALTIES)
@pytest.mark.parametrize("sharpness", [0.5, 3.0])
def test_a_likely_stop_computes_no_more_and_never_finds_better(penalties: dict, sharpness: float) -> None:
    memory = toy(5, 11, seed=6, sharpness=sharpness)
    words = {"beam_size": 4, "num_best": 2, "max_length": 15, **penalties}
    certain, certain_work = find(memory, "certain", **words)
    likely, work = find(memory, "likely", **words)
    assert work <= certain_work
    for best, other in zip(certain, likely, strict=True):
        assert other[0].score <= best[0].score
