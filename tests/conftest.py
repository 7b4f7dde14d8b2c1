"""Every test runs with shapes and types checked at each call."""

import os
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

if not os.environ.get("HEEDFUL_NO_TYPE_HOOK"):
    install_import_hook("heedful", "beartype.beartype")


@pytest.fixture(scope="session")
def reverser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a model that turns words around, once for all tests; return its run's folder."""
    from tests.runs.samples import reversal

    from heedful import runs
    from heedful.training import SilentReporter

    folder = tmp_path_factory.mktemp("reverser")
    return runs.train(reversal(folder), folder / "run", reporter=SilentReporter()).path


@pytest.fixture
def quick_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure speed on a few lines, once."""
    from heedful.runs import speed

    monkeypatch.setattr(speed, "NUM_LINES", {1: 1, 8: 3, 64: 5})
    monkeypatch.setattr(speed, "NUM_ROUNDS", 1)
