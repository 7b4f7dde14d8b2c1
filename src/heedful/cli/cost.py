"""``heedful cost``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import AsJson


def cost(
    length: Annotated[int, typer.Option(help="The longest sequence, n.")] = 1024,
    width: Annotated[int, typer.Option(help="Width of the layers, d.")] = 128,
    kernel: Annotated[int, typer.Option(help="Positions that a convolution sees, k.")] = 3,
    window: Annotated[int, typer.Option(help="How far windowed self-attention sees to each side, r.")] = 16,
    rows: Annotated[int, typer.Option(help="Sequences at a time.")] = 1,
    threads: Annotated[int | None, typer.Option(help="Threads of one operation.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A glance of some seconds: fewer and smaller points.")] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page that opens offline.")] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a picture.")] = None,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a picture.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure what attention, recurrent and convolutional layers cost here: operations, time, memory, paths, limits."""
    from heedful import runs

    runs.check_outputs(html, svg, png)
    found = runs.cost(
        length=length, width=width, kernel=kernel, window=window, rows=rows, threads=threads, is_quick=quick
    )
    if html is not None:
        runs.write_cost_page(found, html)
    if svg is not None:
        runs.draw_cost(found, svg, "svg")
    if png is not None:
        runs.draw_cost(found, png, "png")
    print(json.dumps(found.to_values(), indent=1) if as_json else runs.cost_to_text(found))
