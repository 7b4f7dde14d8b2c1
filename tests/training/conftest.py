"""Lets the tests, and the processes they start, import the toy task."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
