"""Kill a training with SIGKILL at random moments, resume it each time, and compare its end bit for bit.

Trains a shipped recipe for so many updates once without a break, and once killed again and again; then compares the
weights of bundle and last checkpoint, and the history.

    python benchmarks/kill_resume.py                                      # 300 updates of pronounce, 5 kills
    python benchmarks/kill_resume.py --recipe multi30k-en-de --steps 60 --kills 3
"""

import argparse
import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from command_line import PROGRAM, RUNS, forget, heedful
from record import environment, footer, read_results, table, write_results


def tensor_digests(folder: Path) -> dict[str, str]:
    """Return the sha256 of every weights file of a run: its bundle and its newest checkpoint."""
    files = sorted((folder / "bundle").glob("**/*.safetensors")) + sorted(
        (folder / "checkpoints").glob("**/*.safetensors")
    )
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def history(folder: Path) -> list[dict[str, Any]]:
    """Return a run's history without what depends on the clock."""
    records = [json.loads(line) for line in (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()]
    timed = {"elapsed_s", "seconds", "targets_per_s"}
    return [{key: value for key, value in record.items() if key not in timed} for record in records]


def train_killed(
    folder: Path, command: list[str], *, kills: int, whole_s: float, generator: random.Random
) -> list[float]:
    """Train to the end through so many kills; return when they came, in seconds after each start.

    The moments are drawn so that about as many starts as kills are needed to come to the end.
    """
    killed_after = []
    longest_s = 2 * whole_s / (kills + 1)
    words = command
    for _ in range(kills):
        process = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_s = generator.uniform(0.1, 1.0) * longest_s
        try:
            process.wait(timeout=wait_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed_after.append(wait_s)
        # A run killed before it had a folder is simply begun again.
        words = ["resume", str(folder)] if (folder / "config.toml").exists() else command
        print(f"killed after {wait_s:.1f} s", file=sys.stderr, flush=True)
    heedful(*words)
    return killed_after


def write_config(recipe: str, steps: int, validate_every: int) -> str:
    """Return a copy of a recipe whose limits are counted in updates: those by the clock are outside the promise."""
    from heedful.core.config import read_toml, write_toml
    from heedful.runs.recipes import find_recipe

    values = read_toml(find_recipe(recipe))
    training = {key: value for key, value in values["training"].items() if not key.endswith(("_minutes", "_epochs"))}
    training |= {"max_steps": steps, "validate_every": validate_every, "save_minutes": 0.05, "log_every": 10}
    path = RUNS / f"kill-{recipe}.toml"
    path.write_text(write_toml({**values, "training": training}), encoding="utf-8")
    return str(path)


def main() -> None:
    """Compare both ends and write ``results/kill_resume``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="pronounce")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--validate-every", type=int, default=100)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="for a try")
    arguments = parser.parse_args()
    RUNS.mkdir(parents=True, exist_ok=True)
    config = write_config(arguments.recipe, arguments.steps, arguments.validate_every)
    settings = [f"runtime.threads={arguments.threads}", *arguments.settings]
    flags = [word for setting in settings for word in ("--set", setting)]
    names = ("kill-whole", "kill-killed")
    for name in names:
        forget(name)
    whole, killed = (RUNS / name for name in names)
    started = time.perf_counter()
    heedful("train", config, "--out", str(whole), *flags)
    whole_s = time.perf_counter() - started
    times = train_killed(
        killed,
        ["train", config, "--out", str(killed), *flags],
        kills=arguments.kills,
        whole_s=whole_s,
        generator=random.Random(arguments.seed),
    )
    left, right = tensor_digests(whole), tensor_digests(killed)
    shared = sorted(left.keys() & right.keys())
    same = [name for name in shared if left[name] == right[name]]
    same_history = history(whole) == history(killed)
    row = [
        arguments.recipe,
        arguments.steps,
        len(times),
        ", ".join(f"{each:.1f}" for each in times),
        f"{len(same)} of {len(shared)}",
        "yes" if same_history else "no",
    ]
    values = read_results("kill_resume") or {"rows": []}
    values["rows"] = [each for each in values["rows"] if each["row"][0] != arguments.recipe]
    values["rows"].append({"row": row, "environment": environment(), "files": shared})
    header = ["recipe", "updates", "kills", "killed after, s", "weight files bit-equal", "history equal"]
    text = "# Killed and resumed\n\n" + table(header, [each["row"] for each in values["rows"]])
    text += "".join(footer(each["environment"]) for each in values["rows"])
    print(text)
    if not arguments.settings:
        write_results("kill_resume", values, text)
    if not shared or len(same) < len(shared) or not same_history:
        sys.exit(
            f"The ends differ: {[name for name in shared if name not in same] or 'history'}; see {whole} and {killed}."
        )


if __name__ == "__main__":
    main()
