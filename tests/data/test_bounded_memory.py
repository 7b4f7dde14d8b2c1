"""A corpus larger than the memory a process may take is prepared and read in batches all the same."""

import subprocess
import sys
from pathlib import Path

import pytest

NUM_ROWS = 5000
ALLOWED_MB = 16

PROGRAM = f"""
import re, resource, sys
from pathlib import Path
from heedful.core.config import parse_config
from heedful.core.types import Position
from heedful.data import DataConfig, LineBatches, prepare
from heedful.text import TextConfig

folder, kept = Path(sys.argv[1]), []
columns = {{"kind": "tsv", "source": "s", "target": "t"}}
data = parse_config(DataConfig, {{
    "train": {{**columns, "path": "train.tsv"}},
    "dev": {{**columns, "path": "dev.tsv"}},
    "batching": {{"batch_tokens": 40_000}},
}})
text = parse_config(TextConfig, {{"source": {{"kind": "byte"}}, "max_target_length": 5000}})
used_kb = int(re.search(r"VmData:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
limit = (used_kb + {ALLOWED_MB} * 1024) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
made = prepare(data, text, folder, folder / "cache")
batches = LineBatches(made.store, data.batching, 1, made.codec)
num_rows = 0
for batch, position in batches.placed(Position()):
    num_rows += len(batch)
    if "hoard" in sys.argv:
        kept.append(batch)
    if position.epoch:
        break
print(num_rows)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits what a process may write to")
def test_ids_of_several_times_the_memory_allowed(tmp_path: Path) -> None:
    with (tmp_path / "train.tsv").open("w") as file:
        file.write("s\tt\n")
        file.writelines(f"{number}\t{number:05} {'0123456789 words ' * 235}\n" for number in range(NUM_ROWS))
    (tmp_path / "dev.tsv").write_text("s\tt\na\tb\n")
    run = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert done.stdout == f"{NUM_ROWS}\n", done.stderr
    ids = sum(path.stat().st_size for path in (tmp_path / "cache").glob("store-*/target.bin"))
    assert ids > 2 * ALLOWED_MB * 2**20
    hoarding = subprocess.run([*run, "hoard"], capture_output=True, text=True, timeout=300)
    assert hoarding.returncode != 0 and "memory" in hoarding.stderr.lower()  # the limit is one
