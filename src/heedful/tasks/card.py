"""The card of a bundle: what it is, for a person who finds the folder."""

from collections.abc import Sequence
from typing import Any

from heedful.tasks.config import TaskConfig
from heedful.tasks.outcome import Evaluation
from heedful.text.lines import escape_line


def write_card(config: TaskConfig, num_parameters: int, evaluation: Evaluation, data: Sequence[str]) -> str:
    """Return a card in Markdown.

    Args:
        config: of the task.
        num_parameters: of the model, shared ones counted once.
        evaluation: on the dev data.
        data: a line for each file that it was trained on.
    """
    values: dict[str, Any] = config.model_dump(mode="json")
    rows = [f"| {each.name} | {each.value:.4f} | {each.signature} |" for each in evaluation.measured]
    size = f"{num_parameters:,} parameters ({4 * num_parameters / 1e6:.1f} MB)"
    return "\n".join(
        [
            f"# {_plain(config.description or values['task'])}",
            "",
            f"A Heedful bundle: {values['task']}, model `{values['model']['kind']}`, {size}.",
            "",
            "## Scores on held-out dev data",
            "",
            "| metric | value | how |",
            "| --- | --- | --- |",
            *rows,
            "",
            f"Measured while it was trained, on the same machine: {evaluation.speed()}.",
            "",
            "## Trained on",
            "",
            *(map(_plain, data) if data else ["(not recorded)"]),
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


def _plain(text: str) -> str:
    """Return text in which no page that shows the card finds a tag."""
    return escape_line(text.replace("&", "&amp;").replace("<", "&lt;"))
