"""One example of a task as text, as read from a file or given by a caller."""

from dataclasses import dataclass

SIDES = ("source", "target", "label")
"""What an example may have of a task, in the order that files of it keep."""


@dataclass(frozen=True, slots=True)
class Example:
    """Strings of one row; None for what the task has not.

    Attributes:
        source: what is read.
        target: what is to be said.
        label: the class.
        references: every accepted target, for scoring; empty means the target alone.
        line: number of the line in its file, from 1.
        path: the file, for messages.
    """

    source: str | None = None
    target: str | None = None
    label: str | None = None
    references: tuple[str, ...] = ()
    line: int = 0
    path: str = ""


def group_references(examples: list[Example]) -> list[Example]:
    """Join examples with equal sources into one, whose references are their distinct targets in order.

    The first example of a group gives its place, line and target.
    """
    groups: dict[str | None, list[Example]] = {}
    for each in examples:
        groups.setdefault(each.source, []).append(each)
    return [_join(group) for group in groups.values()]


def _join(group: list[Example]) -> Example:
    first = group[0]
    targets = dict.fromkeys(
        target for each in group for target in (each.references or (each.target,)) if target is not None
    )
    return Example(first.source, first.target, first.label, tuple(targets), first.line, first.path)
