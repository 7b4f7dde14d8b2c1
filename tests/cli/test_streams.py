"""Streams that are closed, full or of another encoding."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEEDFUL = f"{sys.executable} -m heedful"


def shell(command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, env=environment)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told_in_words() -> None:
    finished = shell(f"{HEEDFUL} recipes > /dev/full")
    assert finished.returncode == 1
    assert finished.stderr == "heedful: No space left on device. Free some space.\n"


def test_closed_streams_take_and_give_nothing(reverser: Path) -> None:
    finished = shell(f"{HEEDFUL} recipes >&- 2>&-")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")
    finished = shell(f"{HEEDFUL} predict {reverser} <&-")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")


def test_output_is_utf8_as_input_is() -> None:
    program = "import sys; import heedful.cli.main as m; m._open_streams(); print('ä', flush=True)"
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert finished.stdout == "ä\n".encode()


def test_a_name_that_no_file_can_have() -> None:
    finished = shell(f"{HEEDFUL} info {'a' * 300}")
    assert finished.returncode == 1
    assert finished.stderr == f"heedful: {'a' * 300}: File name too long.\n"
