"""``heedful explain``."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.options import AsJson, Settings


def explain(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="A recipe or TOML file of a classifier with one attention, for the four checks; or a run or bundle.",
            show_default=False,
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(help="For a run: lines, or source, tab, target; stdin when left out.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="For the four checks: folder of their runs; named again, they go on.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="For the four checks: trainings of each kind; 5 when left out.")
    ] = None,
    adversary: Annotated[
        list[float] | None,
        typer.Option(
            help="For the four checks: weight of the difference between attentions in an adversary's loss; several may "
            "be given."
        ),
    ] = None,
    lines: Annotated[
        int | None, typer.Option(help="For a run: lines that are read at most; 100 when left out.")
    ] = None,
    as_json: AsJson = False,
    settings: Settings = None,
) -> None:
    """Say how far attention weights explain what a model says.

    For a recipe: trains it often and against itself (the four checks of Wiegreffe and Pinter, 2019). For a run: how far
    attention, rollout, norms, gradients and silencing agree on which words mattered.
    """
    from heedful import runs
    from heedful.core.errors import ConfigError
    from heedful.runs.agreement import MAX_LINES
    from heedful.runs.explanation import ADVERSARIES, SEEDS

    of_checks = {"--out": out, "--seeds": seeds, "--adversary": adversary}
    if Path(what).is_dir():
        _refuse(of_checks, f"{what} is a folder, and they are for the four checks of a recipe.")
        model = runs.load(what, settings=settings or [])
        with runs.open_lines(file) as texts:
            found = runs.agree(model, texts, max_lines=MAX_LINES if lines is None else lines)
        print(json.dumps(found.to_values(), indent=2) if as_json else found.to_text())
        return
    _refuse({"a file of lines": file, "--lines": lines}, f"{what} is no run, and they are for a run.")
    runs.read_run(what, settings or [])
    if out is None:
        raise ConfigError("`--out` is missing: the four checks keep their runs in a folder.")
    checks = runs.explain(
        what,
        out,
        settings=settings or [],
        seeds=SEEDS if seeds is None else seeds,
        adversaries=adversary or ADVERSARIES,
    )
    print(json.dumps(checks.to_values(), indent=2) if as_json else checks.to_text())


def _refuse(given: dict[str, Any], why: str) -> None:
    """See that nothing was given that would mean nothing."""
    from heedful.core.errors import ConfigError

    names = [name for name, value in given.items() if value is not None]
    if names:
        raise ConfigError(f"{' and '.join(names)}: {why} Leave it out.")
