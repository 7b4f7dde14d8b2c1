"""What tests of the lens's page share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.analysis.lens_samples import CROSS, SOURCE, TARGET, show
from tests.analysis.test_lens import TRANSFORMER, view
from tests.analysis.test_reading import task_of
from tests.chromium import Page, browse, need_chromium

from heedful.analysis import read_lines
from heedful.analysis.lens import Lens, LensHead, LensSilence
from heedful.tasks import Task


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """Start a browser for the tests of a file."""
    need_chromium()
    with browse() as found:
        yield found


@pytest.fixture(scope="module")
def lens_task() -> Task:
    return task_of(TRANSFORMER, search={"kind": "beam", "beam_size": 2, "max_length": 6})


@pytest.fixture(scope="module")
def lens(lens_task: Task) -> Lens:
    answer = LensSilence(heads=(LensHead(path=CROSS, head=1),), text="ba b", words=("ba", "b"), log_prob=-9.0)
    return Lens(heedful="1", views=(view(lens_task, SOURCE, TARGET).model_copy(update={"silenced": (answer,)}),))


@pytest.fixture(scope="module")
def weights(lens_task: Task) -> torch.Tensor:
    """Return what the last cross-attention read, in the order of its heads."""
    (reading,) = read_lines(lens_task, [(SOURCE, TARGET)])
    return reading.maps[-1].weights


@pytest.fixture
def shown(page: Page, lens: Lens, tmp_path: Path) -> Page:
    show(page, lens, tmp_path)
    return page
