"""Positions as a page that needs no network, and as one picture."""

from pathlib import Path

from heedful.analysis.figure import Panel, PictureForm, panel_svg, save_panels
from heedful.analysis.positions_figure import position_panels
from heedful.analysis.positions_probe import ProbeScores
from heedful.analysis.positions_report import PositionsReport
from heedful.core.storage import write_whole
from heedful.training.markup import escape
from heedful.training.report import Section, render_page, table


def write_positions_page(report: PositionsReport, path: Path) -> None:
    """Write one HTML file; it appears whole or not at all."""
    title = f"Positions: {report.table.name}"
    write_whole(path, render_page(title, _sections(report)).encode())


def draw_positions(report: PositionsReport, path: Path, form: PictureForm = "svg") -> None:
    """Write all panels as one picture."""
    save_panels(list(position_panels(report).values()), path, form, title=f"Positions: {report.table.name}")


def _sections(report: PositionsReport) -> list[Section]:
    panels = position_panels(report)
    sections = [
        Section("The pattern", _told(_PATTERN[report.table.kind], panels["pattern"])),
        Section("Similarity by distance", _told(_SIMILARITY, panels["similarity"], panels["all pairs"])),
    ]
    if report.turning is not None:
        rows = [[each.steps, each.num_positions, f"{each.largest_error:.1e}"] for each in report.turning.checks]
        checked = table(["steps k", "positions p", "largest error"], rows, caption="PE(p + k) against M_k PE(p)")
        sections.append(Section("A step is a turn", _told(_TURN, panels["turn"], panels["matrix"]) + checked))
    if report.counter is not None:
        told = _told(_COUNTER, panels["bits"], panels["hands"], panels["shares"])
        sections.append(Section("A counter", told))
    if report.probe is not None:
        sections.append(Section("What a linear probe reads", _told(_PROBE, panels["probe"]) + _probe_table(report)))
    rows = [[each.kind, f"{each.words:.2g}", f"{each.cat:.2g}", f"{each.sentence:.2g}"] for each in report.order]
    header = ["positions", "same word, largest difference", "cat", "sentence mean"]
    sections.append(Section("Does order count?", _told(_ORDER) + table(header, rows)))
    return sections


def _told(text: str, *panels: Panel) -> str:
    figures = "".join(
        f'<figure class="chart">{panel_svg(panel)}<figcaption>{escape(panel.title)}</figcaption></figure>'
        for panel in panels
    )
    return f"<p>{escape(text)}</p>{figures}"


def _probe_table(report: PositionsReport) -> str:
    probe = report.probe
    assert probe is not None
    rows = [
        ["this table", *_cells(probe.scores)],
        ["random table", *_cells(probe.random)],
        ["chance", f"{probe.chance_error:.2f}", "0.00", *[f"{probe.chance_accuracy:.1%}"] * 2],
    ]
    return table(["", "position, mean error", "R2", "order of two", "of near ones"], rows)


def _cells(scores: ProbeScores) -> list[str]:
    return [
        f"{scores.position_error:.2f}",
        f"{scores.position_r2:.2f}",
        f"{scores.order_accuracy:.1%}",
        f"{scores.near_accuracy:.1%}",
    ]


_PATTERN = {
    "sinusoidal": "Each pair of dimensions is a sine and a cosine of one wavelength, from 2 pi positions at the low "
    "indices to nearly 10000 times as many at the high ones (Vaswani et al. 2017, section 3.5).",
    "rotary": "Rotary positions are not added: they turn pairs of each query and key. Drawn is what they make of the "
    "pair (1, 0), pairs side by side (Su et al. 2021).",
    "learned": "A vector for each position, as training left it. Positions that training never reached are as they "
    "were drawn at the start.",
}
_SIMILARITY = (
    "The cosine of two positions. Where distance alone decides, the band is as thin as the line; learned tables may "
    "treat the beginning and the end differently."
)
_TURN = (
    "Some steps further is a turn of each pair, by an angle that does not depend on the position. One block-diagonal "
    "matrix therefore carries every position the same number of steps on, and a linear layer can learn it."
)
_COUNTER = (
    "The low bits of a binary number change at every step, the high ones rarely. So do the dimensions: those of low "
    "index are fast and carry the fine changes."
)
_PROBE = (
    "A linear probe is fitted on some positions and asked about others (Wang and Chen 2020): where does this one "
    "stand, and which of two comes first? Near ones are at most a sixteenth of the table apart."
)
_ORDER = (
    "\u201cThe cat chased the mouse\u201d and \u201cThe mouse chased the cat\u201d, read by an encoder with fresh "
    "weights. Without positions self-attention is permutation-equivariant: every word has the same vector in both, and "
    "the sentences cannot be told apart."
)
