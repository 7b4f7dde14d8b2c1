"""Draw the pictures of the lens: a small model learns sentences from a grammar of our own, and chromium looks at it.

python tools/lens_pictures.py                     # trains for about a minute, writes docs/images/lens-*.png
python tools/lens_pictures.py runs/sentences      # the same with a model that is kept there
"""

import itertools
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.chromium import browse  # noqa: E402

import heedful  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SOURCE = "the old woman has seen a small house in the morning ."

# English, German, and the German noun's gender.
PEOPLE = [("woman", "Frau", "f"), ("man", "Mann", "m"), ("child", "Kind", "n"), ("teacher", "Lehrerin", "f"),
          ("farmer", "Bauer", "m"), ("girl", "Mädchen", "n")]  # fmt: skip
THINGS = [("house", "Haus", "n"), ("garden", "Garten", "m"), ("boat", "Boot", "n"), ("street", "Straße", "f"),
          ("tree", "Baum", "m"), ("flower", "Blume", "f")]  # fmt: skip
ADJECTIVES = [("old", "alt"), ("small", "klein"), ("young", "jung"), ("new", "neu"), ("quiet", "still")]
VERBS = [("seen", "gesehen"), ("found", "gefunden"), ("painted", "gemalt"), ("forgotten", "vergessen")]
TIMES = [("in the morning", "am Morgen"), ("in summer", "im Sommer"), ("today", "heute"), ("", "")]
THE = {"m": ("der", "e"), "f": ("die", "e"), "n": ("das", "e")}
A_AS_OBJECT = {"m": ("einen", "en"), "f": ("eine", "e"), "n": ("ein", "es")}


def sentences() -> list[tuple[str, str]]:
    """Return pairs whose German verb stands at the end, and whose German adjectives agree with nouns to come."""
    pairs = []
    parts = itertools.product(PEOPLE, ADJECTIVES, VERBS, THINGS, ADJECTIVES, TIMES)
    for (who, wer, one), (like, wie), (done, getan), (what, was, other), (kind, art), (when, wann) in parts:
        the, ending = THE[one]
        a, other_ending = A_AS_OBJECT[other]
        english = f"the {like} {who} has {done} a {kind} {what} {when} ."
        german = f"{the} {wie}{ending} {wer} hat {wann} {a} {art}{other_ending} {was} {getan} ."
        pairs.append((" ".join(english.split()), " ".join(german.split())))
    random.Random(1).shuffle(pairs)
    return pairs[:4000]


def config(folder: Path) -> dict[str, Any]:
    """Return the configuration of a model with 2 + 2 layers of 4 heads."""
    table = folder / "sentences.tsv"
    rows = "".join(f"{english}\t{german}\n" for english, german in sentences())
    table.write_text(f"english\tgerman\n{rows}", "utf-8")
    schedule = {"kind": "cosine", "peak": 0.003, "warmup_steps": 40}
    return {
        "task": "translation",
        "description": "Sentences of a small grammar, English to German",
        "data": {
            "train": {"kind": "tsv", "path": str(table), "source": "english", "target": "german"},
            "dev_share": 0.02,
            "batching": {"batch_tokens": 800},
        },
        "text": {"source": {"kind": "word"}},
        "model": {"kind": "transformer", "model_dim": 64, "num_heads": 4, "inner_dim": 128, "encoder_layers": 2,
                  "decoder_layers": 2, "norm": "pre", "dropout": 0.1},
        "search": {"kind": "beam", "beam_size": 4},
        "training": {"max_steps": 300, "validate_every": 300, "schedule": schedule, "has_tensorboard": False},
        "runtime": {"dtype": "float32", "threads": 1},
    }  # fmt: skip


SHOTS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("heads", {"width": 1200, "height": 560}, ["[data-focus=tab-heads]"]),
    ("head-dark", {"width": 1200, "height": 860, "scheme": "dark"},
     ["[data-focus=tab-head]", "[data-focus=head-mean]"]),
    ("sentence-phone", {"width": 390, "height": 760, "scale": 2.0, "touch": True},
     ["[data-focus=tab-sentence]", "[data-focus=chip-sentences-query-8]"]),
    ("numbers", {"width": 1200, "height": 980}, ["[data-focus=tab-numbers]", "[data-focus=query-sentences-8]"]),
    ("why", {"width": 1200, "height": 860}, ["[data-focus=tab-why]", "[data-focus=output-sentences-4]"]),
]  # fmt: skip
"""For each picture its name, the window, and what is clicked before it is taken."""


def main(run: str = "") -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path = Path(run) if run else folder / "sentences"
        if not path.exists():
            heedful.train(config(folder), path)
        inspection = heedful.load(path).inspect(SOURCE)
        print(inspection.text)
        inspection.save_html(folder / "lens.html")
        IMAGES.mkdir(parents=True, exist_ok=True)
        with browse() as page:
            for name, window, clicks in SHOTS:
                page.look(**window)
                page.open(f"file://{folder / 'lens.html'}")
                for each in clicks:
                    page.click(each)
                page.evaluate("scrollTo(0, 0)")
                page.picture(IMAGES / f"lens-{name}.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
