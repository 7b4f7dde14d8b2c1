"""Heedful: attention-based sequence models, from a user's pairs to a measured, visible, servable model."""

from typing import Any

__all__ = ["load", "resume", "train"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from heedful import runs

    return getattr(runs, name)
