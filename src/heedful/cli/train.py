"""``heedful train``."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Settings


def train(
    config: Annotated[str, typer.Argument(metavar="CONFIG", help="A recipe's name, or the path of a .toml file.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder of the new run; it must not exist. Without it, runs/NAME by the recipe or file, with a number "
            "added where that is there.",
        ),
    ] = None,
    settings: Settings = None,
) -> None:
    """Train a model. The run's folder then holds checkpoints, a report and the bundle that you keep."""
    from heedful import runs

    outcome = runs.train(config, out=out, settings=settings or [])
    if runs.is_first_process():
        print(outcome.summary())
