"""Learning rates, by hand."""

import math
from typing import get_args

import pytest

from heedful.core.config import parse_config
from heedful.core.errors import ConfigError
from heedful.core.types import Position
from heedful.training import TrainingConfig
from heedful.training.schedule import (
    AnySchedule,
    ConstantSchedule,
    CosineSchedule,
    InverseSquareRootSchedule,
    LinearSchedule,
    NoamSchedule,
)
from heedful.training.state import State
from heedful.training.stopping import fraction_done


def test_rates_by_hand() -> None:
    assert ConstantSchedule(peak=0.3, warmup_steps=4).rate(0, 0.5) == pytest.approx(0.3 / 4)
    assert ConstantSchedule(peak=0.3, warmup_steps=4).rate(3, 0.5) == 0.3
    assert LinearSchedule(peak=0.4, final=0.25).rate(9, 0.5) == pytest.approx(0.25)
    assert CosineSchedule(peak=0.4, final=0.1).rate(9, 0.0) == pytest.approx(0.4)
    assert CosineSchedule(peak=0.4, final=0.1).rate(9, 1 / 3) == pytest.approx(0.4 * (0.1 + 0.9 * 0.75))
    assert CosineSchedule(peak=0.4, final=0.1).rate(9, 1.0) == pytest.approx(0.04)
    assert InverseSquareRootSchedule(peak=0.4, warmup_steps=25).rate(24, 0.0) == pytest.approx(0.4)
    assert InverseSquareRootSchedule(peak=0.4, warmup_steps=25).rate(99, 0.0) == pytest.approx(0.2)


def test_noam_is_the_published_formula_with_its_peak_after_warmup() -> None:
    noam = NoamSchedule(model_dim=512, warmup_steps=4000)
    assert noam.rate(3999, 0.0) == pytest.approx(1 / math.sqrt(512 * 4000))
    assert noam.rate(99, 0.0) == pytest.approx(512**-0.5 * 100 * 4000**-1.5)
    assert noam.rate(15999, 0.0) == pytest.approx(512**-0.5 * 16000**-0.5)


def test_every_kind_is_read_from_a_table() -> None:
    kinds = [each.model_fields["kind"].default for each in get_args(get_args(AnySchedule)[0])]
    assert len(kinds) == 5
    for kind in kinds:
        table = {"kind": kind, **({"model_dim": 7} if kind == "noam" else {})}
        assert TrainingConfig.model_validate({"max_steps": 3, "schedule": table}).schedule.kind == kind


def test_share_done_follows_the_nearest_limit() -> None:
    config = TrainingConfig(max_steps=100, max_minutes=2.0, max_epochs=4)
    assert fraction_done(config, State(step=10, elapsed_s=6.0), None) == 0.1
    assert fraction_done(config, State(step=10, elapsed_s=60.0), None) == 0.5
    at_epoch = State(step=10, position=Position(3, 5))
    assert fraction_done(config, at_epoch, 10) == 3.5 / 4
    assert fraction_done(config, at_epoch, None) == 0.75
    at_epoch.epoch_batches = 20
    assert fraction_done(config, at_epoch, None) == 3.25 / 4
    assert fraction_done(config, State(step=300), None) == 1.0


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "never ends: set `training.max_steps`"),
        ({"patience": 3}, "`cosine`, which must know the end"),
        ({"max_steps": 3, "accumulate": 2, "update_tokens": 5}, "exclude each other"),
        ({"max_steps": 3, "validate_every": 2, "validate_minutes": 5}, "exclude each other"),
        ({"max_step": 3}, "`training.max_step` is not a known key. Did you mean `max_steps`"),
    ],
)
def test_mistakes_are_explained(table: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_config(TrainingConfig, table, prefix="training")
