"""The lens as one file that opens from disk: the module, its style and the values, and no address outside."""

import base64
import hashlib
import html
import importlib.resources

from heedful.analysis.lens import Lens
from heedful.analysis.render import printable

MODULE = "lens.js"
STYLE = "lens.css"
_START = """
for (const place of document.querySelectorAll("[data-heedful-lens]")) {
  mount(place, JSON.parse(document.getElementById(place.dataset.heedfulLens).textContent));
}
"""


def read_part(name: str) -> str:
    """Return the text of the module or its style, which come with the package."""
    return importlib.resources.files("heedful.analysis").joinpath(name).read_text("utf-8")


def lens_page(lens: Lens) -> str:
    """Return the page. Its policy lets nothing run but the module, and nothing be fetched."""
    program = read_part(MODULE) + _START
    digest = base64.b64encode(hashlib.sha256(program.encode("utf-8")).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:"
    view = lens.views[0]
    title = html.escape(printable(f"{view.source_text or ''} → {view.target_text}"[:120]))
    # Nothing in a line can end the element or the string: the values are ASCII, and this is the one sign that could.
    values = lens.to_json().replace("<", "\\u003c")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{title}</title>\n<style>\n{read_part(STYLE)}</style>\n</head>\n"
        '<body class="heedful-page">\n<main data-heedful-lens="heedful-values"></main>\n'
        f'<script type="application/json" id="heedful-values">{values}</script>\n'
        f'<script type="module">{program}</script>\n</body>\n</html>\n'
    )
