"""What tests of the lens's page share."""

from collections.abc import Iterator

import pytest
from tests.chromium import Page, browse, need_chromium


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """Start a browser for the tests of a file."""
    need_chromium()
    with browse() as found:
        yield found
