"""The report of a run: what it is, its curves, samples, attention and configuration, on one page."""

from collections.abc import Sequence
from typing import Any

from heedful.analysis import draw_svg
from heedful.core.config import read_toml, write_toml
from heedful.core.errors import BundleError
from heedful.runs.attending import Picture, picture_of, sources_to_show
from heedful.runs.facts import info
from heedful.runs.loaded import load
from heedful.training import RunFolder, read_history
from heedful.training.markup import escape
from heedful.training.report import (
    Section,
    config_section,
    curves_section,
    samples_section,
    table_section,
    write_report,
)

NUM_PICTURES = 3


def report_run(folder: RunFolder, more: Sequence[Section] = ()) -> None:
    """Write ``report.html`` into a run's folder.

    Args:
        folder: of the run; what it lacks is left out.
        more: sections to stand before the configuration.

    Raises:
        BundleError: the bundle is damaged, or the page cannot be written.
    """
    records = read_history(folder.history)
    samples = _last_samples(records)
    config = read_toml(folder.path / "config.toml")
    sections = [*_summary(folder), curves_section(records)]
    if samples:
        sections.append(samples_section(samples))
    sections += _pictures(folder, [each.get("source") or each.get("prediction", "")[:40] for each in samples])
    sections += [*more, config_section(write_toml(config))]
    write_report(folder.report, config.get("description") or folder.path.name, sections)


def _last_samples(records: Sequence[Any]) -> list[dict[str, str]]:
    found = [each["samples"] for each in records if each["kind"] == "validation" and each["samples"]]
    return [{label: text for label, text in each.items() if text} for each in found[-1]] if found else []


def _summary(folder: RunFolder) -> list[Section]:
    try:
        facts = info(folder.bundle)
    except BundleError:
        return []
    rows: list[tuple[str, object]] = [
        ("task", facts.task),
        ("model", f"{facts.model}, {facts.num_parameters:,} parameters"),
        ("size of the bundle", f"{facts.size_bytes / 1e6:.1f} MB"),
        *((f"dev {name}", f"{entry['value']:.4g}") for name, entry in facts.scores.items()),
    ]
    return [table_section("Summary", ["what", "value"], rows)]


def _pictures(folder: RunFolder, sources: Sequence[str]) -> list[Section]:
    if not folder.bundle.is_dir():
        return []
    task = load(folder.path).task
    pictures = [picture_of(task, line) for line in sources_to_show(sources, NUM_PICTURES)]
    drawn = [_figure(each) for each in pictures if each is not None]
    return [Section("Attention", "\n".join(drawn))] if drawn else []


def _figure(picture: Picture) -> str:
    drawn = draw_svg(picture.weights, picture.queries, picture.keys)
    return f"<figure>{drawn}<figcaption>{escape(picture.title)}</figcaption></figure>"
