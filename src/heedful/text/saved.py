"""Small JSON files of a bundle, checked when read: a missing or damaged one is a `BundleError` that names it."""

import json
from pathlib import Path
from typing import Any

from heedful.core.errors import BundleError

_REMEDY = "Copy the bundle again, or save it anew from its run."


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write values as JSON, ASCII only, so that no character of a vocabulary can break the file."""
    path.write_text(json.dumps(values, ensure_ascii=True, indent=0) + "\n", encoding="ascii")


def read_json(path: Path, **types: type) -> dict[str, Any]:
    """Read a JSON object whose named keys must be there, each of its type.

    Raises:
        BundleError: the file is missing, is no JSON object, or a key is missing or of another type.
    """
    values = read_bytes(path)
    try:
        result = json.loads(values)
    except (ValueError, RecursionError):
        raise BundleError(f"{path}: damaged, not valid JSON. {_REMEDY}") from None
    if not isinstance(result, dict):
        raise BundleError(f"{path}: damaged, not a JSON object. {_REMEDY}")
    for key, kind in types.items():
        if not isinstance(result.get(key), kind):
            raise BundleError(f"{path}: damaged, `{key}` is missing or no {kind.__name__}. {_REMEDY}")
    return result


def read_bytes(path: Path) -> bytes:
    """Read a whole file of a bundle.

    Raises:
        BundleError: it is missing or cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BundleError(f"{path}: missing. {_REMEDY}") from None
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror}. {_REMEDY}") from None


def damaged(path: Path, what: str) -> BundleError:
    """Return the error for a file whose content cannot be right."""
    return BundleError(f"{path}: damaged, {what}. {_REMEDY}")
