"""``heedful score``."""

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
    as_json: AsJson = False,
    settings: Settings = None,
) -> None:
    """Print the log-probability of given targets: whole, per word, and of each word."""
    from heedful import runs

    model = runs.load(run, settings=settings or [])
    with runs.open_lines(file) as lines:
        for each in model.score(runs.split_pairs(lines, file or "stdin")):
            sys.stdout.write(runs.to_json_line(each.to_values()) if as_json else each.to_line() + "\n")
        sys.stdout.flush()
