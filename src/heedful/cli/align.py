"""``heedful align``."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import AsJson, Settings

if TYPE_CHECKING:
    from heedful.runs import LoadedModel


def align(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN SOURCE TARGET]",
            help="A run or bundle, and two files, one text a line (- for stdin). With --evaluate: files of alignments, "
            "runs or bundles; stdin when left out.",
            show_default=False,
        ),
    ] = None,
    choose: Annotated[
        Path | None,
        typer.Option(
            metavar="GOLD", help="Find what aligns best on gold alignments with their texts; keep it in the bundle."
        ),
    ] = None,
    evaluate: Annotated[
        Path | None, typer.Option(metavar="GOLD", help="Print error rate, precision and recall on gold alignments.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="The gold table's set to take, e.g. trial or test.")] = None,
    one_based: Annotated[
        bool, typer.Option("--one-based", help="Words count from 1 in gold alignments and files of alignments.")
    ] = False,
    as_json: AsJson = False,
    settings: Settings = None,
) -> None:
    """Print which words of two texts go together: Pharaoh lines, ``source-target`` from 0.

    The model reads both texts; its attention makes the links.
    """
    from heedful import runs
    from heedful.core.errors import ConfigError

    given = paths or []
    if evaluate is not None:
        gold = runs.read_gold(evaluate, split=split, is_one_based=one_based)
        for path in given or [Path("-")]:
            errors = runs.evaluate_alignments(path, gold, is_one_based=one_based, settings=settings or [])
            values = {"alignments": str(path), **errors.to_values()}
            print(json.dumps(values) if as_json else f"{path}: {errors.to_text()}", flush=True)
        return
    if len(given) != 3 and not (choose is not None and len(given) == 1):
        raise ConfigError(
            f"Name a run and two files, RUN SOURCE TARGET; there are {len(given)} names. With `--choose GOLD` a run "
            "alone suffices, `--evaluate GOLD` compares alignments."
        )
    model = runs.load(given[0], settings=settings or [])
    if choose is not None:
        gold = runs.read_gold(choose, split=split, is_one_based=one_based)
        tried = runs.choose_alignment(model, gold)
        runs.save_choice(model, tried, choose)
        print(f"heedful: {tried.choice.describe()}: {tried.errors.to_text()}", file=sys.stderr)
    if len(given) == 3:
        _print_links(model, given[1], given[2], as_json=as_json)


def _print_links(model: "LoadedModel", source: Path, target: Path, *, as_json: bool) -> None:
    from heedful import runs

    pairs = runs.read_pairs(source, target)
    for (source_text, target_text), links in zip(pairs, runs.align(model, pairs), strict=True):
        if as_json:
            values = {"source": source_text, "target": target_text, "alignment": [list(each) for each in sorted(links)]}
            sys.stdout.write(runs.to_json_line(values))
        else:
            sys.stdout.write(runs.format_links(links) + "\n")
    sys.stdout.flush()
