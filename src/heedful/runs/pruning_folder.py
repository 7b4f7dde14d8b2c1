"""The folder of a pruning while it is made: whose it is, what in it is worth keeping, and what a stop leaves."""

import shutil
from pathlib import Path

from heedful.core.errors import BundleError
from heedful.runs.pruning_report import FILE
from heedful.tasks.bundle import CONFIG
from heedful.training import RunFolder

SELECTION = "selection"
"""The training in which heads are chosen; it is removed at the end, and tells until then whose the folder is."""

REMOVED = "removed"
"""The bundle without the heads that were given up, before it is fine-tuned."""

EARLIER = "earlier"
"""A model that was fine-tuned and lost too much, until one with more heads is fine-tuned."""

OF_TUNING = ("checkpoints", "tensorboard", "bundle", "history.jsonl", "report.html", CONFIG)


def claim(out: Path) -> None:
    """Make the new run's folder, so that whatever is in it from now on is this pruning's own, and known as begun.

    Raises:
        BundleError: it is there, or cannot be made.
    """
    try:
        out.mkdir(parents=True)
        (out / SELECTION).mkdir()
    except FileExistsError:
        hint = ""
        if (out / SELECTION).is_dir() and not (out / CONFIG).exists():
            model = find_result(out)
            hint = " It is the beginning of a pruning that was cut off, of no use to anybody: remove it."
            if model is not None:
                hint = f' A pruning was cut off there; {model} has fewer heads: train on with `init_from = "{model}"`.'
        raise BundleError(f"{out}: already there. Choose another `--out`.{hint}") from None
    except OSError as error:
        raise BundleError(f"{out}: cannot be made: {error.strerror}. Choose another `--out`.") from None


def find_result(out: Path) -> Path | None:
    """Return the bundle with fewer heads that is worth most of those in the folder; None where there is none yet."""
    places = (out / "bundle", out / EARLIER / "bundle", out / REMOVED, out / EARLIER / REMOVED)
    return next(filter(Path.is_dir, places), None)


def set_aside(out: Path) -> None:
    """Put what was fine-tuned out of the way of the next model, but do not lose it before that is there."""
    earlier = out / EARLIER
    shutil.rmtree(earlier, ignore_errors=True)
    earlier.mkdir()
    for name in (*OF_TUNING, REMOVED):
        if (out / name).exists():
            (out / name).rename(earlier / name)


def clear_up(out: Path) -> str | None:
    """Remove what is of no use after a pruning that did not come to its end; return what is there, if anything is."""
    if (out / FILE).exists():
        return None  # all is there but a training from scratch
    if find_result(out) is None:
        shutil.rmtree(out, ignore_errors=True)
        return None
    shutil.rmtree(out / SELECTION, ignore_errors=True)
    return _describe_stop(out)


def _describe_stop(out: Path) -> str:
    if RunFolder(out).bundle.is_dir():
        return f"{out}: the heads are removed and a bundle is there, fine-tuned so far; the report is left out."
    told = f"{out}: the heads are removed, but fine-tuning has not come to a bundle. "
    if (out / CONFIG).exists():
        told += f"`heedful resume {out}` goes on with it; the report is left out."
    else:
        told += f'Train on with `init_from = "{find_result(out)}"`; the report is left out.'
    if (out / EARLIER).is_dir():
        told += f" {out / EARLIER} has a model with fewer heads, which lost more than was allowed."
    return told
