"""``heedful predict``."""

import contextlib
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Run, Settings


class Format(StrEnum):
    """How predictions are written."""

    text = "text"
    tsv = "tsv"
    jsonl = "jsonl"


def predict(
    run: Run,
    file: Annotated[
        Path | None, typer.Argument(help="Text, one input a line; stdin when left out.", show_default=False)
    ] = None,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = None,
    n_best: Annotated[int | None, typer.Option("--n-best", help="Candidates written for each line.")] = None,
    prefixes: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="What each line's output must begin with, one a line, blank for nothing; - is stdin."
        ),
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Write each candidate's score too.")] = False,
    alignments: Annotated[
        bool,
        typer.Option("--alignments", help="Write after each text which source word each of its words goes with."),
    ] = False,
    output_format: Annotated[
        Format,
        typer.Option(
            "--format",
            help="text: one line a line; tsv: one row a candidate (line, rank, score, text); jsonl: one object a line.",
        ),
    ] = Format.text,
    settings: Settings = None,
) -> None:
    """Read lines, write one line for each, in order. A blank line stays blank."""
    from heedful import runs

    runs.check_stdin(file or Path("-"), prefixes)
    model = runs.load(run, settings=settings or [])
    with contextlib.ExitStack() as opened:
        lines = opened.enter_context(runs.open_lines(file))
        begun = None if prefixes is None else opened.enter_context(runs.open_lines(prefixes))
        # A person at a terminal is answered at once; files are read in chunks, so that like lengths go together.
        chunk_lines = 1 if file is None and sys.stdin.isatty() else 1024
        predictions = model.predict(lines, beam_size=beam, num_best=n_best, prefixes=begun, chunk_lines=chunk_lines)
        if alignments:
            predictions = runs.align_predictions(model, predictions, chunk_lines=chunk_lines)
        for text in runs.format_predictions(predictions, output_format.value, with_scores=scores):
            sys.stdout.write(text)
            if chunk_lines == 1:
                sys.stdout.flush()
        sys.stdout.flush()
