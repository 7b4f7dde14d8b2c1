"""``report.html``: a run on one page that needs no network, no script and no other file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.core.errors import BundleError
from heedful.core.storage import write_whole
from heedful.training.charts import Line, line_chart, show_number
from heedful.training.markup import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1b1d22; --paper: #fdfdfb; --faint: #666b75; --rule: #dcdde0;
  --c0: #0072b2; --c1: #d55e00; --c2: #008f68; --c3: #b05c8c; --c4: #b07d00; --c5: #2f8fc4; --c6: #55585f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e6e1; --paper: #16181c; --faint: #a0a5ae; --rule: #363a42;
  --c0: #56b4e9; --c1: #f0803c; --c2: #2fc79b; --c3: #dd9cc0; --c4: #e6b13a; --c5: #9bd1f2; --c6: #b9bcc4; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 46rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { margin-top: 2.5rem; font-size: 1.2rem; } h3 { font-size: 1rem; }
a { color: var(--c0); } nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; }
.wide { overflow-x: auto; } .empty, footer, figcaption { color: var(--faint); font-size: .875rem; }
table { border-collapse: collapse; font-size: .9rem; } caption { text-align: left; color: var(--faint); }
th, td { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top;
  white-space: pre-wrap; overflow-wrap: normal; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
dl { margin: 0; } .sample { padding: .6rem 0; border-bottom: 1px solid var(--rule); }
.sample dt { color: var(--faint); font-size: .8rem; } .sample dd { margin: 0; white-space: pre-wrap; }
pre { overflow-x: auto; font-size: .85rem; } figure { margin: 1rem 0; } figcaption span { margin-right: 1rem; }
.chart svg { width: 100%; max-width: 36rem; height: auto; display: block; }
svg.swatch { display: inline; width: 28px; height: 8px; }
svg text { font-size: 13px; fill: var(--faint); } svg .name { fill: var(--ink); }
.grid { stroke: var(--rule); } .axis { fill: none; stroke: var(--faint); } .hint { fill: transparent; }
.series { fill: none; stroke-width: 2; stroke-linejoin: round; } .hint:hover { fill: var(--ink); fill-opacity: .2; }
""" + "\n".join(
    f".series-{number} {{ stroke: var(--c{number}); }} .mark.series-{number} {{ fill: var(--c{number}); }}"
    for number in range(7)
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        title: plain text.
        html: ready-made; whoever makes it escapes what it holds, with `heedful.training.markup.escape`.
    """

    title: str
    html: str


def write_report(path: Path, title: str, sections: Sequence[Section]) -> None:
    """Write a page, replacing an earlier one in one atomic step.

    Raises:
        BundleError: the file cannot be written; an earlier one is untouched.
    """
    try:
        write_whole(path, render_page(title, sections).encode("utf-8"))
    except OSError as error:
        raise BundleError(f"{path}: the report cannot be written: {error.strerror}.") from error


def render_page(title: str, sections: Sequence[Section]) -> str:
    """Return the page."""
    links = "".join(f'<a href="#part-{number}">{escape(each.title)}</a>' for number, each in enumerate(sections))
    parts = "\n".join(
        f'<section id="part-{number}"><h2>{escape(each.title)}</h2>\n{each.html}\n</section>'
        for number, each in enumerate(sections)
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n<nav>{links}</nav>\n{parts}\n<footer><p>Written by Heedful.</p></footer>\n"
        "</body>\n</html>\n"
    )


def curves_section(records: Sequence[Mapping[str, Any]], title: str = "Training") -> Section:
    """Return curves of a history (`read_history`): loss in training and held out, every other score, rate and speed."""
    trained = [each for each in records if each["kind"] == "train"]
    validated = [each for each in records if each["kind"] == "validation"]
    losses = [Line("training", _points(trained, "loss")), Line("held out", _score_points(validated, "loss"))]
    charts = [line_chart(losses, x_name="updates", y_name="loss (nats per target)")]
    names = dict.fromkeys(name for each in validated for name in each["scores"] if name != "loss")
    for name in names:
        line = Line(f"held-out {name}", _score_points(validated, name))
        charts.append(line_chart([line], x_name="updates", y_name=f"held-out {name}"))
    for name, label in (("rate", "learning rate"), ("targets_per_s", "targets per second")):
        charts.append(line_chart([Line(label, _points(trained, name))], x_name="updates", y_name=label))
    returns = [each for each in records if each["kind"] == "rollback"]
    if returns:
        rows = [[each["broken_step"], each["fault"], each["step"], each["rate_factor"]] for each in returns]
        charts.append(table(["went wrong at", "what", "went on from", "rate times"], rows, caption="Returns"))
    return Section(title, "\n".join(charts))


def samples_section(samples: Sequence[Mapping[str, str]], title: str = "Samples") -> Section:
    """Return samples, each a mapping from a label to a text, e.g. source, reference, prediction."""
    items = [
        '<dl class="sample">'
        + "".join(f'<dt>{escape(label)}</dt><dd dir="auto">{escape(text)}</dd>' for label, text in sample.items())
        + "</dl>"
        for sample in samples
    ]
    return Section(title, "\n".join(items) or '<p class="empty">None.</p>')


def table_section(title: str, header: Sequence[str], rows: Sequence[Sequence[object]], *, caption: str = "") -> Section:
    """Return a table as a section."""
    return Section(title, table(header, rows, caption=caption))


def config_section(toml: str, title: str = "Configuration") -> Section:
    """Return the resolved configuration as it stands in its file."""
    return Section(title, f"<pre><code>{escape(toml)}</code></pre>")


def table(header: Sequence[str], rows: Sequence[Sequence[object]], *, caption: str = "") -> str:
    """Return a table as HTML; numbers stand at the right, and None is an empty cell."""
    has_numbers = [all(_is_number(row[column]) for row in rows) for column in range(len(header))] if rows else []
    classes = [' class="number"' if each else "" for each in has_numbers] or [""] * len(header)
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(header, classes, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{_show(value)}</td>" for value, kind in zip(row, classes, strict=True)) + "</tr>"
        for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'<div class="wide"><table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _show(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return escape(show_number(value))
    return escape(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value)


def _points(records: Sequence[Mapping[str, Any]], name: str) -> list[tuple[float, float]]:
    return [(float(each["step"]), float(each[name])) for each in records]


def _score_points(records: Sequence[Mapping[str, Any]], name: str) -> list[tuple[float, float]]:
    return [(float(each["step"]), float(each["scores"][name])) for each in records if name in each["scores"]]
