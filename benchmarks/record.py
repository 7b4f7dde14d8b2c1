"""What every benchmark writes down beside its figures, and where: machine, versions, commit, date, command."""

import datetime
import json
import os
import platform
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
CACHE = Path(os.environ.get("HEEDFUL_BENCHMARK_CACHE", "~/.cache/heedful-benchmarks")).expanduser()


def data_folder(*parts: str) -> Path:
    """Return a folder or file below HEEDFUL_DATA; end with a clear word when it is not there."""
    root = os.environ.get("HEEDFUL_DATA")
    if not root:
        sys.exit(
            "This benchmark reads real data from the folder named by HEEDFUL_DATA, which is not set. "
            "Try `export HEEDFUL_DATA=/path/to/data`; docs/data.md says what lies there."
        )
    path = Path(root).joinpath(*parts)
    if not path.exists():
        sys.exit(f"{path}: no such file or folder. docs/data.md says what HEEDFUL_DATA holds.")
    return path


def environment() -> dict[str, Any]:
    """Return what a reader needs to judge a figure: where, when and with what it was measured."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": shlex.join(["python", *map(shorten, [str(Path(sys.argv[0]).resolve()), *sys.argv[1:]])]),
        "commit": commit(),
        "machine": machine(),
        "versions": {name: metadata.version(name) for name in ("torch", "numpy", "sentencepiece")},
        "python": platform.python_version(),
    }


def shorten(word: str) -> str:
    """Return a word of a command without the folders of this machine: results are for everybody."""
    data = os.environ.get("HEEDFUL_DATA", "").rstrip("/")
    short = word.replace(f"{data}/", "$HEEDFUL_DATA/") if data else word
    return short.replace(f"{CACHE}/", "").replace(f"{ROOT}/", "")


def commit() -> str:
    """Return the short name of the checked-out commit, with ``+`` when files under it were changed."""
    name = _output("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD") or "unknown"
    return name + (
        "+" if _output("git", "-C", str(ROOT), "status", "--porcelain", "--", "src", "benchmarks/*.py") else ""
    )


def machine() -> str:
    """Return the processor's name, its cores in use and the features that decide speed here."""
    fields = dict(line.split(":", 1) for line in _output("lscpu").splitlines() if ":" in line)
    model = fields.get("Model name", platform.processor() or "unknown processor").strip()
    family = f"family {fields.get('CPU family', '?').strip()} model {fields.get('Model', '?').strip()}"
    flags = fields.get("Flags", "").split()
    features = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16") if flag in flags]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model} ({family}), {os.cpu_count()} cores, {memory:.0f} GiB, {' '.join(features) or 'no AVX2'}"


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def read_results(name: str) -> dict[str, Any]:
    """Return what stands in ``results/NAME.json``, or nothing yet."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_results(name: str, values: dict[str, Any], table: str) -> None:
    """Write ``results/NAME.json`` and ``results/NAME.md``, each switched in whole."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for suffix, text in ((".json", json.dumps(values, indent=1, ensure_ascii=False) + "\n"), (".md", table)):
        fresh = RESULTS / f".{name}{suffix}"
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(RESULTS / f"{name}{suffix}")


def table(header: list[str], rows: list[list[Any]]) -> str:
    """Return a Markdown table; numbers are set right."""
    numeric = [
        all(isinstance(row[column], int | float) or not row[column] for row in rows) for column in range(len(header))
    ]
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|" + "|".join(" ---: " if each else " --- " for each in numeric) + "|")
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def footer(*rows: dict[str, Any]) -> str:
    """Return the lines under a table that say how to make it again: all commands and machines of its rows."""
    dates: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        dates.setdefault((row["command"], row["commit"]), []).append(row["date"])
    made = [
        f"Made by `{command}` at commit {commit} on {' to '.join(dict.fromkeys((min(each), max(each))))}."
        for (command, commit), each in dates.items()
    ]
    machines = dict.fromkeys(_machine(row) for row in rows)
    return "\n" + "  \n".join([*made, *machines]) + "\n"


def _machine(row: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in row["versions"].items())
    return f"Machine: {row['machine']}. Python {row['python']}, {versions}."
