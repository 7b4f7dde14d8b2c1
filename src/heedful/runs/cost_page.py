"""Costs as a page that needs no network, and as one picture."""

from pathlib import Path

from heedful.analysis.cost_figure import cost_panels
from heedful.analysis.cost_report import CostReport
from heedful.analysis.cost_text import cost_tables, crossing_sentence, disturbed_sentence, machine_sentence
from heedful.analysis.figure import Panel, PictureForm, panel_svg, save_panels
from heedful.core.storage import write_whole
from heedful.training.markup import escape
from heedful.training.report import Section, render_page, table

_TITLE = "What layers cost"


def write_cost_page(report: CostReport, path: Path) -> None:
    """Write one HTML file; it appears whole or not at all."""
    write_whole(path, render_page(_TITLE, _sections(report)).encode())


def draw_cost(report: CostReport, path: Path, form: PictureForm = "svg") -> None:
    """Write all panels as one picture."""
    save_panels(list(cost_panels(report).values()), path, form, title=_TITLE)


def _sections(report: CostReport) -> list[Section]:
    panels = cost_panels(report)
    told = [table(header, rows, caption=title) for title, header, rows in cost_tables(report)]
    plan = report.plan
    how = (
        f"Measured with Heedful's own layers, {plan.rows} at a time, {report.dtype}, threads: {report.threads}. "
        "Times are medians of several rounds in turns, after one to warm up; operations are those of matrix products, "
        "counted as they run; memory is the most that was alive at once, forward and backward. "
        f"k = {plan.kernel}, r = {plan.window}."
    )
    if report.is_disturbed:
        how = f"{disturbed_sentence(report)} {how}"
    crossings = "".join(f"<p>{escape(crossing_sentence(each))}</p>" for each in report.crossings)
    return [
        Section(
            "Operations, steps, seconds, memory", f"<p>{escape(how)}</p>{told[0]}" + _figures(panels["operations"])
        ),
        Section("How they grow", told[1] + _figures(panels["seconds"], panels["bytes"], panels["seconds by width"])),
        Section("The longest path", f"<p>{escape(_PATH)}</p>{told[2]}" + _figures(panels["paths"])),
        Section("When attention is the dearer", crossings + _figures(panels["crossing"])),
        Section(
            "The memory wall",
            f"<p>{escape(machine_sentence(report))} {escape(_WALL)}</p>{told[3]}" + _figures(panels["roofline"]),
        ),
    ]


def _figures(*panels: Panel) -> str:
    return "".join(
        f'<figure class="chart">{panel_svg(panel)}<figcaption>{escape(panel.title)}</figcaption></figure>'
        for panel in panels
    )


_PATH = (
    "A gradient is followed from the last position back to the first. Parallel layers are stacked until it arrives; a "
    "recurrent layer is one layer, but the gradient passes every state on the way."
)
_WALL = (
    "Training and encoding multiply each weight with many positions. A step of decoding reads all weights for one "
    "position and waits for the memory; a batch of sentences shares the reading."
)
