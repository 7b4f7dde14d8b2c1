"""What became of the rows that were read: kept, left to other splits, or dropped, and why."""

from dataclasses import dataclass, field
from typing import Any

_MAX_LINES_NAMED = 3


@dataclass
class Dropped:
    """Rows dropped for one reason, and where the first of them stand (``path:line``)."""

    count: int = 0
    places: list[str] = field(default_factory=list)


@dataclass
class ReadReport:
    """Counts while rows are read and cleaned.

    Attributes:
        num_read: rows in the files.
        num_filtered: rows that the config's `where`, `part`, `start` and `end` leave to other splits.
        num_kept: rows that came through.
        dropped: rows thrown away, by reason.
        cuts: rows kept, but not whole, by reason.
        warnings: sentences that a user should see.
    """

    num_read: int = 0
    num_filtered: int = 0
    num_kept: int = 0
    dropped: dict[str, Dropped] = field(default_factory=dict)
    cuts: dict[str, Dropped] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def drop(self, reason: str, path: str, line: int) -> None:
        """Note that the row at the place was dropped."""
        _note(self.dropped, reason, path, line)

    def cut(self, reason: str, path: str, line: int) -> None:
        """Note that the row at the place was kept, but not whole."""
        _note(self.cuts, reason, path, line)

    @classmethod
    def from_saved(cls, values: dict[str, Any]) -> "ReadReport":
        """Take a report back from plain values (`dataclasses.asdict`)."""
        places = {
            name: {reason: Dropped(**entry) for reason, entry in values[name].items()} for name in ("dropped", "cuts")
        }
        return cls(**{**values, **places})

    @property
    def num_dropped(self) -> int:
        """Rows dropped for any reason."""
        return sum(each.count for each in self.dropped.values())

    def summary(self) -> str:
        """Return a few lines for the user."""
        head = f"{self.num_read:,} rows read, {self.num_kept:,} kept"
        if self.num_filtered:
            head += f", {self.num_filtered:,} of other splits"
        if self.num_dropped:
            head += f", {self.num_dropped:,} dropped:"
        cuts = [f"Warning: {each.strip()} were cut." for each in _lines(self.cuts)]
        return "\n".join([head, *_lines(self.dropped), *cuts, *(f"Warning: {each}" for each in self.warnings)])


def _note(entries: dict[str, Dropped], reason: str, path: str, line: int) -> None:
    entry = entries.setdefault(reason, Dropped())
    entry.count += 1
    if len(entry.places) < _MAX_LINES_NAMED:
        entry.places.append(f"{path}:{line}")


def _lines(entries: dict[str, Dropped]) -> list[str]:
    return [
        f"  {entry.count:,} {reason} (first at {', '.join(entry.places)})"
        for reason, entry in sorted(entries.items(), key=lambda item: -item[1].count)
    ]
