"""What a person sees: progress at stderr, TensorBoard, the report."""

import io
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from toy_training import RUNTIME, ToyTask, make_config

from heedful.core.errors import BundleError
from heedful.training import (
    ConsoleReporter,
    RunFolder,
    Section,
    config_section,
    curves_section,
    escape,
    read_history,
    resume,
    samples_section,
    table,
    train,
    write_report,
)
from heedful.training.charts import Axis, Line, line_chart
from heedful.training.events import Events
from heedful.training.progress import describe_rest, describe_time
from heedful.training.records import RollbackRecord
from heedful.training.report import render_page


def test_plain_lines_without_a_terminal(tmp_path: Path) -> None:
    out = io.StringIO()
    reporter = ConsoleReporter(Console(file=out, width=40))
    train(ToyTask(broken_at=(9,)), make_config(max_steps=9), RUNTIME, RunFolder(tmp_path / "run"), reporter)
    lines = out.getvalue().splitlines()
    expected = [
        r"step 4  epoch 2  loss [\d.]+  rate [\d.]+  [\d,]+ targets/s  [\d.]+ s",
        r"Training went wrong at step 5: the loss is nan. It goes on from the checkpoint of step 0 with 0.5 times .*",
        r"step 4  epoch 3  loss .*",
        r"step 6  held-out loss [\d.]+  exactness -[\d.]+  \(best so far\)  \(measured in [\d.]+ s\)",
        r"step 8  epoch 4  loss .*",
        r"step 9  held-out loss .*",
    ]
    for line, pattern in zip(lines, expected, strict=False):
        assert re.fullmatch(pattern, line), line
    assert lines[-1].startswith("Training ended at step 9: `training.max_steps` is reached. The best validation was at")
    assert "\x1b" not in out.getvalue()


def test_an_end_within_the_warm_up_is_told(tmp_path: Path) -> None:
    out = io.StringIO()
    for steps in (4, 5):
        reporter = ConsoleReporter(Console(file=out, width=40))
        train(ToyTask(), make_config(max_steps=steps), RUNTIME, RunFolder(tmp_path / str(steps)), reporter)
    early, late = (line for line in out.getvalue().splitlines() if line.startswith("Training ended"))
    assert "before the end of the warm-up of 5 updates" in early and "training.schedule.warmup_steps" in early
    assert "warm-up" not in late


def test_bar_at_a_terminal(tmp_path: Path) -> None:
    out = io.StringIO()
    reporter = ConsoleReporter(Console(file=out, width=150, force_terminal=True))
    train(ToyTask(), make_config(max_steps=9), RUNTIME, RunFolder(tmp_path / "run"), reporter)
    assert "targets/s" in out.getvalue() and "held-out loss" in out.getvalue()


def test_times_in_words() -> None:
    assert describe_time(8.44) == "8.4 s"
    assert describe_time(725.0) == "12:05"
    assert describe_time(3 * 3600.0 + 7 * 60) == "3:07:00"
    assert describe_rest(60.0, 0.25) == "  3:00 left"
    assert describe_rest(60.0, 0.0) == ""


def test_events_after_the_checkpoint_are_purged_by_resuming(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = RunFolder(tmp_path / "run")
    config = make_config(max_steps=10, log_every=1, has_tensorboard=True)
    train(ToyTask(), config, RUNTIME, folder)
    later = Events(folder.events)
    later.write(RollbackRecord(step=12, broken_step=12, fault="", rate_factor=0.5, elapsed_s=1.0))
    later.close()
    resume(ToyTask(), config.model_copy(update={"max_steps": 13}), RUNTIME, folder)
    found = EventAccumulator(str(folder.events))
    found.Reload()
    assert [each.step for each in found.Scalars("train/loss")] == list(range(1, 14))
    assert [each.step for each in found.Scalars("validation/exactness")] == [6, 10, 12, 13]
    assert found.Scalars("train/rate_factor") == []


def test_event_files_are_read_in_the_order_they_were_begun(tmp_path: Path) -> None:
    for step in range(1, 3):
        events = Events(tmp_path, next_step=step)
        events.write(RollbackRecord(step=step, broken_step=step, fault="", rate_factor=0.5, elapsed_s=1.0))
        events.close()
    seconds = [each.name.split(".")[3] for each in sorted(tmp_path.iterdir())]
    assert len(set(seconds)) == 2


# ---------------------------------------------------------------------------------------------------- report


class Reader(HTMLParser):
    """Checks that every tag is closed, and remembers tags, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """See `HTMLParser`."""
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """See `HTMLParser`."""
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        """See `HTMLParser`."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """See `HTMLParser`."""
        self.text += data


def read_page(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


EVIL = "<script>alert('x')</script> \x1b[31m \u202e \x00 \ud800 \u2028 & \""


def test_report_of_a_run_is_one_harmless_page(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    train(ToyTask(broken_at=(33,)), make_config(), RUNTIME, folder)
    sections = [
        curves_section(read_history(folder.history)),
        samples_section([{"source": EVIL, "prediction": "b"}]),
        Section("Scores <1>", table([EVIL, "value"], [[EVIL, 1.5], ["b", None], ["c", 12345]], caption=EVIL)),
        config_section(f'model = "{EVIL}"'),
    ]
    write_report(folder.report, EVIL, sections)
    page = folder.report.read_text(encoding="utf-8")
    reader = read_page(page)
    assert not any(tag in ("script", "img", "link", "iframe") for tag, _ in reader.tags)
    assert not any(name.startswith("on") for _, attributes in reader.tags for name in attributes)
    assert "http://" not in page and "https://" not in page
    assert set(map(ord, page)).isdisjoint({0, 0x1B, 0x202E, 0x2028})
    assert "\\x1b[31m \\u202e \\x00 \\ud800 \\u2028" in reader.text
    assert "went wrong at" in reader.text and "held-out exactness" in reader.text
    assert "12,345" in reader.text
    assert [each.name for each in folder.path.iterdir() if "writing" in each.name] == []


def test_report_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="the report cannot be written"):
        write_report(tmp_path / "missing" / "report.html", "a", [])


def test_empty_report_says_so() -> None:
    assert "No values of loss" in read_page(render_page("Empty", [curves_section([])])).text


def test_escape_keeps_what_people_write() -> None:
    assert escape("a\tb\nc é 中 👩\u200d🚀") == "a\tb\nc é 中 👩\u200d🚀"
    assert escape("<'\"&>\r") == "&lt;&#x27;&quot;&amp;&gt;\\x0d"


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0.0, 10.0, [0, 2, 4, 6, 8, 10]), (0.31, 1.19, [0.4, 0.6, 0.8, 1.0]), (-3.0, 2.0, [-3, -2, -1, 0, 1, 2])],
)
def test_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert Axis(low, high, 0.0, 1.0).ticks() == pytest.approx(ticks)


def test_points_stand_where_they_should() -> None:
    axis = Axis(10.0, 20.0, 300.0, 100.0)
    assert [axis.place(each) for each in (10.0, 15.0, 20.0)] == [300.0, 200.0, 100.0]


def test_chart_leaves_out_what_is_not_finite_and_thins_long_lines() -> None:
    def hints(points: list[tuple[float, float]]) -> list[str]:
        chart = line_chart([Line("loss", points)], x_name="updates", y_name="loss")
        return re.findall("<title>(.*?)</title>", chart)

    nan: Any = float("nan")
    assert hints([(1.0, 2.5), (2.0, nan), (3.0, 2.5)]) == ["loss: 2.5 at 1", "loss: 2.5 at 3"]
    many = hints([(float(x), float(x)) for x in range(1, 1001)])
    assert len(many) == 200
    assert many[0] == "loss: 3 at 5" and many[-1] == "loss: 998 at 1,000"
    assert hints([(1.0, 0.0)]) == ["loss: 0 at 1"]
