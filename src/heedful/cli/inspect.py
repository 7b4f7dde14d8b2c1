"""``heedful inspect``."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Run, Settings


class Kind(StrEnum):
    """What attends to what."""

    encoder = "encoder"
    decoder = "decoder"
    cross = "cross"
    pooling = "pooling"


class Measure(StrEnum):
    """What the numbers are."""

    weights = "weights"
    norms = "norms"
    rollout = "rollout"


class Drawing(StrEnum):
    """What a picture shows."""

    matrix = "matrix"
    lines = "lines"
    heads = "heads"


def inspect(
    run: Run,
    source: Annotated[str, typer.Argument(help="The line to be read.", show_default=False)],
    target: Annotated[
        str | None, typer.Option(help="What it should have written; else its own answer is looked into.")
    ] = None,
    other: Annotated[
        Path | None,
        typer.Option(
            "--with",
            metavar="RUN",
            help="A second model, side by side in page and JSON: a run, a bundle, or RUN/checkpoints/step-N.",
        ),
    ] = None,
    kind: Annotated[Kind | None, typer.Option(help="Of the matrix in terminal and picture: nearest to output.")] = None,
    layer: Annotated[int | None, typer.Option(help="Its layer, from 0; the last when left out.")] = None,
    head: Annotated[int | None, typer.Option(help="Its head, from 0; all together when left out.")] = None,
    measure: Annotated[Measure, typer.Option(help="Weights, value-weighted norms, or rollout.")] = Measure.weights,
    words: Annotated[bool, typer.Option("--words", help="Between words, not the pieces the model reads.")] = False,
    silence: Annotated[
        list[str] | None,
        typer.Option(metavar="HEADS", help="Answer again with heads silent: cross.1:2; several at once with commas."),
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the whole lens as one page.")] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a picture as SVG.")] = None,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a picture as PNG.")] = None,
    picture: Annotated[
        Drawing, typer.Option(help="The matrix, lines between its words, or all heads of the kind or layer.")
    ] = Drawing.matrix,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the whole lens as JSON.")] = None,
    settings: Settings = None,
) -> None:
    """Look inside: what the model attends to as it answers a line, in the terminal or on a page that opens anywhere."""
    from heedful import runs
    from heedful.analysis.lens_selection import Selection

    runs.check_outputs(html, svg, png, json)
    selection = Selection(kind.value if kind else None, layer, head, measure.value, words)
    model = runs.load(run, settings=settings or [])
    has_page = html is not None or json is not None
    inspection = runs.inspect(model, source, target, other=other, silent=silence or [], with_causes=has_page)
    inspection.drawing(selection, picture.value)  # what is asked wrongly shows before anything is written
    if html is not None:
        inspection.save_html(html)
    if json is not None:
        inspection.save_json(json)
    if svg is not None:
        inspection.save_picture(svg, "svg", selection, picture.value)
    if png is not None:
        inspection.save_picture(png, "png", selection, picture.value)
    inspection.print(selection, sys.stdout)
