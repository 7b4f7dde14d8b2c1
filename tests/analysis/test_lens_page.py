"""The lens in a browser: seen, pressed and read out; nothing fetched; quick."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.analysis.test_lens import MODELS, TRANSFORMER, view
from tests.analysis.test_reading import SIZES, task_of
from tests.chromium import Page, browse, need_chromium

from heedful.analysis import read_lines
from heedful.analysis.lens import Lens, LensSide, LensSite, LensView
from heedful.analysis.lens_causes import silence
from heedful.analysis.lens_matrix import Matrix
from heedful.analysis.lens_page import lens_page, read_part
from heedful.analysis.lens_view import view_of
from heedful.tasks import Task

pytestmark = pytest.mark.browser

SOURCE = "cab b ab"


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    need_chromium()
    with browse() as found:
        yield found


@pytest.fixture(scope="module")
def task() -> Task:
    return task_of(TRANSFORMER, search={"kind": "beam", "beam_size": 2, "max_length": 6})


@pytest.fixture(scope="module")
def lens(task: Task) -> Lens:
    from heedful.analysis.lens import LensHead, LensSilence

    shown = view(task, SOURCE, "ba c")
    name = LensHead(path="decoder.layers.1.cross_attention", head=1)
    answer = LensSilence(heads=(name,), text="ba b", words=("ba", "b"), log_prob=-9.0)
    return Lens(heedful="1", views=(shown.model_copy(update={"silenced": (answer,)}),))


def show(page: Page, lens: Lens, folder: Path, **looks: Any) -> float:
    """Open a lens from disk; return the seconds it took."""
    page.requests.clear()
    page.errors.clear()
    page.look(**{"width": 1200, "height": 900, **looks})
    (folder / "lens.html").write_text(lens_page(lens), "utf-8")
    return page.open(f"file://{folder / 'lens.html'}")


@pytest.fixture
def shown(page: Page, lens: Lens, tmp_path: Path) -> Page:
    show(page, lens, tmp_path)
    return page


def focused(page: Page) -> str:
    return str(
        page.evaluate("document.activeElement.dataset.focus ?? document.activeElement.getAttribute('data-focus')")
    )


def text(page: Page, selector: str) -> str:
    return str(page.evaluate(f"document.querySelector({json.dumps(selector)}).textContent"))


def test_a_file_asks_for_nothing_and_complains_of_nothing(shown: Page, tmp_path: Path) -> None:
    for tab in ("head", "sentence", "numbers", "why", "heads"):
        shown.click(f"[data-focus=tab-{tab}]")
        assert shown.evaluate("document.querySelector('[role=tabpanel]').children.length") == 1
    shown.evaluate("1")
    assert shown.requests == [f"file://{tmp_path / 'lens.html'}"] and shown.errors == []


def test_the_policy_lets_nothing_else_run(shown: Page) -> None:
    ran = "(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); return window.ran ?? 0 })()"
    assert shown.evaluate(ran) == 0
    assert shown.evaluate("fetch('http://127.0.0.1:9/').then(() => 'fetched', () => 'refused')") == "refused"


def test_all_heads_at_a_glance_by_keyboard(shown: Page, lens: Lens) -> None:
    assert shown.evaluate("document.querySelectorAll('.tile canvas').length") == sum(
        each.num_heads for each in lens.views[0].sites
    )
    shown.click("[data-focus=tab-heads]")
    for _ in range(5):
        shown.press("Tab")
        if focused(shown).startswith("tile-"):
            break
    assert focused(shown) == "tile-mine-encoder.layers.0.self_attention-0"
    shown.press("ArrowDown", "ArrowRight")
    assert focused(shown) == "tile-mine-encoder.layers.1.self_attention-1"
    said = text(shown, "[role=status]")
    assert said.startswith("encoder layer 1 head 1; mean of the largest 0.") and " reads " in said
    shown.press("Enter")
    assert text(shown, "[role=tab][aria-selected=true]") == "One head"
    assert shown.evaluate("document.querySelector('[role=application]').ariaLabel").startswith(
        "mine, encoder layer 1, head 1"
    )


def test_one_head_is_read_out_cell_by_cell(shown: Page, lens: Lens, task: Task) -> None:
    (reading,) = read_lines(task, [(SOURCE, "ba c")])
    weights = reading.maps[-1].weights.mean(0)
    shown.click("[data-focus=tab-head]")
    shown.click("[data-focus=unit-pieces]")
    shown.click("[data-focus=cells-mine]")
    shown.press("Home", *["ArrowUp"] * 9)
    assert text(shown, ".readout").startswith(f"▁ reads c: {weights[0, 0]:.3f}") or text(shown, ".readout").startswith(
        f"b reads c: {weights[0, 0]:.3f}"
    )
    shown.press("ArrowDown", "ArrowRight", "ArrowRight")
    assert f" reads b: {weights[1, 2]:.3f} — in all it reads " in text(shown, ".readout")
    shown.press("End", "ArrowRight")
    assert f" reads </s>: {weights[1, -1]:.3f}" in text(shown, ".readout")
    shown.press("Enter")
    assert text(shown, "[role=tab][aria-selected=true]") == "In numbers"
    assert shown.evaluate("document.querySelector('[data-focus=query-mine-1]').ariaPressed") == "true"


def test_the_picture_is_the_numbers(shown: Page, lens: Lens) -> None:
    """Every pixel of a tile has the colour of its weight."""
    weights = lens.views[0].sites[0].weights.unpack()[0]
    pixels = shown.evaluate(
        "(() => { const c = document.querySelector('.tile canvas'); return Array.from(c.getContext('2d').getImageData(0, 0, c.width, c.height).data) })()"
    )
    red = torch.tensor(pixels).view(*weights.shape, 4)[..., 0]
    order = weights.flatten().argsort()
    assert (red.flatten()[order].diff() <= 0).all() and red.min() < red.max()


def test_words_sum_what_is_read_and_average_who_reads(shown: Page, lens: Lens, task: Task) -> None:
    from heedful.analysis import by_words

    (reading,) = read_lines(task, [(SOURCE, "ba c")])
    expected = by_words(reading.maps[-1].weights, reading.target_output.word_of, reading.source.word_of).mean(0)
    shown.click("[data-focus=tab-head]")
    shown.click("[data-focus=unit-words]")
    shown.click("[data-focus=cells-mine]")
    shown.press("Home", *["ArrowUp"] * 9)
    assert text(shown, ".readout").startswith(f"ba reads cab: {expected[0, 0]:.3f}")


def test_lines_are_gone_through_by_keyboard(shown: Page) -> None:
    shown.click("[data-focus=tab-head]")
    shown.click("[data-focus=form-lines]")
    shown.evaluate("document.querySelector('.lines text[tabindex=\"0\"]').focus()")
    shown.press("ArrowDown", "ArrowRight")
    assert focused(shown) == "line-mine-column-1"
    assert " is read by " in text(shown, ".readout")
    on = shown.evaluate(
        "[...document.querySelectorAll('.lines path[data-on]')].every((each) => each.dataset.column === '1')"
    )
    assert on and shown.evaluate("document.querySelectorAll('.lines path[data-on]').length") > 0


def test_the_sentence_tells_what_is_read_and_who_reads(shown: Page) -> None:
    shown.click("[data-focus=tab-sentence]")
    shown.click("[data-focus=chip-mine-query-0]")
    assert shown.evaluate("document.querySelector('[data-focus=chip-mine-query-0]').ariaPressed") == "true"
    assert " reads " in text(shown, ".reads")
    shown.press("ArrowDown", "ArrowRight")
    assert focused(shown) == "chip-mine-key-1" and " is read by " in text(shown, ".read-by")
    shown.click("[data-focus=kind-encoder]")
    assert text(shown, ".reads") and text(shown, ".read-by")


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_page_s_arithmetic_is_the_model_s(page: Page, tmp_path: Path, name: str) -> None:
    task = task_of(MODELS[name], search={"kind": "greedy", "max_length": 6})
    lens = Lens(heedful="1", views=(view(task, SOURCE, "ba c", with_causes=False),))
    show(page, lens, tmp_path)
    page.click("[data-focus=tab-numbers]")
    assert page.errors == []
    said = text(page, ".numbers > .note:last-child")
    gap = float(said.partition("its context by ")[2].rstrip("."))
    assert gap < 1e-5
    shown_weights = page.evaluate(
        "[...document.querySelectorAll('.numbers td.weight span')].map((each) => Number(each.textContent))"
    )
    recorded = lens.views[0].sites[-1].weights.unpack()[0, 0].tolist()
    assert shown_weights == pytest.approx(recorded, abs=6e-4)
    assert text(page, ".steps h4") == "Query"


def test_masked_keys_are_said_to_be_hidden(shown: Page) -> None:
    shown.click("[data-focus=tab-numbers]")
    shown.click("[data-focus=kind-decoder]")
    shown.click("[data-focus=query-mine-1]")
    assert shown.evaluate(
        "[...document.querySelectorAll('.numbers td.weight')].map((each) => each.textContent === 'hidden')"
    )[:3] == [False, False, True]


def test_why_this_word_leads_to_a_new_answer(shown: Page, lens: Lens) -> None:
    shown.click("[data-focus=tab-why]")
    shown.click("[data-focus=unit-words]")
    shown.click("[data-focus=output-mine-1]")
    heads = shown.evaluate(
        "[...document.querySelectorAll('.why .columns th')].map((each) => each.firstChild.textContent)"
    )
    assert {"weights", "norms", "rollout"} <= set(heads[:4])
    assert "the first answer’s log-probability: -9.00" in text(shown, ".answers")
    assert (
        shown.evaluate("[...document.querySelectorAll('ins, del')].map((each) => each.textContent)") == ["c", "b"]
        or shown.evaluate("[...document.querySelectorAll('ins, del')].length") == 2
    )


def test_a_notebook_silences_heads_while_one_looks(page: Page, lens: Lens, task: Task, tmp_path: Path) -> None:
    """The module as anywidget calls it, with a model that answers."""
    show(page, lens, tmp_path)
    program = read_part("lens.js").replace("export default", "window.widget =")
    (tmp_path / "notebook.html").write_text(f'<body><script type="module">{program}</script></body>', "utf-8")
    page.open(f"file://{tmp_path / 'notebook.html'}", ready="window.widget")
    values = json.dumps(lens.to_values())
    page.evaluate(
        f"""(() => {{ const lens = {values}; lens.views[0].silenced = []; let heard;
        const model = {{ get: () => lens, on: (_, f) => (heard = f), off: () => {{ window.left = 1 }},
          send: ({{ id, view, heads }}) => {{ window.asked = [view, heads]; heard({{ id, answer:
            {{ heads: heads.map(([path, head]) => ({{ path, head }})), text: "new", words: ["new"], log_prob: -3 }} }}) }} }};
        const el = document.createElement("div"); document.body.append(el); window.leave = widget.render({{ model, el }}) }})()"""
    )
    page.wait("document.querySelector('[data-ready]')")
    page.click("[data-focus=tab-why]")
    page.click("[data-focus^=silence-]")
    page.wait("document.querySelector('.answer[data-on]')")
    assert text(page, ".answer[data-on] ins") == "new"
    path, head = page.evaluate("window.asked[1][0]")
    assert silence(task.model.attention_sites(), [(path, head)]).factors[path][head] == 0
    page.evaluate("window.leave()")
    page.wait("window.left")
    assert page.errors == []


def test_light_dark_and_a_phone(page: Page, lens: Lens, tmp_path: Path) -> None:
    grounds = {}
    for scheme in ("light", "dark"):
        show(page, lens, tmp_path, scheme=scheme)
        grounds[scheme] = page.evaluate("getComputedStyle(document.querySelector('.heedful-lens')).backgroundColor")
        assert page.evaluate(CONTRAST) > 4.5
    assert grounds["light"] != grounds["dark"]
    page.click("[data-focus=theme]")  # the user's own choice wins over the system's
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.heedful-lens')).backgroundColor") == grounds["light"]
    )
    show(page, lens, tmp_path, width=360, height=740, touch=True)
    for tab in ("heads", "head", "sentence", "numbers", "why"):
        page.evaluate(f"document.querySelector('[data-focus=tab-{tab}]').click()")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, tab


CONTRAST = """(() => {
  const style = getComputedStyle(document.querySelector('.heedful-lens'));
  const light = (name) => { const v = parseInt(style.getPropertyValue(name).trim().slice(1), 16);
    const [r, g, b] = [v >> 16, (v >> 8) & 255, v & 255].map((c) => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05) };
  return Math.min(ratio('--ink', '--ground'), ratio('--faint', '--ground'), ratio('--accent', '--ground'),
    ratio('--accent-ink', '--accent'), ratio('--second', '--ground')) })()"""
"""The least contrast of any text with its ground; WCAG 2 asks for 4.5 (section 1.4.3)."""


def test_two_models_are_seen_side_by_side(page: Page, lens: Lens, tmp_path: Path) -> None:
    small = task_of({**TRANSFORMER, "num_heads": 1, "decoder_layers": 1})
    other = view(small, SOURCE, "ba c").model_copy(update={"name": "pruned"})
    show(page, Lens(heedful="1", views=(lens.views[0], other)), tmp_path)
    assert page.evaluate("[...document.querySelectorAll('.view h2')].map((each) => each.textContent)") == [
        "mine",
        "pruned",
    ]
    left, right = page.evaluate(
        "[...document.querySelectorAll('.view')].map((each) => each.getBoundingClientRect().left)"
    )
    assert left < right
    page.click("[data-focus=tab-head]")
    page.click("[data-focus=head-2]")
    assert "pruned has no cross attention in layer 1." in text(page, ".views")
    assert page.errors == []


def test_hostile_words_stay_words(page: Page, tmp_path: Path) -> None:
    task = task_of({**SIZES, "kind": "transformer", "encoder_layers": 1, "decoder_layers": 1})
    nasty = "<img src=x onerror=window.ran=1>\u202eb\x1b\u2028a\u05d0"
    (reading,) = read_lines(task, [("ab", "ba")], pattern="*")
    shown = view_of(task, reading, "mine")
    side = LensSide(pieces=(nasty,) * 3, words=(nasty,), word_of=(0, 0, 0))
    hostile = shown.model_copy(update={"sides": dict.fromkeys(shown.sides, side), "source_text": nasty, "name": nasty})
    show(page, Lens(heedful=nasty, views=(hostile, hostile)), tmp_path)
    for tab in ("head", "sentence", "numbers", "why", "heads"):
        page.click(f"[data-focus=tab-{tab}]")
        whole = page.evaluate("document.querySelector('.heedful-lens').outerHTML")
        assert "\\u202eb\\x1b\\u2028a" in whole and not {"\u202e", "\x1b", "\u2028"} & set(whole)
    assert page.evaluate("window.ran ?? 0") == 0 and page.errors == []
    assert page.evaluate("document.querySelectorAll('img').length") == 0


def big_view(length: int, layers: int, heads: int) -> LensView:
    """Return a view of random distributions, which no packing makes smaller."""
    generator = torch.Generator().manual_seed(1)
    words = tuple(f"word{index}" for index in range(length))
    side = LensSide(pieces=words, words=words, word_of=tuple(range(length)))
    sites = []
    for kind, queries, keys in (
        ("encoder", "source", "source"),
        ("decoder", "target_input", "target_input"),
        ("cross", "target_output", "source"),
    ):
        for layer in range(layers):
            weights = torch.rand(heads, length, length, generator=generator).softmax(-1)
            packed = Matrix.pack(weights, "u1")
            sites.append(LensSite(path=f"{kind}.{layer}", kind=kind, layer=layer, num_heads=heads, head_dim=64, queries=queries, keys=keys,
                                  weights=packed, norms=packed, rollout=Matrix.pack(weights[:1], "u1")))  # fmt: skip
    sides = dict.fromkeys(("source", "target_input", "target_output"), side)
    return LensView(name="big", task="translation", model="transformer", source_text=" ".join(words), target_text=" ".join(words),
                    is_forced=True, sides=sides, sites=tuple(sites))  # fmt: skip


def test_a_long_view_of_many_heads_is_small_and_quick(page: Page, tmp_path: Path) -> None:
    """128 x 128 positions, 6 layers x 8 heads, encoder, decoder and cross: under 10 MB, usable within 2 s."""
    lens = Lens(heedful="1", views=(big_view(128, 6, 8),))
    assert len(lens_page(lens)) + 1_600_000 < 10_000_000  # room for attention in numbers
    elapsed_s = show(page, lens, tmp_path)
    assert page.evaluate("document.querySelectorAll('.tile').length") == 144
    start_s = time.perf_counter()
    page.click("[data-focus=tab-head]")
    assert page.evaluate("document.querySelectorAll('.top').length") == 128
    assert elapsed_s < 2 and time.perf_counter() - start_s < 1


def test_five_hundred_positions_stay_usable(page: Page, tmp_path: Path) -> None:
    show(page, Lens(heedful="1", views=(big_view(500, 1, 1),)), tmp_path)
    page.click("[data-focus=tab-head]")
    page.click("[data-focus=cells-big]")
    page.press("End")
    assert " reads word499: " in text(page, ".readout")
    box = "document.querySelector('[data-focus=cells-big] .spot').getBoundingClientRect()"
    frame = "document.querySelector('.scroller').getBoundingClientRect()"
    assert page.evaluate(f"{box}.right <= {frame}.right + 1 && {box}.bottom <= {frame}.bottom + 1")
    page.click("[data-focus=form-lines]")
    assert "The 600 strongest of " in text(page, ".views")
