"""Files that a command is to write, looked at before any work is done."""

import os
from pathlib import Path

from heedful.core.errors import ConfigError


def check_outputs(*paths: Path | None) -> None:
    """See before any work that files can be written, so that none is written when another cannot be.

    Args:
        paths: of the files; None for one that is not wished.

    Raises:
        ConfigError: one is a folder or a device, its folder is not there or takes no files, or two are the same.
    """
    seen: set[Path] = set()
    for path in paths:
        if path is None:
            continue
        _check(path)
        place = path.absolute()
        if place in seen:
            raise ConfigError(f"{path}: named twice. Name a file for each form.")
        seen.add(place)


def _check(path: Path) -> None:
    folder = path.absolute().parent
    if path.is_dir():
        raise ConfigError(f"{path}: a folder. Name a file to write.")
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path}: a pipe or a device, which would be replaced. Name a file to write.")
    if not folder.is_dir():
        raise ConfigError(f"{path}: there is no folder {path.parent}. Make it first.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{path}: nothing can be written in the folder {path.parent}. Choose another.")
