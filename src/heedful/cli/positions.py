"""``heedful positions``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import AsJson


def positions(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN]", help="A run or bundle folder, for its model's positions.", show_default=False),
    ] = None,
    table: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A learned table out of any safetensors file.")
    ] = None,
    tensor: Annotated[str | None, typer.Option(metavar="NAME", help="Which tensor, where there are several.")] = None,
    kind: Annotated[str | None, typer.Option(help="sinusoidal (the default), learned or rotary.")] = None,
    length: Annotated[int | None, typer.Option(help="How many positions to look at.")] = None,
    dim: Annotated[int | None, typer.Option(help="Width of a formula's vectors; 64 when left out.")] = None,
    period: Annotated[float, typer.Option(help="Base of rotary wavelengths.")] = 10_000.0,
    step: Annotated[int, typer.Option(help="Steps for which the matrix that carries positions on is shown.")] = 5,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn by lot.")] = 1,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page that opens offline.")] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a picture.")] = None,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a picture.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw encodings of positions and probe them: pattern, similarity, the turn that a step is, what can be read."""
    from heedful import runs

    runs.check_outputs(html, svg, png)
    found = runs.positions(
        run, table=table, tensor=tensor, kind=kind, length=length, dim=dim, period=period, steps=step, seed=seed
    )
    if html is not None:
        runs.write_positions_page(found, html)
    if svg is not None:
        runs.draw_positions(found, svg, "svg")
    if png is not None:
        runs.draw_positions(found, png, "png")
    print(json.dumps(found.to_values(), indent=1) if as_json else runs.positions_to_text(found))
