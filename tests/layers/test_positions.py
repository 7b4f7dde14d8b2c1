import math

import pytest
import torch

from heedful.attention.rotary import Rotary
from heedful.core.config import Config, parse_config
from heedful.core.errors import ConfigError, RequestError
from heedful.layers.positions import POSITIONS, ROTATIONS, AnyPositionsConfig, build_positions, build_rotary


class Holder(Config):
    positions: AnyPositionsConfig


def config(kind: str, **values: object) -> AnyPositionsConfig:
    return parse_config(Holder, {"positions": {"kind": kind, **values}}).positions


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_later_positions_are_those_of_the_whole(kind: str) -> None:
    positions = build_positions(config(kind), 7)
    whole = positions(torch.zeros(2, 11, 3))
    assert whole.shape == (11, 7)
    torch.testing.assert_close(positions(torch.zeros(2, 4, 3), offset=5), whole[5:9])
    assert positions(torch.zeros(1, 1, 1, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_sinusoids_as_published() -> None:
    positions = build_positions(config("sinusoidal"), 6)
    rows = positions(torch.zeros(1, 1500, 6))
    for position in (0, 3, 1023, 1024, 1499):  # the table ends at 1024
        expected = [
            function(position / 10000 ** (pair * 2 / 6)) for pair in range(3) for function in (math.sin, math.cos)
        ]
        torch.testing.assert_close(
            positions(torch.zeros(1, 1, 6), offset=position)[0], torch.tensor(expected), atol=2e-6, rtol=0
        )
        torch.testing.assert_close(rows[position], torch.tensor(expected), atol=2e-6, rtol=0)


def test_learned_positions_end_somewhere() -> None:
    positions = build_positions(config("learned", max_positions=5), 3)
    with pytest.raises(RequestError, match="6 positions is longer than the 5"):
        positions(torch.zeros(1, 2, 3), offset=4)


def test_kinds_that_add_nothing_and_kinds_that_turn() -> None:
    assert {kind for kind in POSITIONS if build_positions(config(kind), 4) is None} == {"rotary", "none"}
    assert {kind for kind in ROTATIONS if build_rotary(config(kind), 4) is not None} == {"rotary"}


def test_rotation_by_hand() -> None:
    # Pairs are (0, 2) and (1, 3); their wavelengths are 1 and 1/100.
    turned = Rotary(4)(torch.tensor([1.0, 1.0, 0.0, 0.0]).view(1, 1, 1, 4), offset=2)
    expected = [math.cos(2), math.cos(0.02), math.sin(2), math.sin(0.02)]
    torch.testing.assert_close(turned.flatten(), torch.tensor(expected))
    with pytest.raises(ConfigError, match="must be even"):
        Rotary(5)


def test_rotated_products_depend_on_distance_only() -> None:
    torch.manual_seed(3)
    rotary = Rotary(6)
    query, key = torch.randn(2, 1, 1, 1, 6)
    products = [(rotary(query, 3 + shift) * rotary(key, shift)).sum() for shift in (0, 1, 40)]
    torch.testing.assert_close(products[0], products[1])
    torch.testing.assert_close(products[0], products[2], atol=1e-4, rtol=1e-4)
    assert not torch.allclose(products[0], (query * key).sum())


@pytest.mark.parametrize("position", [5_000, 200_000])
def test_rotation_far_from_the_beginning(position: int) -> None:
    # The reference turns complex numbers in float64; the module goes through a conversion that rounds its buffers.
    angles = position * 10_000.0 ** -(torch.arange(0, 64, 2, dtype=torch.float64) / 64)
    turns = torch.polar(torch.ones_like(angles), angles)
    vectors = torch.randn(64, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    expected = torch.complex(vectors[:32], vectors[32:]) * turns
    turned = Rotary(64).bfloat16()(vectors.view(1, 1, 1, 64), offset=position)
    torch.testing.assert_close(turned.flatten(), torch.cat([expected.real, expected.imag]), atol=1e-9, rtol=0)
