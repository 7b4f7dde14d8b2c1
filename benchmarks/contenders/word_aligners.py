"""Other aligners at work: trained on a file of ``source ||| target`` lines, they align its last lines.

    python word_aligners.py {systran-align,eflomal} TEXT LAST_LINES OUT

``OUT.NAME`` gets Pharaoh lines: ``symmetrised`` as systran-align joins both directions itself, or ``forward`` and
``reverse`` from eflomal.
"""

import sys
from pathlib import Path


def systran_align(text: Path, num_last: int, out: Path) -> None:
    """Train fast_align's model as its authors advise, with the diagonal favoured; align the last lines."""
    import systran_align

    probabilities = [f"{out}.probabilities.{direction}" for direction in ("forward", "backward")]
    systran_align.generate_alignment_probabilities(
        str(text), *probabilities, favor_diagonal=True, optimize_tension=True, variational_bayes=True
    )
    pairs = [line.split(" ||| ") for line in text.read_text("utf-8").split("\n")[:-1][-num_last:]]
    aligner = systran_align.Aligner(*probabilities)
    found = [aligner.align(source.split(), target.split())["alignments"] for source, target in pairs]
    lines = (" ".join(f"{source}-{target}" for source, target in sorted(links)) for links in found)
    Path(f"{out}.symmetrised").write_text("".join(f"{line}\n" for line in lines), "utf-8")


def eflomal(text: Path, num_last: int, out: Path) -> None:
    """Sample alignments of all lines with the default settings; keep those of the last."""
    from eflomal import Aligner

    pairs = [line.split(" ||| ") for line in text.read_text("utf-8").split("\n")[:-1]]
    sources, targets = ([f"{pair[side]}\n" for pair in pairs] for side in (0, 1))
    Aligner().align(sources, targets, links_filename_fwd=f"{out}.all.forward", links_filename_rev=f"{out}.all.reverse")
    for direction in ("forward", "reverse"):
        lines = Path(f"{out}.all.{direction}").read_text("utf-8").split("\n")[:-1][-num_last:]
        Path(f"{out}.{direction}").write_text("".join(f"{line}\n" for line in lines), "utf-8")


if __name__ == "__main__":
    name, text, num_last, out = sys.argv[1:]
    {"systran-align": systran_align, "eflomal": eflomal}[name](Path(text), int(num_last), Path(out))
