"""``heedful``: the commands together, and how every one of them ends."""

import contextlib
import errno
import io
import os
import sys

import typer

from heedful.cli import (
    align,
    cost,
    demo,
    evaluate,
    explain,
    heads,
    info,
    inspect,
    positions,
    predict,
    prune,
    recipes,
    resume,
    score,
    train,
)
from heedful.core.errors import ConfigError, HeedfulError
from heedful.text.lines import escape_line

app = typer.Typer(
    help="Train, measure and use attention-based sequence models on your own pairs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (recipes.recipes, train.train, resume.resume, predict.predict, score.score, evaluate.evaluate,
                info.info, inspect.inspect, heads.heads, positions.positions, align.align, explain.explain, prune.prune,
                cost.cost, demo.demo):  # fmt: skip
    app.command()(command)


# Threads of one operation wait for each other. OpenMP (GCC's, which torch uses) lets them burn some milliseconds at
# each such point before they sleep; where another program holds one of two cores, that is nearly all of the time:
# training was slower by 5 to 20 times. It reads this when torch is loaded.
SPINS_BEFORE_SLEEP = "1000"


def be_neighbourly() -> None:
    """Let waiting threads sleep soon, unless the user's environment says how they wait."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS_BEFORE_SLEEP)


def main() -> None:
    """Run one command. Exit code 0: done; 1: it failed; 2: it was asked wrongly; 130: it was interrupted."""
    be_neighbourly()
    _open_streams()
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here, where a full disk is still told in words
    except HeedfulError as error:
        _tell(str(error))
        sys.exit(2 if isinstance(error, ConfigError) else 1)
    except BrokenPipeError:
        _silence_stdout()  # the reader has left
        sys.exit(1)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        remedy = " Free some space." if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        _tell(f"{place}{error.strerror or error}.{remedy}")
        _silence_stdout()
        sys.exit(1)
    except MemoryError:
        _tell("out of memory. Try shorter lines, smaller batches or a smaller model.")
        sys.exit(1)
    except KeyboardInterrupt:
        _tell("interrupted")
        sys.exit(130)


def _tell(message: str) -> None:
    """Print a message; what files and arguments bring into it shows as text and does nothing to the terminal."""
    print("\n".join(escape_line(line) for line in f"heedful: {message}".split("\n")), file=sys.stderr)


def _open_streams() -> None:
    """Write UTF-8 wherever one is, for that is what is read; a stream that the caller closed takes or gives nothing."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")


def _silence_stdout() -> None:
    """Let Python find nothing to complain of when it flushes stdout at exit."""
    with contextlib.suppress(OSError):  # one that is no file needs none
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
