"""The lens as a notebook shows it: anywidget calls the module, a copy for each widget, with models that answer."""

import json
from pathlib import Path

import pytest
from tests.analysis.test_lens import TRANSFORMER, view
from tests.analysis.test_reading import task_of
from tests.chromium import Page

from heedful.analysis.lens import Lens
from heedful.analysis.lens_page import MODULE, STYLE, read_part

pytestmark = pytest.mark.browser

TABS = ("head", "sentence", "numbers", "why", "heads")
SHOW = """(lens) => window.modules.forEach(({ render }, index) => {
  const model = { get: () => lens, on: (_, hear) => (model.hear = hear), off: () => (model.hasLeft = true),
    send: (asked) => model.asked.push(asked), asked: [] };
  const el = document.querySelectorAll(".cell")[index];
  (window.models ??= []).push(model);
  (window.leaves ??= []).push(render({ model, el })); })"""
ANSWER = """({ id, heads }) => ({ id,
  answer: { heads: heads.map(([path, head]) => ({ path, head })), text: "new", words: ["new"], log_prob: -3 } })"""


@pytest.fixture(scope="module")
def lens() -> Lens:
    task = task_of(TRANSFORMER, search={"kind": "beam", "beam_size": 2, "max_length": 6})
    return Lens(heedful="1", views=(view(task, "cab b ab", "ba c"),))


def show(page: Page, lens: Lens, folder: Path, *, count: int = 1, width: str = "auto") -> None:
    """Open a page like a notebook, with so many widgets."""
    program = read_part(MODULE).replace("export default { render }", "(window.modules ??= []).push({ render })")
    scripts = f'<script type="module">{program}</script>' * count
    cells = f'<div class="cell" style="width:{width}"></div>' * count
    content = f'<meta charset="utf-8"><style>{read_part(STYLE)}</style><body>{cells}{scripts}</body>'
    (folder / "notebook.html").write_text(content, "utf-8")
    page.errors.clear()
    page.look(1200, 900)
    page.open(f"file://{folder / 'notebook.html'}", ready=f"window.modules?.length === {count}")
    page.evaluate(f"({SHOW})({json.dumps(lens.to_values())})")
    page.wait(f"document.querySelectorAll('[data-ready]').length === {count}")


def answer(page: Page, index: int = 0) -> None:
    """Let the model answer one of the things that it was asked."""
    page.evaluate(f"models[0].hear(({ANSWER})(models[0].asked[{index}]))")


def test_heads_are_silenced_while_one_looks(page: Page, lens: Lens, tmp_path: Path) -> None:
    show(page, lens, tmp_path)
    page.click("[data-focus=tab-why]")
    page.click("[data-focus^=silence-]")
    assert page.text(".answer[data-on] dd") == "The model is answering …"
    page.click("[data-focus^=silence-]")  # in doubt people press twice; it is asked once
    ((path, head),) = page.evaluate("models[0].asked[0].heads")
    assert page.evaluate("[models[0].asked.length, models[0].asked[0].view]") == [1, 0]
    assert head < lens.views[0].site(path).num_heads
    answer(page)
    page.wait("document.querySelector('.answer[data-on] ins')")
    assert page.texts(".answer[data-on] ins") == ["new"]
    page.evaluate("leaves[0]()")
    page.wait("models[0].hasLeft")
    assert page.errors == []


def test_answers_that_overlap_are_all_kept(page: Page, lens: Lens, tmp_path: Path) -> None:
    show(page, lens, tmp_path)
    page.click("[data-focus=tab-why]")
    buttons = "[...document.querySelectorAll('[data-focus^=silence-]')].map((each) => each.dataset.focus)"
    first, second = page.evaluate(buttons)[:2]
    page.click(f'[data-focus="{first}"]')
    page.click(f'[data-focus="{second}"]')
    answer(page, 1)
    answer(page, 0)
    page.wait("document.querySelectorAll('.answer ins').length === 2")
    ids = page.evaluate("models[0].asked.map((each) => each.id)")
    assert len(set(ids)) == 2


def test_no_answer_is_told_to_the_eye(page: Page, lens: Lens, tmp_path: Path) -> None:
    show(page, lens, tmp_path)
    page.evaluate("((wait) => (window.setTimeout = (what, ms) => wait(what, ms / 100)))(window.setTimeout)")
    page.click("[data-focus=tab-why]")
    page.click("[data-focus^=silence-]")
    page.wait("document.querySelector('.answer[data-on] dd').textContent.includes('run the cell again')")
    page.evaluate("models[0].hear({ id: models[0].asked[0].id, error: 'out of memory' })")
    page.wait("document.querySelector('.answer[data-on] dd').textContent === 'No answer: out of memory'")
    page.click("[data-focus^=silence-]")  # what was refused may be asked again
    answer(page, 1)
    page.wait("document.querySelector('.answer[data-on] ins')")
    assert len(page.texts(".answers dl > .answer")) == 2


def test_two_widgets_leave_each_other_alone(page: Page, lens: Lens, tmp_path: Path) -> None:
    """Every widget has a copy of the module, and radio buttons of one name are one group in the whole document."""
    show(page, lens, tmp_path, count=2)
    count = "document.querySelectorAll('.cell:nth-of-type({}) input:checked').length"
    before = [page.evaluate(count.format(number)) for number in (1, 2)]
    assert before[0] == before[1] > 1
    page.click(".cell:nth-of-type(2) [data-focus=unit-pieces]")
    assert [page.evaluate(count.format(number)) for number in (1, 2)] == before
    ids = page.evaluate("[...document.querySelectorAll('.cell [id]')].map((each) => each.id)")
    assert len(ids) == len(set(ids))


def test_keys_of_the_lens_never_reach_the_notebook(page: Page, lens: Lens, tmp_path: Path) -> None:
    show(page, lens, tmp_path)
    page.evaluate("(window.heard = [], document.addEventListener('keydown', (event) => heard.push(event.key)))")
    page.click("[data-focus=tab-heads]")
    page.press("ArrowRight", "ArrowDown", "Enter", " ", "Tab")
    assert page.text("[role=tab][aria-selected=true]") == "One head"
    assert page.evaluate("heard") == ["Tab"]


def test_a_notebook_s_colours_are_followed(page: Page, lens: Lens, tmp_path: Path) -> None:
    show(page, lens, tmp_path)
    theme = "document.querySelector('.heedful-lens').dataset.theme"
    assert page.evaluate(theme) == "auto"
    for is_light, expected in (("false", "dark"), ("true", "light")):
        page.evaluate(f"document.body.dataset.jpThemeLight = '{is_light}'")
        page.wait(f"{theme} === '{expected}'")
    page.click("[data-focus=theme]")
    page.click("[data-focus=theme]")
    assert page.evaluate(theme) == "dark"  # the user's own choice wins over the notebook's


def test_a_narrow_cell_of_a_wide_window_has_no_part_outside(page: Page, lens: Lens, tmp_path: Path) -> None:
    double = Lens(heedful="1", views=(lens.views[0], lens.views[0].model_copy(update={"name": "other"})))
    for width in ("380px", "700px"):
        show(page, double, tmp_path, width=width)
        page.wait(f"document.querySelector('.heedful-lens').dataset.room === '{'narrow' if width < '5' else 'middle'}'")
        lefts = page.evaluate("[...document.querySelectorAll('.view')].map((each) => each.offsetLeft)")
        assert lefts[0] == lefts[1]
        for tab in TABS:
            page.click(f"[data-focus=tab-{tab}]")
            assert page.evaluate("document.querySelector('.heedful-lens').scrollWidth") <= int(width[:-2]), tab


def test_what_a_notebook_does_to_lists_leaves_answers_as_they_are(page: Page, lens: Lens, tmp_path: Path) -> None:
    """Jupyter floats every term of a list, a fifth of the width, in bold; terms here keep their column."""
    show(page, lens, tmp_path)
    page.click("[data-focus=tab-why]")
    page.click("[data-focus^=silence-]")
    answer(page)
    page.wait("document.querySelector('.answer[data-on] ins')")
    look = "(({width, height}) => [width, height])(document.querySelector('.answer dt').getBoundingClientRect())"
    alone = page.evaluate(look)
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<style>.cell dl dt { float: left; width: 20%; clear: left; "
        "font-weight: bold; margin: 1em; padding: 1em }</style>')"
    )
    assert page.evaluate("getComputedStyle(document.querySelector('.answer dt')).clear") == "left"
    assert page.evaluate(look) == alone
