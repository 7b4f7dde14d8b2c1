"""Text is light: importing it loads no torch."""

import subprocess
import sys


def test_text_loads_no_torch() -> None:
    code = "import sys, heedful.text; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
