"""``heedful resume``."""

from heedful.cli.options import OwnRun, Settings


def resume(run: OwnRun, settings: Settings = None) -> None:
    """Go on with a run that was stopped, exactly where its last checkpoint stands."""
    from heedful import runs

    outcome = runs.resume(run, settings=settings or [])
    if runs.is_first_process():
        print(outcome.summary())
