"""Search against enumeration, against itself in company, and its limits, on models small enough to know whole."""

import itertools
import math

import pytest
import torch
from tests.search.toy import ToyMemory, log_prob_of, start, step, toy

from heedful.core.errors import ConfigError, RequestError
from heedful.core.symbols import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from heedful.search import BeamConfig, GreedyConfig, Hypothesis, SamplingConfig, search, stream

SOURCE_LENGTHS = torch.tensor([2, 1, 3, 3, 2])


def find(memory: ToyMemory, config, **options) -> list[list[Hypothesis]]:
    rows = memory.table.shape[0]
    options.setdefault("lines", torch.arange(rows))
    return search(step, memory, start(memory), config, **options)


def score_of(memory: ToyMemory, row: int, ids: tuple[int, ...], config: BeamConfig) -> float:
    """Return the penalised score of a whole output, from the published equations."""
    length = len(ids) + 1
    divisor = {"none": 1.0, "average": length**config.length_alpha, "gnmt": ((5 + length) / 6) ** config.length_alpha}
    score = log_prob_of(memory, row, ids) / divisor[config.length_penalty]
    if config.coverage_penalty:
        coverage = sum(memory.attention[row, each].double() for each in (BOS_ID, *ids))
        real = coverage[: int(SOURCE_LENGTHS[row])].tolist()
        score += config.coverage_penalty * sum(math.log(min(each, 1.0)) for each in real)
    return score


def every_output(vocabulary: int, longest: int) -> list[tuple[int, ...]]:
    words = [each for each in range(vocabulary) if each not in (PAD_ID, BOS_ID, EOS_ID)]
    return [ids for length in range(longest + 1) for ids in itertools.product(words, repeat=length)]


PENALTIES = [
    {"length_penalty": "none"},
    {"length_penalty": "average", "length_alpha": 1.0},
    {"length_penalty": "average", "length_alpha": 0.5},
    {"length_penalty": "gnmt", "length_alpha": 0.6},
    {"length_penalty": "gnmt", "length_alpha": 1.3, "coverage_penalty": 0.3},
]


@pytest.mark.parametrize("penalties", PENALTIES)
def test_wide_beam_is_exhaustive(penalties: dict) -> None:
    memory = toy(3, 7, seed=1)
    outputs = every_output(7, 3)
    config = BeamConfig(beam_size=len(outputs), num_best=11, max_length=3, max_length_ratio=0, **penalties)
    found = find(memory, config, source_lengths=SOURCE_LENGTHS[:3])
    for row in range(3):
        expected = sorted(((score_of(memory, row, ids, config), ids) for ids in outputs), reverse=True)[:11]
        assert [each.ids for each in found[row]] == [ids for _, ids in expected]
        assert [each.score for each in found[row]] == pytest.approx([score for score, _ in expected], abs=1e-5)


def test_a_finished_hypothesis_keeps_its_place() -> None:
    memory = toy(1, 6, seed=1)
    memory.table[:] = torch.tensor([1e-9, 1e-9, 1e-9, 0.5, 0.3, 0.2]).log()
    config = BeamConfig(beam_size=2, num_best=2, length_penalty="average", length_alpha=1.5, max_length=9)
    # The second step has one place left, and its best continuation ends; (4, 4) would have scored better.
    assert score_of(memory, 0, (4, 4), config) > score_of(memory, 0, (4,), config) > score_of(memory, 0, (), config)
    assert [each.ids for each in find(memory, config)[0]] == [(4,), ()]


@pytest.mark.parametrize("penalties", PENALTIES)
def test_scores_are_forced_scores(penalties: dict) -> None:
    memory = toy(5, 13, seed=4)
    config = BeamConfig(beam_size=3, num_best=3, max_length=9, **penalties)
    for row, hypotheses in enumerate(find(memory, config, source_lengths=SOURCE_LENGTHS)):
        for each in hypotheses:
            assert each.log_prob == pytest.approx(log_prob_of(memory, row, each.ids), abs=1e-5)
            assert each.score == pytest.approx(score_of(memory, row, each.ids, config), abs=1e-5)


@pytest.mark.parametrize("penalties", PENALTIES[:4])
def test_greedy_is_a_beam_of_one(penalties: dict) -> None:
    memory = toy(7, 13, seed=5)
    greedy = find(memory, GreedyConfig(max_length=11))
    beam = find(memory, BeamConfig(beam_size=1, max_length=11, **penalties))
    assert [each[0].ids for each in greedy] == [each[0].ids for each in beam]
    assert [each[0].is_complete for each in greedy] == [each[0].is_complete for each in beam]
    for one, other in zip(greedy, beam, strict=True):
        assert one[0].log_prob == pytest.approx(other[0].log_prob)


CONFIGS = [
    GreedyConfig(max_length=11),
    BeamConfig(beam_size=5, num_best=5, max_length=11, length_penalty="average"),
    BeamConfig(beam_size=3, num_best=2, max_length=11, coverage_penalty=0.2),
    BeamConfig(beam_size=3, max_length=11, min_length=2, no_repeat_ngram=2, repetition_penalty=1.5),
    SamplingConfig(max_length=11),
    SamplingConfig(max_length=11, num_best=3, top_k=4, top_p=0.8, temperature=1.3),
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_company_does_not_matter(config) -> None:
    memory = toy(23, 13, seed=6)
    lengths = torch.tensor([1 + row % 3 for row in range(23)])
    prefix = [[4] * (row % 4) for row in range(23)]
    together = find(memory, config, source_lengths=lengths, prefix=prefix, keep_attention=True)
    for row in range(0, 23, 3):
        rows = torch.tensor([row])
        alone = find(
            memory.select(rows),
            config,
            lines=rows,
            source_lengths=lengths[rows],
            prefix=[prefix[row]],
            keep_attention=True,
        )
        for one, other in zip(alone[0], together[row], strict=True):
            assert (one.ids, one.score, one.log_prob, one.is_complete) == (
                other.ids,
                other.score,
                other.log_prob,
                other.is_complete,
            )
            assert torch.equal(one.attention, other.attention)


def test_n_best_is_sorted_and_distinct() -> None:
    memory = toy(5, 13, seed=7)
    for hypotheses in find(memory, BeamConfig(beam_size=7, num_best=7, max_length=9)):
        scores = [each.score for each in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({each.ids for each in hypotheses}) == len(hypotheses) > 1


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_reserved_symbols_are_never_generated(config) -> None:
    memory = toy(7, 5, seed=8)
    memory.table[:, :, :, PAD_ID] += 5
    memory.table[:, :, :, BOS_ID] += 5
    lengths = torch.ones(7, dtype=torch.long)
    for hypotheses in find(memory, config, source_lengths=lengths):
        assert not {PAD_ID, BOS_ID, EOS_ID} & {each for one in hypotheses for each in one.ids}


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_lengths_are_kept(config) -> None:
    memory = toy(7, 11, seed=9, sharpness=0.5)
    memory.table[:, :, :, EOS_ID] += torch.linspace(-4, 4, 7)[:, None, None]
    limited = config.model_copy(update={"min_length": 3, "max_length": 5, "max_length_ratio": 0, "no_repeat_ngram": 0})
    lengths = {
        len(each.ids)
        for hypotheses in find(memory, limited, source_lengths=torch.ones(7, dtype=torch.long))
        for each in hypotheses
    }
    assert min(lengths) >= 3 and max(lengths) == 5


def test_limit_follows_the_source() -> None:
    memory = toy(3, 7, seed=10)
    memory.table[:, :, :, EOS_ID] -= 50
    config = GreedyConfig(max_length=19, max_length_ratio=1.5, max_length_extra=2)
    found = find(memory, config, source_lengths=torch.tensor([1, 5, 17]))
    assert [len(each[0].ids) for each in found] == [3, 9, 19]
    assert not any(each[0].is_complete for each in found)


def test_the_least_length_outweighs_the_source() -> None:
    memory = toy(3, 7, seed=10)
    memory.table[:, :, :, EOS_ID] += 50
    config = GreedyConfig(min_length=5, max_length=9, max_length_ratio=0.5, max_length_extra=0)
    found = find(memory, config, source_lengths=torch.tensor([1, 4, 16]))
    assert [len(each[0].ids) for each in found] == [5, 5, 5]


def test_ending_at_the_limit_by_itself_is_complete() -> None:
    memory = toy(1, 7, seed=10)
    memory.table[:, 4, 5, :] = torch.eye(7)[EOS_ID].mul(9).log_softmax(0)
    config = GreedyConfig(max_length=2)
    (hypothesis,) = find(memory, config, prefix=[[4, 5]])[0]
    assert hypothesis.ids == (4, 5) and hypothesis.is_complete
    (cut,) = find(memory, config, prefix=[[5, 4]])[0]
    assert cut.ids == (5, 4) and not cut.is_complete


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_prefix_is_forced(config) -> None:
    memory = toy(4, 11, seed=11)
    prefix = [[], [7], [4, 4, 4, 4], [5, 9, 5, 9]]
    found = find(memory, config, prefix=prefix, source_lengths=SOURCE_LENGTHS[:4])
    for row, hypotheses in enumerate(found):
        for each in hypotheses:
            assert list(each.ids[: len(prefix[row])]) == prefix[row]


def test_prefix_longer_than_the_limit_is_kept() -> None:
    memory = toy(1, 11, seed=11)
    (hypothesis,) = find(memory, BeamConfig(max_length=2), prefix=[[4, 5, 6]])[0]
    assert hypothesis.ids == (4, 5, 6)


def test_search_goes_on_from_a_prefix_as_from_its_own_words() -> None:
    memory = toy(5, 11, seed=12)
    free = find(memory, GreedyConfig(max_length=9))
    forced = find(memory, GreedyConfig(max_length=9), prefix=[list(each[0].ids[:2]) for each in free])
    assert [each[0].ids for each in forced] == [each[0].ids for each in free]


def test_wrong_prefixes_are_refused() -> None:
    memory = toy(2, 11, seed=12)
    with pytest.raises(RequestError, match="1 prefixes for 2 lines"):
        find(memory, GreedyConfig(), prefix=[[4]])
    with pytest.raises(RequestError, match="padding, begin or end"):
        find(memory, GreedyConfig(), prefix=[[4], [EOS_ID]])


@pytest.mark.parametrize("kind", ["greedy", "beam", "sampling"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_comes_twice(kind: str, size: int) -> None:
    memory = toy(7, 8, seed=13, sharpness=4)
    configs = {"greedy": GreedyConfig, "beam": BeamConfig, "sampling": SamplingConfig}
    found = find(memory, configs[kind](max_length=40, max_length_ratio=0, no_repeat_ngram=size))
    for hypotheses in found:
        for each in hypotheses:
            ngrams = list(zip(*(each.ids[start:] for start in range(size)), strict=False))
            assert len(set(ngrams)) == len(ngrams)


def test_a_line_with_nothing_left_still_ends() -> None:
    memory = toy(3, 5, seed=14)
    found = find(memory, GreedyConfig(min_length=6, max_length=9, no_repeat_ngram=1))
    for (each,) in found:
        assert sorted(each.ids) == [UNK_ID, 4] and not each.is_complete


@pytest.mark.parametrize("nothing", [float("-inf"), float("nan")])
def test_a_model_without_an_answer_still_gives_a_line(nothing: float) -> None:
    memory = toy(3, 5, seed=14)
    memory.table[:] = nothing
    for config in (GreedyConfig(max_length=3), SamplingConfig(max_length=3), SamplingConfig(max_length=3, top_p=0.5)):
        assert all(len(each.ids) <= 3 for (each,) in find(memory, config))
    for (each,) in find(memory, BeamConfig(max_length=3)):
        assert each.ids == () and not each.is_complete


def test_repetition_penalty_makes_repetition_dear() -> None:
    memory = toy(1, 6, seed=15)
    memory.table[:] = torch.tensor([-9.0, -9, -9, -9, -0.5, -1.0])
    free = find(memory, GreedyConfig(max_length=4))[0][0]
    dear = find(memory, GreedyConfig(max_length=4, repetition_penalty=3.0))[0][0]
    assert free.ids == (4, 4, 4, 4)
    assert dear.ids == (4, 5, 4, 4)


def test_symbols_not_allowed_stay_out() -> None:
    memory = toy(5, 7, seed=16)
    allowed = torch.tensor([False, False, False, False, True, False, True])
    for config in CONFIGS:
        found = find(memory, config, allowed=allowed, source_lengths=SOURCE_LENGTHS)
        assert {each for hypotheses in found for one in hypotheses for each in one.ids} <= {4, 6}
        assert any(len(one.ids) for hypotheses in found for one in hypotheses)


def test_attention_follows_its_hypothesis() -> None:
    memory = toy(5, 11, seed=17)
    for config in CONFIGS:
        found = find(memory, config, keep_attention=True, source_lengths=SOURCE_LENGTHS)
        for row, hypotheses in enumerate(found):
            for each in hypotheses:
                expected = memory.attention[row, torch.tensor([BOS_ID, *each.ids])]
                assert torch.equal(each.attention, expected)


def test_attention_that_is_not_given_is_asked_for() -> None:
    memory = toy(2, 7, seed=18)

    def blind(ids, memory, state):
        return step(ids, memory, state)._replace(attention=None)

    for config in (GreedyConfig(), BeamConfig()):
        with pytest.raises(ConfigError, match="needs attention"):
            search(blind, memory, start(memory), config, lines=torch.arange(2), keep_attention=True)
    with pytest.raises(ConfigError, match="coverage_penalty"):
        find(memory, BeamConfig(coverage_penalty=0.1))


def test_stream_yields_what_search_finds() -> None:
    memory = toy(7, 11, seed=19)
    for config in (GreedyConfig(max_length=9), SamplingConfig(max_length=9)):
        said: dict[int, list[int]] = {line: [] for line in range(7)}
        for symbols in stream(step, memory, start(memory), config, lines=torch.arange(7), seed=3):
            for line, ids in zip(symbols.lines, symbols.ids, strict=True):
                said[line] += [each for each in ids if each not in (PAD_ID, EOS_ID)]
        found = find(memory, config, seed=3)
        assert [tuple(said[line]) for line in range(7)] == [each[0].ids for each in found]


def test_streaming_leaves_gradients_as_they_are() -> None:
    memory = toy(2, 7, seed=19)
    for _ in stream(step, memory, start(memory), GreedyConfig(max_length=3), lines=torch.arange(2)):
        assert torch.is_grad_enabled()


def test_a_beam_is_not_streamed() -> None:
    memory = toy(2, 7, seed=20)
    with pytest.raises(ConfigError, match="greedy"):
        stream(step, memory, start(memory), BeamConfig(), lines=torch.arange(2))


def test_an_empty_batch_gives_nothing() -> None:
    memory = toy(2, 7, seed=21).select(torch.tensor([], dtype=torch.long))
    for config in CONFIGS:
        lengths = torch.tensor([], dtype=torch.long)
        assert find(memory, config, source_lengths=lengths) == []
