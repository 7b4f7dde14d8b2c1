"""``heedful``: the commands together, and how every one of them ends."""

import os
import sys

import typer

from heedful.cli import demo, evaluate, info, predict, recipes, resume, score, train
from heedful.core.errors import ConfigError, HeedfulError

app = typer.Typer(
    help="Train, measure and use attention-based sequence models on your own pairs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (recipes.recipes, train.train, resume.resume, predict.predict, score.score, evaluate.evaluate,
                info.info, demo.demo):  # fmt: skip
    app.command()(command)


def main() -> None:
    """Run one command. Exit code 0: done; 1: it failed; 2: it was asked wrongly; 130: it was interrupted."""
    try:
        app()
    except HeedfulError as error:
        print(f"heedful: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
    except BrokenPipeError:
        # The reader has left. Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        print("heedful: interrupted", file=sys.stderr)
        sys.exit(130)
