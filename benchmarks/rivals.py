"""The other libraries' environments (made once, kept in the cache folder) and contenders as processes to talk to."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("HEEDFUL_RIVALS", "~/.cache/heedful-rivals")).expanduser()
CONTENDERS = Path(__file__).resolve().parent / "contenders"

# JoeyNMT 2.3 imports importlib_metadata without asking for it, and breaks on newer sentencepiece.
REQUIREMENTS = {
    "hf": ["torch==2.13.0", "transformers==5.24.0", "numpy"],
    "aligners": ["systran-align==3.5.0", "eflomal==2.0.0"],
    "joey": ["torch==2.13.0", "joeynmt==2.3.0", "importlib_metadata", "sentencepiece<0.2.1", "setuptools<81"],
}


def python_of(name: str) -> str:
    """Return the Python of a contender's environment, which is made when it is not there; "heedful" is this one."""
    if name == "heedful":
        return sys.executable
    python = FOLDER / name / "bin" / "python"
    if not python.exists():
        print(
            f"Making the environment of {name} in {FOLDER / name} (once, some minutes)...", file=sys.stderr, flush=True
        )
        venv.create(FOLDER / name, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS[name]], check=True)
    return str(python)


def _python_path(environment: str) -> str:
    own = os.environ.get("PYTHONPATH", "") if environment == "heedful" else ""
    return os.pathsep.join(filter(None, [str(CONTENDERS.parent), own]))


class Process:
    """A contender at work in a process of its own; it answers one command at a time."""

    def __init__(self, environment: str, script: str, *, threads: int, log: Path, **words: Any) -> None:
        """Start it.

        Args:
            environment: whose Python runs it.
            script: the file under ``contenders/``.
            threads: threads it may use.
            log: where whatever it prints goes.
            words: its command-line words; None is left out.
        """
        self.log = log
        arguments = [f"--{key.replace('_', '-')}={value}" for key, value in words.items() if value is not None]
        self.process = subprocess.Popen(
            [python_of(environment), str(CONTENDERS / script), f"--threads={threads}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("w"),
            text=True,
            # The benchmarks' own folder is all that contenders share; a PYTHONPATH from outside would mix environments.
            env={
                **os.environ,
                "PYTHONPATH": _python_path(environment),
                "OMP_NUM_THREADS": str(threads),
                "TOKENIZERS_PARALLELISM": "false",
            },
        )
        self.greeting = self._answer()

    def ask(self, do: str, **values: Any) -> dict[str, Any]:
        """Give a command and wait for its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **values}) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> dict[str, Any]:
        """Let it end; return its last words."""
        last = self.ask("quit")
        self.process.wait()
        return last

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            tail = "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
            sys.exit(f"A contender ended unexpectedly (exit {self.process.wait()}); see {self.log}:\n{tail}")
        return json.loads(line)
