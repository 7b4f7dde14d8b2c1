"""Lines as a model is asked about them: with the given target, or with its own answer as it found it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heedful.core.symbols import BOS_ID, EOS_ID
from heedful.data.example import Example
from heedful.tasks.outcome import Candidate
from heedful.tasks.rows import Row
from heedful.tasks.task import Task
from heedful.text.unread import Unread

Pair = tuple[str | None, str | None]
"""Source (None for a language model), and target or label (None for the model's own answer)."""


@dataclass(frozen=True)
class Answered:
    """A line with its target.

    Attributes:
        text: the target or label.
        row: the line as ids. A text can be spelled in several ways; an answer of the model's own stands in the symbols
            that it was searched in. A blank line has no label.
    """

    text: str
    row: Row


def answer(task: Task, numbered: Sequence[tuple[int, Pair]], unread: Unread | None = None) -> list[Answered]:
    """Return lines with their targets, those that are not given answered by the model, searched as configured.

    Args:
        task: the model with its tokenizers.
        numbered: each line's number, from 0, and its pair.
        unread: collects the lines that were not read whole.
    """
    asked = [source or "" for _, (source, target) in numbered if target is None]
    found = (each.candidates[0] for each in task.predict(asked)) if asked else iter(())
    return [
        _own(task, line, source, next(found), unread)
        if target is None
        else Answered(target, _given(task, line, source, target, unread))
        for line, (source, target) in numbered
    ]


def _own(task: Task, line: int, source: str | None, found: Candidate, unread: Unread | None) -> Answered:
    task.encode(Example(source=source or "", line=line + 1), unread=unread)  # no line was cut for what it answered
    row = _given(task, line, source, found.text, None)
    if row.target is not None and found.ids:
        end = [EOS_ID] if row.target[-1] == EOS_ID else []
        row = replace(row, target=[BOS_ID, *found.ids, *end])
    return Answered(found.text, row)


def _given(task: Task, line: int, source: str | None, target: str, unread: Unread | None) -> Row:
    is_blank = not (source or "").strip() and not target.strip()
    if is_blank and task.labels is not None:
        return task.encode(Example(source=source or "", line=line + 1), unread=unread)
    return task.encode(task.example_of(source, target, line + 1), unread=unread)
