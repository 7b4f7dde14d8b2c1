"""Dependency trees in CoNLL-U, and where their words stand in the text.

A sentence is its comments, a line of ten tabbed columns a word, and a blank line. ``3-4`` is a multiword token: the
words 3 and 4 stand in the text as one form. Where it is its words put together ("don't": do + n't) they stand apart as
far as this module goes, else (German "im": in + dem) they share their place. ``8.1`` is an empty node, which stands
nowhere and is skipped (universaldependencies.org/format.html).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from heedful.core.errors import DataError
from heedful.data.opening import numbered_lines

NUM_COLUMNS = 10
_TEXT = re.compile(r"#\s*text\s*=\s?(.*)")
_NUMBER = re.compile(r"[0-9]{1,6}")
_ID = re.compile(rf"({_NUMBER.pattern})(?:-({_NUMBER.pattern})|(\.{_NUMBER.pattern}))?")


@dataclass(frozen=True)
class TreeWord:
    """A word of a tree.

    Attributes:
        form: as the treebank writes it.
        head: index of the word that governs it; None for the root.
        relation: to its head, subtypes merged (``nsubj:pass`` is ``nsubj``).
        unit: index of the part of the text that it stands in; the words of a fused token ("im") share one.
    """

    form: str
    head: int | None
    relation: str
    unit: int


@dataclass(frozen=True)
class Tree:
    """A sentence with its dependencies.

    Attributes:
        text: as it is written.
        words: in order.
        units: the forms that the text is made of.
        path: the file it came from.
        line: where it begins there, from 1.
    """

    text: str
    words: tuple[TreeWord, ...]
    units: tuple[str, ...]
    path: str
    line: int


def read_treebank(path: Path | str) -> list[Tree]:
    """Read every sentence of a CoNLL-U file, plain or gzip.

    Raises:
        DataError: it is no CoNLL-U, or the words of a sentence are not those of its ``# text``; named by file and line.
    """
    name = str(path)
    draft = _Draft(name)
    trees: list[Tree] = []
    for number, line in numbered_lines(name):
        if line.strip():
            draft.add(number, line)
        elif draft.is_begun:
            trees.append(draft.finish())
            draft = _Draft(name)
    if draft.is_begun:
        trees.append(draft.finish())
    if not trees:
        raise DataError("there is no sentence in it. A treebank is a CoNLL-U file.", name)
    return trees


@dataclass
class _Draft:
    """A sentence while its lines come in."""

    path: str
    line: int = 0
    text: str | None = None
    text_line: int = 0
    forms: list[str] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    relations: list[str] = field(default_factory=list)
    units_of: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    units: list[tuple[str, bool, int]] = field(default_factory=list)
    joined_until: int = 0
    joined: list[tuple[int, int]] = field(default_factory=list)

    @property
    def is_begun(self) -> bool:
        """True once there was a word, or a comment that a sentence must follow."""
        return bool(self.forms) or self.text is not None

    def add(self, number: int, line: str) -> None:
        """Take a comment, a word, a multiword token or an empty node."""
        self.line = self.line or number
        if line.startswith("#"):
            match = _TEXT.fullmatch(line)
            if match:
                self.text, self.text_line = match[1], number
            return
        columns = line.split("\t")
        if len(columns) != NUM_COLUMNS:
            raise DataError(
                f"{len(columns)} columns, but CoNLL-U has {NUM_COLUMNS}, with tabs between. "
                "Is this a treebank, and whole?",
                self.path,
                number,
            )
        match = _ID.fullmatch(columns[0])
        if match is None:
            raise DataError(f"`{columns[0]}` is no word's number.", self.path, number)
        first, last, is_empty = int(match[1]), match[2], match[3]
        if is_empty:
            return
        if last:
            self._add_joined(number, first, int(last), columns)
        else:
            self._add_word(number, first, columns)

    def _add_joined(self, number: int, first: int, last: int, columns: list[str]) -> None:
        if first != len(self.forms) + 1 or last < first or first <= self.joined_until:
            raise DataError(f"the token `{columns[0]}` does not stand before its words.", self.path, number)
        self.joined.append((len(self.units), last - first + 1))
        self.units.append((columns[1], _has_space(columns), number))
        self.joined_until = last

    def _add_word(self, number: int, place: int, columns: list[str]) -> None:
        if place != len(self.forms) + 1:
            raise DataError(f"word {place} follows word {len(self.forms)}.", self.path, number)
        if not _NUMBER.fullmatch(columns[6]):
            raise DataError(f"the head of word {place} is `{columns[6]}`, not a number.", self.path, number)
        if place > self.joined_until:
            self.units.append((columns[1], _has_space(columns), number))
        self.forms.append(columns[1])
        self.heads.append(int(columns[6]))
        self.relations.append(columns[7].split(":")[0])
        self.units_of.append(len(self.units) - 1)
        self.lines.append(number)

    def finish(self) -> Tree:
        """Return the sentence, its heads checked and its units found in the text."""
        if not self.forms:
            raise DataError("comments without a sentence.", self.path, self.line)
        if self.joined_until > len(self.forms):
            raise DataError(
                f"a multiword token reaches to word {self.joined_until}, but the sentence has {len(self.forms)}.",
                self.path,
                self.units[-1][2],
            )
        for place, (head, line) in enumerate(zip(self.heads, self.lines, strict=True), start=1):
            if head > len(self.forms) or head == place:
                raise DataError(f"word {place} has the head {head}, which cannot be.", self.path, line)
        self._check_tree()
        self._take_apart()
        text = _joined(self.units) if self.text is None else self.text
        self._check_units(text)
        words = zip(self.forms, self.heads, self.relations, self.units_of, strict=True)
        return Tree(
            text=text,
            words=tuple(TreeWord(form, head - 1 if head else None, name, unit) for form, head, name, unit in words),
            units=tuple(form for form, _, _ in self.units),
            path=self.path,
            line=self.line,
        )

    def _check_tree(self) -> None:
        """See that heads lead from every word to the root, not round in a circle."""
        is_rooted = {0}
        for place, line in enumerate(self.lines, start=1):
            way: dict[int, None] = {}  # in order, and quick to look into
            at = place
            while at not in is_rooted:
                if at in way:
                    walked = list(way)
                    words = ", ".join(map(str, sorted(walked[walked.index(at) :])[:9]))
                    raise DataError(f"heads lead round in a circle: words {words}.", self.path, line)
                way[at] = None
                at = self.heads[at - 1]
            is_rooted.update(way)

    def _take_apart(self) -> None:
        """Make units of the words of each multiword token that is nothing but its words put together."""
        for unit, num_words in reversed(self.joined):
            form, has_space, line = self.units[unit]
            first = self.units_of.index(unit)
            parts = self.forms[first : first + num_words]
            if "".join(parts) != form:
                continue
            self.units[unit : unit + 1] = [(part, False, line) for part in parts[:-1]] + [(parts[-1], has_space, line)]
            behind = self.units_of[first + num_words :]
            self.units_of[first:] = [*range(unit, unit + num_words), *(each + num_words - 1 for each in behind)]

    def _check_units(self, text: str) -> None:
        """See that each unit stands in the text right behind the one before, but for space."""
        end = 0
        for form, _, line in self.units:
            first = end + len(text[end:]) - len(text[end:].lstrip())
            end = first + len(form)
            if text[first:end] != form:
                raise DataError(
                    f"the treebank's word `{form}` is not what follows in its text (line {self.text_line}): "
                    f"`{text[first : first + 20]}`. Take words and text from one version of the treebank.",
                    self.path,
                    line,
                )
        if text[end:].strip():
            raise DataError(
                f"the text goes on behind the last word: `{text[end:].strip()[:20]}`.", self.path, self.text_line
            )


def _has_space(columns: list[str]) -> bool:
    return "SpaceAfter=No" not in columns[9].split("|")


def _joined(units: Iterable[tuple[str, bool, int]]) -> str:
    """Return the text that the units say, for a sentence without a ``# text``."""
    return "".join(form + (" " if has_space else "") for form, has_space, _ in units).rstrip()
