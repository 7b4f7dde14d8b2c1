"""The recipes that ship with Heedful: configurations that are known to work, by name."""

import importlib.resources
from dataclasses import dataclass
from pathlib import Path

from heedful.core.config import read_toml
from heedful.core.errors import ConfigError, did_you_mean


@dataclass(frozen=True)
class Recipe:
    """A configuration that ships with Heedful."""

    name: str
    path: Path
    description: str


def recipe_folder() -> Path:
    """Return the folder of the shipped recipes."""
    return Path(str(importlib.resources.files("heedful.recipes")))


def list_recipes() -> list[Recipe]:
    """Return every recipe, by name."""
    paths = sorted(recipe_folder().glob("*.toml"))
    return [Recipe(path.stem, path, str(read_toml(path).get("description", ""))) for path in paths]


def find_recipe(name: str) -> Path:
    """Return the file of a recipe.

    Raises:
        ConfigError: there is none by that name; the nearest are named.
    """
    path = recipe_folder() / f"{name}.toml"
    if Path(name).name != name or not path.is_file():
        known = [each.stem for each in recipe_folder().glob("*.toml")]
        raise ConfigError(
            f"`{name}` is neither a recipe nor a file. {did_you_mean(name, known)} "
            "`heedful recipes` lists all; a file of your own ends in `.toml`."
        )
    return path
