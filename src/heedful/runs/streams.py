"""Lines in and out of a command: read as they come, written so that each stays one line."""

import contextlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal

from heedful.analysis.alignment_files import format_links
from heedful.core.errors import ConfigError, DataError
from heedful.tasks.outcome import Candidate, Prediction
from heedful.text.lines import escape_line, read_lines

Format = Literal["text", "tsv", "jsonl"]

MAX_LINE_BYTES = 64 << 20


@contextlib.contextmanager
def open_lines(file: Path | None) -> Iterator[Iterator[str]]:
    r"""Give the lines of a UTF-8 file, or of stdin; a line ends at ``\n`` only.

    Raises:
        DataError: the file cannot be read, or a line is not UTF-8 (named by its number).
    """
    if file is None or str(file) == "-":
        yield read_lines(sys.stdin.buffer, "stdin", max_bytes=MAX_LINE_BYTES)
        return
    try:
        stream: BinaryIO = file.open("rb")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}.", file) from None
    with stream:
        yield read_lines(stream, file, max_bytes=MAX_LINE_BYTES)


def split_pairs(lines: Iterable[str], path: Path | str = "pairs") -> Iterator[tuple[str | None, str]]:
    """Yield source and target of each line; a line without a tab is a target alone.

    Args:
        lines: source, tab, target.
        path: where they come from, for messages.

    Raises:
        DataError: a line has more than two columns.
    """
    for number, line in enumerate(lines, start=1):
        source, tab, target = line.partition("\t")
        if "\t" in target:
            raise DataError("more than two columns. Write source, tab, target.", path, number)
        yield (source, target) if tab else (None, source)


def check_stdin(*files: Path | None) -> None:
    """See that at most one of some files is standard input, which can be read once.

    Raises:
        ConfigError: several are.
    """
    if sum(str(file) == "-" for file in files) > 1:
        raise ConfigError("Standard input can be read only once. Save one of the texts as a file, and name that.")


def read_pairs(source: Path, target: Path) -> list[tuple[str, str]]:
    """Read two files (``-`` for stdin) whose lines go together, all of them, so that nothing begins that cannot end.

    Raises:
        ConfigError: both are stdin.
        DataError: one cannot be read, or they have not as many lines.
    """
    check_stdin(source, target)
    with open_lines(source) as sources, open_lines(target) as targets:
        columns = list(sources), list(targets)
    if len(columns[0]) != len(columns[1]):
        raise DataError(
            f"{len(columns[1]):,} lines, but {source} has {len(columns[0]):,}. Each line needs its translation.", target
        )
    return list(zip(*columns, strict=True))


def format_predictions(
    predictions: Iterable[Prediction], output_format: str, *, with_scores: bool = False
) -> Iterator[str]:
    """Yield what is written for each prediction, line ends included.

    Args:
        predictions: in order.
        output_format: ``text``, one line a line (its candidates, scores and alignments between tabs); ``tsv``, a row a
            candidate with line, rank, score, text and, where there is one, alignment; ``jsonl``, an object a line.
        with_scores: write scores in ``text`` too.
    """
    for each in predictions:
        if output_format == "jsonl":
            yield to_json_line(each.to_values())
        elif output_format == "tsv":
            for rank, candidate in enumerate(each.candidates, start=1):
                yield "\t".join([f"{each.line + 1}", f"{rank}", *_cells(candidate, with_scores=True)]) + "\n"
        elif with_scores or len(each.candidates) > 1 or each.candidates[0].alignment is not None:
            cells = [cell for candidate in each.candidates for cell in _cells(candidate, with_scores=with_scores)]
            yield "\t".join(cells) + "\n"
        else:
            yield escape_line(each.text) + "\n"


def _cells(candidate: Candidate, *, with_scores: bool) -> list[str]:
    """Return the columns of a candidate: its score if wished, its text, its alignment where it has one."""
    score = [f"{candidate.score:.4f}"] if with_scores else []
    links = [] if candidate.alignment is None else [format_links(candidate.alignment)]
    return [*score, _cell(candidate.text), *links]


def to_json_line(values: dict[str, Any]) -> str:
    """Return an object as one line of JSON; what some programs take for a line's end is escaped, as JSON allows."""
    return escape_line(json.dumps(values, ensure_ascii=False)) + "\n"


def _cell(text: str) -> str:
    return escape_line(text).replace("\t", "\\t")
