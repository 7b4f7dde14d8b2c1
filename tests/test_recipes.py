"""Every shipped recipe is a valid configuration, and comes back unchanged from the file that a run keeps."""

import tomllib

import pytest

from heedful.core.config import read_toml
from heedful.runs.config import parse_run, read_run
from heedful.runs.recipes import list_recipes

NAMES = [each.name for each in list_recipes()]


def test_there_are_recipes() -> None:
    assert {"multi30k-en-de", "pronounce", "question-type", "en-es", "characters"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_parses_and_comes_back(name: str) -> None:
    config = read_run(name)
    assert parse_run(tomllib.loads(config.toml())) == config
    assert 10 < len(config.task.description) <= 110
    assert config.task.data.test is not None


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_names_no_folder_of_ours(name: str) -> None:
    recipe = next(each for each in list_recipes() if each.name == name)
    sources = [
        table for table in read_toml(recipe.path)["data"].values() if isinstance(table, dict) and "kind" in table
    ]
    paths = [value for table in sources for key, value in table.items() if key.endswith("path")]
    assert paths and all(path.startswith("${HEEDFUL_DATA}/") for path in paths)
