"""``heedful evaluate``."""

import json
from typing import Annotated

import typer

from heedful.cli.options import AsJson, Run, Settings


def evaluate(
    run: Run,
    split: Annotated[str, typer.Option(help="dev or test: held-out data that the configuration names.")] = "test",
    as_json: AsJson = False,
    settings: Settings = None,
) -> None:
    """Measure a model on held-out data: every metric of its configuration, with signatures."""
    from heedful import runs

    evaluation = runs.load(run, settings=settings or []).evaluate(split)
    print(json.dumps(evaluation.to_values(), indent=2) if as_json else evaluation.to_text())
