"""Positions of a bundle, a file or a formula, looked at and written down."""

import sys
from pathlib import Path

from heedful.analysis.positions_file import read_table
from heedful.analysis.positions_report import PositionsReport, look_at
from heedful.analysis.positions_table import PositionTable, rotary_table, sinusoidal_table, tables_of
from heedful.analysis.positions_text import positions_text
from heedful.attention.rotary import Rotary
from heedful.core.errors import ConfigError
from heedful.runs.loaded import load

KINDS = ("sinusoidal", "learned", "rotary")
LENGTH, DIM, PERIOD = 128, 64, 10_000.0
LONGEST_PERIOD = 1e12
MOST_POSITIONS, WIDEST = 2048, 4096
"""Every two positions are compared, and a matrix as wide as the table is made."""


def positions(
    path: Path | None = None,
    *,
    table: Path | None = None,
    tensor: str | None = None,
    kind: str | None = None,
    length: int | None = None,
    dim: int | None = None,
    period: float = PERIOD,
    steps: int = 5,
    seed: int = 1,
) -> PositionsReport:
    """Look at encodings of positions.

    Args:
        path: a run or bundle, for those of its model.
        table: a safetensors file, for one of its tensors.
        tensor: which of the file, or of the model where it has several.
        kind: which kind of the model; with neither bundle nor file, ``sinusoidal`` (the default) or ``rotary``.
        length: positions to look at; a learned table that is shorter is taken whole.
        dim: width of formulas.
        period: base of rotary wavelengths.
        steps: for which the matrix is shown.
        seed: of what is drawn by lot.

    Raises:
        ConfigError: what was asked for does not go together, or there is no such encoding.
        DataError: the file cannot be read as a table.
        BundleError: there is no whole bundle.
    """
    if path is not None and table is not None:
        raise ConfigError("Name a bundle or `--table`, not both.")
    if kind is not None and kind not in KINDS:
        raise ConfigError(f"`--kind` is `{kind}`. Choose from: {', '.join(f'`{each}`' for each in KINDS)}.")
    if (path is not None or table is not None) and dim is not None:
        raise ConfigError("`--dim` is for formulas; a bundle or a file has a width of its own.")
    if tensor is not None and path is None and table is None:
        raise ConfigError("`--tensor` is for a bundle or a file. Name one, or leave it out.")
    if period != PERIOD and (path is not None or table is not None or kind != "rotary"):
        raise ConfigError("`--period` is for the formula of rotary positions. Add `--kind rotary`, without a bundle.")
    if not 0 <= seed < 2**63:
        raise ConfigError(f"`--seed` must be at least 0 and below 2 to the 63, but is {seed}.")
    if length is not None and not 2 <= length <= MOST_POSITIONS:
        raise ConfigError(f"`--length` must be from 2 to {MOST_POSITIONS}, but is {length}.")
    if path is not None:
        found = _of_bundle(path, kind, tensor, length or LENGTH)
    elif table is not None:
        if kind not in (None, "learned"):
            raise ConfigError(f"A table in a file is `learned`, so that `--kind {kind}` does not fit.")
        found = read_table(table, tensor)
    else:
        found = _of_formula(kind or "sinusoidal", length or LENGTH, DIM if dim is None else dim, period)
    return look_at(_shortened(found, length), steps=steps, seed=seed)


def _shortened(table: PositionTable, length: int | None) -> PositionTable:
    """Return as much of a table as can be looked at, and say so where that is not all and nobody asked for less."""
    if length is None and len(table.rows) > MOST_POSITIONS:
        print(
            f"heedful: looking at the first {MOST_POSITIONS:,} of {len(table.rows):,} positions; "
            "`--length` chooses fewer",
            file=sys.stderr,
        )
    return table.shortened(length or MOST_POSITIONS)


def _of_formula(kind: str, length: int, dim: int, period: float) -> PositionTable:
    if kind == "learned":
        raise ConfigError("Learned positions are learned: name a bundle that has some, or a file with `--table`.")
    if not 2 <= dim <= WIDEST:
        raise ConfigError(f"`--dim` must be from 2 to {WIDEST}, but is {dim}.")
    if kind == "sinusoidal":
        return sinusoidal_table(length, dim)
    if not 1 < period <= LONGEST_PERIOD:
        raise ConfigError(f"`--period` must be above 1 and at most {LONGEST_PERIOD:g}, but is {period:g}.")
    return rotary_table(length, Rotary(dim, period))


def _of_bundle(path: Path, kind: str | None, tensor: str | None, length: int) -> PositionTable:
    found = tables_of(load(path).model, length)
    if not found:
        raise ConfigError(
            f"{path}: its model has no encoding of positions (recurrent models need none, and others may do without). "
            "Try `--kind sinusoidal` without a bundle."
        )
    fitting = [each for each in found if kind in (None, each.kind) and tensor in (None, each.name)]
    if not fitting:
        listed = ", ".join(f"`{each.name}` ({each.kind})" for each in found)
        raise ConfigError(f"{path}: its model has no such positions, but {listed}.")
    return fitting[0]


def positions_to_text(report: PositionsReport) -> str:
    """Return a report for people at a terminal."""
    return positions_text(report)
