"""A record of what of the lines a model does not read, so that nothing is left out in silence."""

from dataclasses import dataclass, field

_MAX_LINES_NAMED = 5


@dataclass
class Lines:
    """How many lines something happened to, and which, as far as they are named."""

    count: int = 0
    first: list[int] = field(default_factory=list)
    last: int | None = None

    def add(self, line: int | None) -> None:
        """Count a line, by its number from 1 where it has one; once, though it happened to both of its sides."""
        if line and line == self.last:
            return
        self.last = line
        self.count += 1
        if line and line not in self.first and len(self.first) < _MAX_LINES_NAMED:
            self.first.append(line)

    def __str__(self) -> str:
        more = " ..." if self.count > len(self.first) else ""
        return f" (line {', '.join(map(str, self.first))}{more})" if self.first else ""


@dataclass
class Unread:
    """Collects, while lines are encoded, what is cut off and what no vocabulary holds.

    Attributes:
        cut: lines longer than allowed.
        limit: symbols that the longest allowed line has.
        longest: symbols that the longest line had.
        unknown: lines with symbols that the vocabulary lacks.
    """

    cut: Lines = field(default_factory=Lines)
    limit: int = 0
    longest: int = 0
    unknown: Lines = field(default_factory=Lines)

    def add_cut(self, length: int, limit: int, line: int | None = None) -> None:
        """Note that a line of ``length`` symbols was cut to ``limit``."""
        self.cut.add(line)
        self.limit = limit
        self.longest = max(self.longest, length)

    def summary(self, cut_means: str = "") -> str:
        """Return what to tell the user, or an empty string if all was read.

        Args:
            cut_means: a sentence on what becomes of what was cut.
        """
        told = []
        if self.cut.count:
            verb = "line was" if self.cut.count == 1 else "lines were"
            told.append(
                f"{self.cut.count:,} {verb} longer than {self.limit} symbols and cut{self.cut}; the longest had "
                f"{self.longest}. {cut_means}".rstrip()
            )
        if self.unknown.count:
            verb = "line holds" if self.unknown.count == 1 else "lines hold"
            told.append(
                f"{self.unknown.count:,} {verb} symbols that the vocabulary lacks, all read as one unknown "
                f"symbol{self.unknown}."
            )
        return " ".join(told)
