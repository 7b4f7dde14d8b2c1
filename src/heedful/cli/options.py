"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder or a bundle folder.", show_default=False)]
OwnRun = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.", show_default=False)]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set any key of the configuration, e.g. search.beam_size=8; the value null takes a key away.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
