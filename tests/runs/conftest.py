"""What tests of prunings share."""

from pathlib import Path

import pytest

from heedful import runs
from heedful.runs import speed
from heedful.training import SilentReporter


@pytest.fixture(scope="session")
def pruned(reverser: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, runs.Pruning]:
    """Keep three of six heads and half of the inner units, once for all tests; return the new run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speed, "NUM_LINES", {1: 1, 8: 3, 64: 5})
        patch.setattr(speed, "NUM_ROUNDS", 1)
        path = tmp_path_factory.mktemp("pruned") / "run"
        wish = {"keep": 3, "method": "gradient", "inner_fraction": 0.5, "max_steps": 60}
        found = runs.prune(reverser, path, reporter=SilentReporter(), **wish)
    return path, found
