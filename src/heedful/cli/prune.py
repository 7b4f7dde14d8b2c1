"""``heedful prune``."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import AsJson, Run, Settings


class Method(StrEnum):
    """How heads are chosen."""

    gates = "gates"
    exact = "exact"
    gradient = "gradient"
    confidence = "confidence"
    random = "random"


def prune(
    run: Run,
    out: Annotated[Path, typer.Option("--out", help="Folder of the new run; it must not exist.")],
    keep: Annotated[int | None, typer.Option(help="How many heads stay.")] = None,
    keep_fraction: Annotated[float | None, typer.Option(help="Which share of the heads stays.")] = None,
    max_loss: Annotated[
        float | None,
        typer.Option(
            help="As few heads as lose at most so many points of `training.metric` on the dev data; exit code 1 where "
            "that was not kept."
        ),
    ] = None,
    kinds: Annotated[
        str, typer.Option(help="Which attentions' heads are meant, with commas between.")
    ] = "encoder,decoder,cross",
    method: Annotated[
        Method,
        typer.Option(
            help="gates: learnt, with a price on open heads; exact: a learnt subset of the wanted size; gradient, "
            "confidence, random: ranked, and closed in steps."
        ),
    ] = Method.gates,
    inner_fraction: Annotated[
        float | None, typer.Option(help="Which share of the feed-forward layers' inner units stays.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="A recipe or file whose [data] is used; absent: the files the bundle was trained on."),
    ] = None,
    max_minutes: Annotated[
        float | None,
        typer.Option(help="Minutes of choosing heads and fine-tuning in all; 20 when left out."),
    ] = None,
    max_steps: Annotated[int | None, typer.Option(help="Updates in all, instead of minutes.")] = None,
    seed: Annotated[int | None, typer.Option(help="Short for --set runtime.seed=...")] = None,
    from_scratch: Annotated[
        bool,
        typer.Option("--from-scratch", help="Also train the same shape from scratch, as long as the first model was."),
    ] = False,
    roles: Annotated[
        Path | None,
        typer.Option(
            help="What `heedful heads --json FILE` wrote of the same model; left out: roles are looked for over the "
            "dev data."
        ),
    ] = None,
    as_json: AsJson = False,
    settings: Settings = None,
) -> None:
    """Remove attention heads from a trained Transformer for good, and tune what is left.

    The new run holds an ordinary, smaller bundle, and a report: who survived, what it cost, what it saves.
    """
    from heedful import runs

    found = runs.prune(
        run,
        out,
        keep=keep,
        keep_fraction=keep_fraction,
        max_loss=max_loss,
        kinds=[each.strip() for each in kinds.split(",") if each.strip()],
        method=method.value,
        inner_fraction=inner_fraction,
        data=data,
        max_minutes=max_minutes,
        max_steps=max_steps,
        has_scratch=from_scratch,
        roles=roles,
        settings=[*(settings or []), *([] if seed is None else [f"runtime.seed={seed}"])],
    )
    print(json.dumps(found.to_values(), indent=2) if as_json else found.to_text())
    if not found.is_goal_met:
        raise typer.Exit(1)
