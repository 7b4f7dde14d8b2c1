"""The card of a bundle: what it is, for a person who finds the folder."""

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.tasks.config import TaskConfig


def write_card(
    config: TaskConfig, num_parameters: int, scores: Mapping[str, Mapping[str, Any]], data: Sequence[str]
) -> str:
    """Return a card in Markdown.

    Args:
        config: of the task.
        num_parameters: of the model, shared ones counted once.
        scores: on the dev data, each with ``value`` and ``signature``.
        data: a line for each file that it was trained on.
    """
    values: dict[str, Any] = config.model_dump(mode="json")
    rows = [f"| {name} | {each['value']:.4f} | {each['signature']} |" for name, each in scores.items()]
    return "\n".join(
        [
            f"# {config.description or values['task']}",
            "",
            f"A Heedful bundle: {values['task']}, model `{values['model']['kind']}`, {num_parameters:,} parameters.",
            "",
            "## Scores on held-out dev data",
            "",
            "| metric | value | how |",
            "| --- | --- | --- |",
            *rows,
            "",
            "## Trained on",
            "",
            *(data or ["(not recorded)"]),
            "",
            "## Use",
            "",
            "```",
            "heedful predict THIS_FOLDER < in.txt > out.txt",
            "```",
            "",
            "```python",
            "import heedful",
            'model = heedful.load("THIS_FOLDER")',
            "print([each.text for each in model.predict(lines)])",
            "```",
            "",
            "All settings are in `config.toml`; `manifest.json` lists every file with its checksum.",
            "",
        ]
    )
