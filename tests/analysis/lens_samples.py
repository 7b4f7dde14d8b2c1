"""The lens of a small model that is not trained, and how a browser is made to show one."""

from pathlib import Path
from typing import Any

from tests.chromium import Page

from heedful.analysis.lens import Lens
from heedful.analysis.lens_page import lens_page

SOURCE, TARGET = "cab b ab", "ba c"
CROSS = "decoder.layers.1.cross_attention"


def show(page: Page, lens: Lens, folder: Path, **looks: Any) -> float:
    """Open a lens from disk; return the seconds it took."""
    page.requests.clear()
    page.errors.clear()
    page.look(**{"width": 1200, "height": 900, **looks})
    (folder / "lens.html").write_text(lens_page(lens), "utf-8")
    return page.open(f"file://{folder / 'lens.html'}")
