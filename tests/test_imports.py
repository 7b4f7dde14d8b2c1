"""What an import loads: a command that only reads text or counts errors must not wait for torch."""

import subprocess
import sys

import pytest

import heedful


def modules_after(statement: str) -> set[str]:
    """Return the top-level modules loaded by a fresh interpreter after the statement."""
    program = f"{statement}\nimport sys\nprint(' '.join(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(finished.stdout.split())


@pytest.mark.parametrize(
    "name", ["heedful", "heedful.text", "heedful.metrics", "heedful.core.errors", "heedful.core.config"]
)
def test_import_loads_no_torch(name: str) -> None:
    loaded = modules_after(f"import {name}")
    assert "heedful" in loaded
    assert "torch" not in loaded


def test_the_check_sees_torch_where_it_is_loaded() -> None:
    assert "torch" in modules_after("import heedful.core.types")


def test_names_of_the_face_exist() -> None:
    for name in getattr(heedful, "__all__", []):
        assert getattr(heedful, name) is not None
