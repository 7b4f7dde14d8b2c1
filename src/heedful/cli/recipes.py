"""``heedful recipes``."""

from heedful.runs.recipes import list_recipes


def recipes() -> None:
    """List the recipes that ship with Heedful, a line each."""
    found = list_recipes()
    width = max(len(each.name) for each in found)
    for each in found:
        print(f"{each.name:{width}}  {each.description}")
