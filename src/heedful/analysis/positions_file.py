"""Tables of positions out of anybody's safetensors file."""

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from heedful.analysis.positions_table import PositionTable
from heedful.core.errors import ConfigError, DataError, did_you_mean

_MARKS = ("position", "wpe")
"""What names of position tables have in them (BERT and its kin; GPT-2 and its kin)."""

_SHOWN = 8


def read_table(path: Path, tensor: str | None = None) -> PositionTable:
    """Read a learned table: the tensor of that name, or the only one that looks like a table of positions.

    Raises:
        DataError: no such file, no safetensors, or the tensor is not two-dimensional, not of finite real numbers.
        ConfigError: there is no tensor of that name, or none or several that could be meant.
    """
    if not path.is_file():
        raise DataError("no such file.", path)
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in names}
            name = _choose(path, shapes) if tensor is None else _named(path, tensor, names)
            _check_shape(path, name, shapes[name])
            values = file.get_tensor(name)
    except (SafetensorError, ValueError) as error:
        raise DataError(f"not a safetensors file, or a damaged one: {error}", path) from None
    if not values.is_floating_point():
        raise DataError(f"`{name}` holds {values.dtype} numbers, not vectors. Choose another with `--tensor`.", path)
    rows = values.to(torch.float32)
    bad = (~rows.isfinite()).any(dim=1).nonzero().flatten().tolist()
    if bad:
        raise DataError(f"`{name}` has numbers that are not finite, first at position {bad[0]}.", path)
    return PositionTable(name=f"{path.name}: {name}", kind="learned", rows=rows)


def _named(path: Path, tensor: str, names: list[str]) -> str:
    if tensor not in names:
        raise ConfigError(f"{path}: there is no tensor `{tensor}`. {_names(tensor, names)}")
    return tensor


def _names(tensor: str, names: list[str]) -> str:
    if not names:
        return "The file holds none."
    return did_you_mean(tensor, names) if len(names) <= _SHOWN else did_you_mean(tensor, _likely(names))


def _likely(names: list[str]) -> list[str]:
    marked = [name for name in names if any(mark in name.lower() for mark in _MARKS)]
    return (marked or names)[:_SHOWN]


def _choose(path: Path, shapes: dict[str, tuple[int, ...]]) -> str:
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    marked = [name for name in tables if any(mark in name.lower() for mark in _MARKS)]
    for candidates in (marked, tables):
        if len(candidates) == 1:
            return candidates[0]
    if not tables:
        raise ConfigError(f"{path}: it holds no two-dimensional tensor, so no table of positions.")
    listed = ", ".join(f"`{name}`" for name in _likely(marked or tables))
    raise ConfigError(f"{path}: which tensor holds the positions? Name it with `--tensor`, for example {listed}.")


def _check_shape(path: Path, name: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise DataError(
            f"`{name}` has {len(shape)} axes ({' x '.join(map(str, shape)) or 'a number'}); a table of positions has "
            "two, positions x width.",
            path,
        )
    if shape[0] < 2 or shape[1] < 1:
        raise DataError(f"`{name}` is {shape[0]} x {shape[1]}: a table needs two positions or more, and a width.", path)
