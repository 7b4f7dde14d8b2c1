"""The page of `heedful inspect` at its largest: how many bytes, how long until it can be used, how long a tab takes.

A Transformer of 6 + 6 layers with 8 heads reads 128 symbols and is given 128 to write; its weights are random, which no
packing makes small. The page holds what a user gets: weights, norms, rollout, attention in numbers as far as there is
room, what each head did for each symbol, and answers with heads silent. Chromium opens the file from disk.

    python benchmarks/lens.py                  # the median of 5 loads
    python benchmarks/lens.py --loads 9
    python benchmarks/lens.py --quick          # a small model, one load; writes nothing
"""

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from record import ROOT, environment, footer, table, write_results

TABS = {
    "heads": "All heads",
    "head": "One head",
    "sentence": "Sentence",
    "numbers": "In numbers",
    "why": "Why this word",
}
MOST_BYTES, MOST_S = 10_000_000, 2.0
"""What was promised: under 10 MB, usable within 2 s."""

SWITCH = """(async () => {
  const start = performance.now();
  document.querySelector("[data-focus=tab-%s]").click();
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return (performance.now() - start) / 1000 })()"""
"""Clicks a tab; gives the seconds until it was drawn."""


@dataclass(frozen=True)
class Size:
    """How large a model and a line are.

    Attributes:
        layers: of the encoder, and of the decoder.
        heads: of each attention.
        model_dim: width.
        symbols: of each text, the end included.
    """

    layers: int = 6
    heads: int = 8
    model_dim: int = 256
    symbols: int = 128


def build(size: Size) -> tuple[Any, str, str]:
    """Return a model with random weights, a source and a target."""
    import torch

    from heedful.runs.config import parse_run
    from heedful.runs.loaded import LoadedModel
    from heedful.tasks import task_class
    from heedful.text import Codec

    source = " ".join(f"word{index}" for index in range(size.symbols - 1))
    target = " ".join(f"Wort{index}" for index in range(size.symbols - 1))
    config = parse_run(
        {
            "task": "translation",
            "data": {"train": {"kind": "tsv", "path": "none", "source": "source", "target": "target"}},
            "text": {"source": {"kind": "word"}},
            "model": {
                "kind": "transformer",
                "model_dim": size.model_dim,
                "inner_dim": 4 * size.model_dim,
                "num_heads": size.heads,
                "encoder_layers": size.layers,
                "decoder_layers": size.layers,
            },
            "search": {"kind": "greedy", "max_length": size.symbols},
            "training": {"max_steps": 1},
        }
    )
    torch.manual_seed(1)
    task = task_class(config.task)(config.task, Codec.train(config.task.text, [(source, target)]))
    task.model.eval()
    return LoadedModel(Path("random"), config, task), source, target


def look(page: Path, num_loads: int) -> dict[str, float]:
    """Return the median seconds until a page can be used, and until each of its tabs is drawn."""
    sys.path.append(str(ROOT))
    from tests.chromium import browse, find_chromium

    if find_chromium() is None:
        sys.exit("This benchmark looks at the page in chromium, which is not here. Try `apt-get install chromium`.")
    found: dict[str, list[float]] = {name: [] for name in ("open", *TABS)}
    with browse() as browser:
        browser.look(1200, 900)
        for _ in range(num_loads):
            browser.open("about:blank", ready="document.body")
            found["open"].append(browser.open(page.as_uri()))
            for name in (*list(TABS)[1:], "heads"):
                found[name].append(browser.evaluate(SWITCH % name))
        if browser.errors:
            sys.exit(f"The page complains: {browser.errors}")
    return {name: statistics.median(times) for name, times in found.items()}


def measure(size: Size, num_loads: int) -> dict[str, Any]:
    """Return what a page of that size takes."""
    model, source, target = build(size)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "lens.html"
        start_s = time.perf_counter()
        inspection = model.inspect(source, target)
        inspection.save_html(page)
        elapsed_s = time.perf_counter() - start_s
        (view,) = inspection.lens.views
        num_bytes, times = page.stat().st_size, look(page, num_loads)
    return {
        "symbols": [len(view.sides[name].pieces) for name in ("source", "target_output")],
        "heads": sum(site.num_heads for site in view.sites),
        "notes": list(view.notes),
        "loads": num_loads,
        "inspect_s": elapsed_s,
        "page_bytes": num_bytes,
        "seconds": times,
    }


def describe(values: dict[str, Any]) -> str:
    """Return the table."""
    queries, keys = values["symbols"]
    seconds = values["seconds"]
    rows = [
        ["page, bytes", values["page_bytes"], MOST_BYTES],
        ["opened from disk until it can be used, s", seconds["open"], MOST_S],
        *([f"tab {title}, until it is drawn, s", seconds[name], None] for name, title in TABS.items()),
        ["`heedful inspect` of the loaded model, page written, s", values["inspect_s"], None],
    ]
    head = (
        f"# The page of `heedful inspect`\n\n{values['heads']} heads, {queries} x {keys} symbols, random weights; "
        f"medians of {values['loads']} loads in chromium, window 1200 x 900.\n\n"
    )
    notes = "".join(f"\n- {each}" for each in values["notes"])
    return head + table(["", "measured", "at most"], rows) + (f"\nThe page itself tells:\n{notes}\n" if notes else "")


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loads", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a small model, one load; writes nothing")
    arguments = parser.parse_args()
    if arguments.quick:
        print(describe(measure(Size(layers=1, heads=2, model_dim=16, symbols=9), 1)))
        return
    values = measure(Size(), arguments.loads)
    about = environment()
    text = describe(values) + footer(about)
    write_results("lens", {**about, **values}, text)
    print(text)


if __name__ == "__main__":
    main()
