"""``heedful align``."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.options import AsJson, Settings

if TYPE_CHECKING:
    from heedful.analysis.alignment_choice import AlignmentChoice
    from heedful.analysis.alignment_error import GoldLine
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
    agree: Annotated[
        bool,
        typer.Option(
            "--agree",
            help="Without gold: find the head whose two views of the texts agree most; keep it.",
        ),
    ] = False,
    learn: Annotated[
        bool,
        typer.Option(
            "--learn",
            help="Learn which words translate each other, from the training pairs and the two files, on top of what "
            "the chosen heads expect; keep it.",
        ),
    ] = False,
    max_pairs: Annotated[int, typer.Option(metavar="N", min=1, help="Pairs that --learn reads at most.")] = 100_000,
    evaluate: Annotated[
        Path | None, typer.Option(metavar="GOLD", help="Print error rate, precision and recall on gold alignments.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="The gold table's set to take, e.g. trial or test.")] = None,
    one_based: Annotated[bool, typer.Option("--one-based", help="Words count from 1 in the gold alignments.")] = False,
    links_one_based: Annotated[
        bool, typer.Option("--links-one-based", help="Words count from 1 in the files that --evaluate compares.")
    ] = False,
    reverse: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="A model of the other direction, whose attention counts as much; what was learnt is not asked then.",
        ),
    ] = None,
    as_json: AsJson = False,
    settings: Settings = None,
) -> None:
    """Print which words of two texts go together: Pharaoh lines, ``source-target`` from 0.

    The model reads both texts; its attention makes the links.
    """
    from heedful import runs
    from heedful.core.errors import ConfigError

    given = paths or []
    _check_flags(given, evaluate, choose, agree=agree, learn=learn, has_gold_options=split is not None or one_based)
    if learn and reverse is not None:
        raise ConfigError("`--learn` learns both directions from one model. Leave out `--reverse`.")
    if links_one_based and (evaluate is None or all(path.is_dir() for path in given or [Path("-")])):
        raise ConfigError("`--links-one-based` is for files of links. Name some: `--evaluate GOLD FILE`.")
    if reverse is not None and evaluate is not None and not any(path.is_dir() for path in given):
        raise ConfigError("`--reverse` helps a model to align, but only files of alignments are to be evaluated.")
    other = None if reverse is None else runs.load(reverse, settings=settings or [])
    if evaluate is not None:
        gold = runs.read_gold(evaluate, split=split, is_one_based=one_based)
        for path in given or [Path("-")]:
            alignments = runs.load(path, settings=settings or []) if path.is_dir() else path
            errors = runs.evaluate_alignments(alignments, gold, reverse=other, is_one_based=links_one_based)
            values = {"alignments": str(path), **errors.to_values()}
            print(json.dumps(values) if as_json else f"{path}: {errors.to_text()}", flush=True)
        return
    model = runs.load(given[0], settings=settings or [])
    pairs = runs.read_pairs(given[1], given[2]) if len(given) == 3 else []
    if choose is not None or agree or learn:
        runs.check_keeping(model)
        known = None if choose is None else runs.read_gold(choose, split=split, is_one_based=one_based)
        choice, reasons = _choose(model, other, pairs, known, agree=agree)
        if choose is not None:
            reasons = {"gold": choose.name, "split": split, **reasons}
        if learn:
            found = runs.learn_alignment(model, pairs, choice=choice, gold=known, max_pairs=max_pairs)
            told = f": {found.errors.to_text()}" if found.errors else ""
            print(f"heedful: learnt from {found.num_pairs:,} pairs; {found.choice.describe()}{told}", file=sys.stderr)
            runs.save_choice(model, found.choice, reasons | found.chosen_by, learnt=found.model)
        elif choice is not None:
            runs.save_choice(model, choice, reasons)
    _print_links(model, other, pairs, as_json=as_json)


def _choose(
    model: "LoadedModel",
    other: "LoadedModel | None",
    pairs: list[tuple[str, str]],
    gold: "list[GoldLine] | None",
    *,
    agree: bool,
) -> "tuple[AlignmentChoice | None, dict[str, Any]]":
    """Choose heads as asked for, if at all; tell, and return the choice with what is kept of how it was made."""
    from heedful import runs

    if gold is not None:
        tried = runs.choose_alignment(model, gold, reverse=other)
        print(f"heedful: {tried.choice.describe()}: {tried.errors.to_text()}", file=sys.stderr)
        return tried.choice, tried.errors.to_values()
    if agree:
        choice, agreement = runs.choose_unsupervised(model, pairs)
        print(f"heedful: {choice.describe()}: the views agree in {agreement:.1%} of their links", file=sys.stderr)
        return choice, {"agreement": agreement}
    return None, {}


def _check_flags(
    given: list[Path],
    evaluate: Path | None,
    choose: Path | None,
    *,
    agree: bool,
    learn: bool,
    has_gold_options: bool,
) -> None:
    """See that what is asked for goes together, before anything is read."""
    from heedful.core.errors import ConfigError

    asked = {"--evaluate": evaluate is not None, "--choose": choose is not None, "--agree": agree}
    if sum(asked.values()) > 1:
        names = " and ".join(f"`{name}`" for name, is_asked in asked.items() if is_asked)
        raise ConfigError(f"{names} are different things to do. Give one of them at a time.")
    if learn and evaluate is not None:
        raise ConfigError("`--evaluate` and `--learn` are different things to do. Give one of them at a time.")
    if has_gold_options and evaluate is None and choose is None:
        raise ConfigError("`--split` and `--one-based` are for gold alignments. Name some: `--choose`, `--evaluate`.")
    suffices_alone = choose is not None or learn
    if agree and len(given) == 1:
        raise ConfigError("`--agree` chooses on texts, RUN SOURCE TARGET. Name the files, or leave it out.")
    if evaluate is None and len(given) != 3 and not (suffices_alone and len(given) == 1):
        raise ConfigError(
            f"Name a run and two files, RUN SOURCE TARGET; there are {len(given)} names. With `--choose GOLD` or "
            "`--learn` a run alone suffices, `--evaluate GOLD` compares alignments."
        )


def _print_links(
    model: "LoadedModel", reverse: "LoadedModel | None", pairs: list[tuple[str, str]], *, as_json: bool
) -> None:
    from heedful import runs

    for (source, target), links in zip(pairs, runs.align(model, pairs, reverse=reverse), strict=True):
        if as_json:
            values = {"source": source, "target": target, "alignment": [list(each) for each in sorted(links)]}
            sys.stdout.write(runs.to_json_line(values))
        else:
            sys.stdout.write(runs.format_links(links) + "\n")
    sys.stdout.flush()
