"""A run's report stands on one page with curves, samples, attention and configuration; what is hostile is escaped."""

from pathlib import Path

from tests.analysis.test_reading import SIZES, task_of

from heedful import runs
from heedful.pruning.removal import reduce_task
from heedful.runs.attending import picture_of


def test_the_report_has_its_parts(reverser: Path) -> None:
    page = (reverser / "report.html").read_text("utf-8")
    for title in ("Summary", "Training", "Samples", "Attention", "Configuration"):
        assert f"<h2>{title}</h2>" in page
    assert page.count('class="heedful-map"') == 3
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "<script" not in page


def test_a_picture_has_a_row_for_each_symbol_and_its_rows_sum_to_one(reverser: Path) -> None:
    picture = picture_of(runs.load(reverser).task, "abca")
    assert picture is not None
    assert picture.queries == ["a", "c", "b", "a", "</s>"] and picture.keys == ["a", "b", "c", "a", "</s>"]
    assert picture.weights.sum(dim=1).tolist() == [1.0] * 5 or (picture.weights.sum(dim=1) - 1).abs().max() < 1e-5


def test_an_encoder_decoder_is_shown_by_its_cross_attention_or_not_at_all() -> None:
    task = task_of({**SIZES, "kind": "transformer", "encoder_layers": 1, "decoder_layers": 2})
    across = [each.path for each in task.model.attention_sites() if each.kind == "cross"]
    picture = picture_of(reduce_task(task, {across[-1]: ()}), "ab")
    assert picture is not None and len(picture.keys) == 3  # the source's two letters and its end
    assert picture_of(reduce_task(task, dict.fromkeys(across, ())), "ab") is None
