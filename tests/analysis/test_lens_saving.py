"""Pictures that the page of the lens saves: what was chosen, for paper."""

import itertools
import re
import struct
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from tests.analysis.lens_samples import SOURCE, TARGET, show
from tests.analysis.test_lens import view
from tests.chromium import Page

from heedful.analysis.lens import Lens
from heedful.tasks import Task

pytestmark = pytest.mark.browser


def saved(page: Page, form: str, folder: Path) -> Path:
    """Press a button that saves; return the file that came."""
    before = set(folder.iterdir())
    page.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    page.click(f"[data-focus=save-{form}-mine]")
    end_s = time.monotonic() + 20
    while not (fresh := [each for each in set(folder.iterdir()) - before if each.suffix == f".{form}"]):
        assert time.monotonic() < end_s, "nothing was saved"
        page.evaluate("new Promise((done) => setTimeout(done, 20))")
    return fresh[0]


SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_matrix_is_saved_as_it_is_chosen_and_for_paper(
    page: Page, lens: Lens, weights: torch.Tensor, tmp_path: Path, scheme: str
) -> None:
    show(page, lens, tmp_path, scheme=scheme)
    for choice in ("tab-head", "unit-pieces", "head-1", "form-matrix"):
        page.click(f"[data-focus={choice}]")
    path = saved(page, "svg", tmp_path)
    picture = ElementTree.parse(path).getroot()
    view = lens.views[0]
    texts = [each.text for each in picture.iter(f"{SVG}text")]
    assert path.name == "mine-cross-layer-1-head-1-weights.svg"
    assert texts[-1] == "mine, cross layer 1, head 1, weights"
    pieces = [*view.sides["target_output"].pieces, *view.sides["source"].pieces]
    assert texts[: len(pieces)] == [each.strip() or "\u2423" for each in pieces]
    shade = {
        (int(row), int(column)): [int(part) for part in re.findall(r"\d+", each.get("fill", ""))]
        for each in picture.iter(f"{SVG}path")
        for column, row in re.findall(r"M(\d+) (\d+)h1", each.get("d", ""))
    }
    flat = weights[1].flatten()
    order = flat.argsort().tolist()
    reds = [shade.get(divmod(place, weights.shape[2]), [255])[0] for place in order]
    assert all(one >= other for one, other in itertools.pairwise(reds)) and reds[0] > reds[-1]
    assert page.errors == []


def test_lines_are_saved_with_the_word_that_was_chosen(shown: Page, tmp_path: Path) -> None:
    for choice in ("tab-head", "form-lines", "line-mine-row-1"):
        shown.click(f"[data-focus={choice}]")
    picture = ElementTree.parse(saved(shown, "svg", tmp_path)).getroot()
    rows = {each.get("data-row") for each in picture.iter(f"{SVG}path")}
    bold = [each.text for each in picture.iter(f"{SVG}text") if each.get("font-weight") == "bold"]
    assert rows == {"1"} and bold == [shown.texts(".lines text")[1]]


def test_all_heads_are_saved_in_pixels(shown: Page, tmp_path: Path) -> None:
    shown.click("[data-focus=tab-heads]")
    path = saved(shown, "png", tmp_path)
    content = path.read_bytes()
    width, height = struct.unpack(">II", content[16:24])
    assert content.startswith(b"\x89PNG") and width > 1000 and height > 500
    assert path.name == "mine-heads-weights.png" and shown.text("[role=status]") == f"{path.name} is saved."


def test_hostile_words_are_saved_as_words(page: Page, lens_task: Task, tmp_path: Path) -> None:
    nasty = "</text><script>1</script>\u202eb\x1b&"
    plain = view(lens_task, SOURCE, TARGET)
    sides = {
        name: each.model_copy(update={"pieces": (nasty,) * len(each.pieces), "words": (nasty,) * len(each.words)})
        for name, each in plain.sides.items()
    }
    show(page, Lens(heedful="1", views=(plain.model_copy(update={"sides": sides}),)), tmp_path)
    page.click("[data-focus=tab-head]")
    picture = ElementTree.parse(saved(page, "svg", tmp_path)).getroot()
    assert not list(picture.iter(f"{SVG}script"))
    assert "</text><script>1</scrip…" in {each.text for each in picture.iter(f"{SVG}text")}
    assert page.errors == []


def test_of_two_models_each_is_saved(page: Page, lens: Lens, tmp_path: Path) -> None:
    other = lens.views[0].model_copy(update={"name": "../pruned"})
    show(page, Lens(heedful="1", views=(other, lens.views[0])), tmp_path)
    for choice in ("tab-head", "measure-rollout", "form-matrix"):
        page.click(f"[data-focus={choice}]")
    assert saved(page, "svg", tmp_path).name == "mine-cross-layer-1-rollout.svg"
    page.click("[data-focus='save-svg-../pruned']")
    deadline_s = time.monotonic() + 20
    while not (found := list(tmp_path.glob("*pruned*.svg"))):
        assert time.monotonic() < deadline_s
        page.evaluate("new Promise((done) => setTimeout(done, 20))")
    assert [each.name for each in found] == ["-pruned-cross-layer-1-rollout.svg"]
