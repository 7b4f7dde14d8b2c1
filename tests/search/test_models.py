"""Search over real models: what a step gives is what the whole sequence gives."""

import pytest
import torch

from heedful.attention.scores import BilinearScoreConfig
from heedful.core.symbols import BOS_ID, EOS_ID
from heedful.core.types import Batch
from heedful.models.catalogue import build_model
from heedful.models.interfaces import Generates, VocabularySizes
from heedful.models.recurrent import RecurrentConfig
from heedful.models.stepping import make_step_fn
from heedful.models.transformer import TransformerConfig
from heedful.search import BeamConfig, GreedyConfig, Hypothesis, SamplingConfig, search

CONFIGS = [
    GreedyConfig(max_length=7),
    BeamConfig(beam_size=3, num_best=3, max_length=7, coverage_penalty=0.1),
    SamplingConfig(max_length=7, num_best=2),
]


@pytest.fixture(scope="module", params=["transformer", "recurrent"])
def model(request) -> Generates:
    configs = {
        "transformer": TransformerConfig(encoder_layers=1, decoder_layers=2, model_dim=8, num_heads=2, inner_dim=7),
        "recurrent": RecurrentConfig(
            embedding_dim=5, hidden_dim=6, attention=BilinearScoreConfig(), has_input_feeding=True
        ),
    }
    torch.manual_seed(1)
    built = build_model(configs[request.param], VocabularySizes(source=13, target=11))
    assert isinstance(built, Generates)
    torch.nn.init.normal_(built.output.weight)
    return built.eval()


def batch_of(rows: list[list[int]]) -> Batch:
    lengths = torch.tensor([len(each) for each in rows])
    source = torch.zeros(len(rows), int(lengths.max()), dtype=torch.long)
    for row, ids in enumerate(rows):
        source[row, : len(ids)] = torch.tensor(ids)
    return Batch(lines=torch.arange(len(rows)), source=source, source_lengths=lengths)


ROWS = [[5, 6, 7, 8, EOS_ID], [EOS_ID], [9, 10, EOS_ID], [5, 5, 5, EOS_ID], [12, EOS_ID]]


@torch.no_grad()
def find(model: Generates, batch: Batch, config) -> list[list[Hypothesis]]:
    memory = model.encode(batch)
    step_fn = make_step_fn(model, with_attention=True)
    return search(
        step_fn, memory, model.start(memory), config, lines=batch.lines, source_lengths=batch.source_lengths, seed=3
    )


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
@torch.no_grad()
def test_scores_are_those_of_the_whole_sequence(model: Generates, config) -> None:
    for row, hypotheses in enumerate(find(model, batch_of(ROWS), config)):
        for each in hypotheses:
            target = torch.tensor([[BOS_ID, *each.ids]])
            hidden = model.decode(model.encode(batch_of([ROWS[row]])), target)
            log_probs = model.output.log_probs(hidden)[0]
            forced = log_probs.gather(1, torch.tensor([*each.ids, EOS_ID])[:, None]).sum()
            assert each.log_prob == pytest.approx(forced.item(), abs=1e-4)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_company_does_not_matter(model: Generates, config) -> None:
    together = find(model, batch_of(ROWS), config)
    for row, ids in enumerate(ROWS):
        batch = batch_of([ids])
        alone = find(
            model, Batch(lines=torch.tensor([row]), source=batch.source, source_lengths=batch.source_lengths), config
        )
        assert [each.ids for each in alone[0]] == [each.ids for each in together[row]]
        assert [each.score for each in alone[0]] == pytest.approx([each.score for each in together[row]], abs=1e-5)
