"""``heedful info``."""

import json

from heedful.cli.options import AsJson, Run


def info(run: Run, as_json: AsJson = False) -> None:
    """Tell what is in a run or bundle: task, model, sizes, scores, data and how it was made."""
    from heedful import runs

    found = runs.info(run)
    print(json.dumps(found.to_values(), indent=2) if as_json else found.to_text())
