"""``heedful demo``."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Settings


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder of the run; an earlier demo's is replaced.")] = Path(
        "runs/demo"
    ),
    settings: Settings = None,
) -> None:
    """Train a spelling-to-sound model in about five minutes, measure it, and watch it attend."""
    from heedful import runs

    runs.demo(out, settings=settings or [])
