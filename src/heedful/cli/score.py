"""``heedful score``."""

import itertools
import sys
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import AsJson, Run, Settings


def score(
    run: Run,
    file: Annotated[
        Path | None,
        typer.Argument(help="Rows of source, tab, target (a language model: target alone); stdin when left out."),
    ] = None,
    has_header: Annotated[
        bool, typer.Option("--header", help="The first row names the columns: leave it out.")
    ] = False,
    as_json: AsJson = False,
    settings: Settings = None,
) -> None:
    """Print the log-probability of given targets: whole, per word, and of each word."""
    from heedful import runs

    model = runs.load(run, settings=settings or [])
    with runs.open_lines(file) as lines:
        rows = itertools.islice(runs.split_pairs(lines, file or "stdin"), int(has_header), None)
        for each in model.score(rows):
            sys.stdout.write(runs.to_json_line(each.to_values()) if as_json else each.to_line() + "\n")
        sys.stdout.flush()
