"""A record of the lines that were cut because they were too long, so that none is cut in silence."""

from dataclasses import dataclass, field

_MAX_LINES_NAMED = 5


@dataclass
class Truncations:
    """Collects cuts while lines are encoded.

    Attributes:
        num_lines: how many lines were cut.
        limit: symbols that the longest allowed line has.
        longest: symbols that the longest line had.
        lines: numbers of the first lines that were cut, from 1, where they were given.
    """

    num_lines: int = 0
    limit: int = 0
    longest: int = 0
    lines: list[int] = field(default_factory=list)

    def add(self, length: int, limit: int, line: int | None = None) -> None:
        """Note that a line of ``length`` symbols was cut to ``limit``."""
        self.num_lines += 1
        self.limit = limit
        self.longest = max(self.longest, length)
        if line is not None and line not in self.lines and len(self.lines) < _MAX_LINES_NAMED:
            self.lines.append(line)

    def summary(self) -> str:
        """Return one sentence for the user, or an empty string if nothing was cut."""
        if not self.num_lines:
            return ""
        named = f" (line {', '.join(map(str, self.lines))}{' ...' if self.num_lines > len(self.lines) else ''})"
        verb = "line was" if self.num_lines == 1 else "lines were"
        return (
            f"{self.num_lines} {verb} longer than {self.limit} symbols and cut{named if self.lines else ''}; "
            f"the longest had {self.longest}."
        )
