"""Small models, lines, trees and made-up weights for tests of role cards."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.analysis import reading as reading_module
from heedful.analysis.heads import Line, survey_heads
from heedful.analysis.heads_card import HeadCard, Score
from heedful.analysis.record import Recording
from heedful.attention.tap import Gates
from heedful.core.config import parse_config
from heedful.core.types import Batch
from heedful.models.interfaces import AttentionSite
from heedful.tasks import TASKS, Task, task_class
from heedful.text import Codec, LabelSet

TABLE = {"kind": "tsv", "path": "x", "source": "s", "target": "t"}
SOURCES = ["the cat sees a big dog", "a dog naps", "the big cat sees the rare owl now"]
TARGETS = ["die katze sieht einen hund", "ein hund schläft", "die katze sieht die owl owl"]
SIZES = {"model_dim": 12, "num_heads": 3, "inner_dim": 10}
Maker = Callable[[AttentionSite, int, int, int], Tensor]
"""Makes a site's weights (heads, queries, keys), given the number of the line and how many queries and keys it has."""


def task_of(model: dict[str, Any], task: str = "translation", kind: str = "word", **more: Any) -> Task:
    text = {"source": {"kind": kind}}
    config = parse_config(
        TASKS[task].config_class, {"task": task, "text": text, "data": {"train": TABLE}, "model": model, **more}
    )
    labelled = task == "classification"
    has_source = task != "language_modelling"
    pairs = [(s if has_source else None, None if labelled else t) for s, t in zip(SOURCES, TARGETS, strict=True)]
    codec = Codec.train(config.text, pairs)
    torch.manual_seed(3)
    return task_class(config)(config, codec, LabelSet.collect(["b", "c"]) if labelled else None)


def survey(task: Task, lines: list[Line], make: Maker, patch: pytest.MonkeyPatch, **more: Any) -> list[HeadCard]:
    """Survey with made-up weights in place of the model's."""

    def record(model: Any, batch: Batch, pattern: str, *, gates: Gates | None = None) -> Recording:
        sites = model.attention_sites()
        lengths = [0 if each is None else each for each in (batch.source_lengths, batch.target_lengths)]
        points = {}
        for site in sites:
            rows = len(batch)
            source = [int(lengths[0][row]) if batch.source is not None else 0 for row in range(rows)]
            target = [int(lengths[1][row]) - 1 if batch.target is not None else 0 for row in range(rows)]
            sizes = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
            queries, keys = sizes[site.kind]
            weights = torch.zeros(rows, site.num_heads, max(queries), max(keys))
            for row in range(rows):
                weights[row, :, : queries[row], : keys[row]] = make(
                    site, int(batch.lines[row]), queries[row], keys[row]
                )
            points[f"{site.path}.weights"] = weights
        return Recording(batch, sites, points)

    patch.setattr(reading_module, "record", record)
    return survey_heads(task, lines, min_cases=1, **more)


def moving(*offsets: int, largest: float = 0.9) -> Maker:
    """Return weights of which each head gives most to one offset, where there is such a key and it can be seen."""

    def make(site: AttentionSite, line: int, queries: int, keys: int) -> Tensor:
        weights = torch.zeros(site.num_heads, queries, keys)
        for head in range(site.num_heads):
            for query in range(queries):
                seen = query + 1 if site.kind == "decoder" else keys
                weights[head, query, :seen] = (1 - largest) / seen
                place = query + offsets[head % len(offsets)]
                if 0 <= place < seen:
                    weights[head, query, place] += largest
                else:
                    weights[head, query, :seen] += largest / seen
        return weights

    return make


def lines_of(**more: Any) -> list[Line]:
    return [Line(source, target, **more) for source, target in zip(SOURCES, TARGETS, strict=True)]


def cards_of(cards: list[HeadCard], kind: str) -> list[HeadCard]:
    return [each for each in cards if each.kind == kind]


def score(card: HeadCard, name: str) -> Score:
    found = card.score(name)
    assert found is not None, [each.name for each in card.scores]
    return found


def conllu(rows: list[tuple[str, int, str]]) -> str:
    return "".join(f"{i}\t{w}\t_\t_\t_\t_\t{h}\t{r}\t_\t_\n" for i, (w, h, r) in enumerate(rows, start=1)) + "\n"


TREES = conllu(
    [
        ("the", 2, "det"),
        ("cat", 3, "nsubj"),
        ("sees", 0, "root"),
        ("a", 6, "det"),
        ("big", 6, "amod"),
        ("dog", 3, "obj"),
    ]
) + conllu([("a", 2, "det"), ("dog", 3, "nsubj"), ("naps", 0, "root")])
TREES += conllu(
    [
        ("the", 3, "det"),
        ("big", 3, "amod"),
        ("cat", 4, "nsubj"),
        ("sees", 0, "root"),
        ("the", 7, "det"),
        ("rare", 7, "amod"),
        ("owl", 4, "obj"),
        ("now", 4, "advmod"),
    ]
)
