"""``heedful heads``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Settings


def heads(
    bundles: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run or bundle folders, compared.", show_default=False)
    ],
    text: Annotated[
        Path | None, typer.Option("--text", help="Lines to read; left out: those of the treebank or gold alignments.")
    ] = None,
    targets: Annotated[
        list[Path] | None,
        typer.Option("--target", help="Their targets, one file for each bundle or for all; left out: own answers."),
    ] = None,
    treebank: Annotated[
        Path | None, typer.Option("--treebank", help="Their dependency trees, CoNLL-U, for syntactic roles.")
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option("--gold", help="Gold word alignments: a table (src, tgt, sure, possible), or links of the text."),
    ] = None,
    is_one_based: Annotated[bool, typer.Option("--one-based", help="Words count from 1 in the gold links.")] = False,
    with_importance: Annotated[
        bool, typer.Option("--importance", help="Find what each head is worth too, on 200 of the lines: minutes.")
    ] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write the cards as one page.")] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write everything as JSON; - prints it.")] = None,
    settings: Settings = None,
) -> None:
    """Give every attention head a role card: what it looks at, beside what a fixed rule would get right."""
    from heedful import runs

    to_stdout = json is not None and str(json) == "-"
    runs.check_outputs(html, None if to_stdout else json)
    data = runs.HeadsData(
        text=text, targets=tuple(targets or ()), treebank=treebank, gold=gold, is_one_based=is_one_based
    )
    reports = runs.describe_heads(bundles, data, settings=settings or [], with_importance=with_importance)
    if html is not None:
        runs.write_heads_page(reports, html)
    if json is not None and not to_stdout:
        runs.write_heads_json(reports, json)
    sys.stdout.write(runs.heads_json(reports) if to_stdout else runs.heads_text(reports))
