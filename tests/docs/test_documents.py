"""The documentation's code runs and prints what the documentation says.

In each page the ``python`` blocks run one after the other in one namespace, in an empty folder. A ``text`` block right
after one holds what it prints, exactly. In ``console`` blocks the lines that begin with ``$`` run: ``heedful`` and
``cat``, with ``<`` and ``>`` as in a shell. A block titled with a file's name is written to that file.
"""

import contextlib
import io
import itertools
import re
import runpy
import shlex
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from heedful.runs.config import parse_run

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("**/*.md"))
FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title, its text, its place in the page, and what it is said to print."""

    language: str
    title: str
    text: str
    line: int
    printed: str | None


def blocks_of(page: str) -> list[Block]:
    """Return the page's fenced blocks in order."""
    matches = list(FENCE.finditer(page))
    blocks = []
    for match, after in itertools.zip_longest(matches, matches[1:]):
        follows = after is not None and after[1] == "text" and not page[match.end() : after.start()].strip()
        line = page[: match.start()].count("\n") + 1
        blocks.append(Block(match[1], match[2] or "", match[3], line, after[3] if after and follows else None))
    return blocks


def run_python(block: Block, page: Path, namespace: dict[str, object]) -> str:
    """Run a block where the page's earlier blocks ran; return what it printed."""
    # Empty lines in front, so that a traceback names the page's own line.
    code = compile("\n" * block.line + block.text, str(page), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, namespace)
    return printed.getvalue()


def run_command(line: str) -> str:
    """Run ``heedful ...`` or ``cat ...``, with its redirections, in this process; return what it printed."""
    from heedful.cli.main import main

    words = shlex.split(line)
    places = {sign: words.index(sign) for sign in "<>" if sign in words}
    given = Path(words[places["<"] + 1]).read_text() if "<" in places else ""
    command = words[: min(places.values(), default=len(words))]
    if command[0] == "cat":
        return Path(command[1]).read_text()
    assert command[0] == "heedful", line
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(_Captured()) as printed:
        patch.setattr(sys, "argv", command)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8"))
        try:
            main()
        except SystemExit as end:
            if end.code:
                pytest.fail(f"`{line}` ended with {end.code}")
    text = printed.text()
    if ">" in places:
        Path(words[places[">"] + 1]).write_text(text)
        return ""
    return text


class _Captured(io.TextIOWrapper):
    """A standard output that keeps bytes and text alike."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")

    def text(self) -> str:
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode()


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("quick_measuring")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.title:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            printed = run_python(block, page, namespace)
            assert block.printed is None or printed == block.printed, f"{page}:{block.line} prints\n{printed}"
        elif block.language == "console":
            printed = "".join(run_command(line[2:]) for line in block.text.splitlines() if line.startswith("$ "))
            assert block.printed is None or printed == block.printed, f"{page}:{block.line} prints\n{printed}"


def test_a_wrong_print_is_seen() -> None:
    page = '```python\nprint("a")\n```\n\n```text\nb\n```\n'
    (block, said) = blocks_of(page)
    assert block.printed == "b\n" == said.text
    assert run_python(block, Path("page.md"), {}) == "a\n"


def test_every_page_of_the_site_exists() -> None:
    named = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert {str(page.relative_to(ROOT / "docs")) for page in PAGES} == set(named)


def test_the_configuration_in_the_readme_is_one() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (text,) = [block.text for block in blocks_of(page) if block.language == "toml"]
    assert parse_run(tomllib.loads(text)).training.max_minutes == 5


def test_the_page_of_keys_is_up_to_date() -> None:
    """Run ``python tools/configuration_page.py`` after a change to a configuration class."""
    page = runpy.run_path(str(ROOT / "tools" / "configuration_page.py"))["page"]
    assert (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8") == page()
