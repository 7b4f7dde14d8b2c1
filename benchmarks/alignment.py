"""Word alignment from attention beside aligners: error rates on the 447 Hansards test sentences. Resumable.

Everything is trained on the same 80,000 pairs; the aligners read the trial and test sentences besides, as they are
made to. What can be chosen (heads, shift, threshold, symmetrisation) is chosen on the 37 trial sentences. The two
recipes take an hour each on two cores, the model of the other direction half an hour; what stands in
``results/alignment.json`` is not done again.

    python benchmarks/alignment.py
    python benchmarks/alignment.py --only published rivals      # the figures that need no training of ours
    python benchmarks/alignment.py --only transformer --set training.max_steps=20      # a short try; nothing is written
"""

import argparse
import itertools
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from command_line import evaluate, facts, forget, train
from heedful import runs
from heedful.analysis.alignment import SYMMETRISATIONS, Links, diagonal, symmetrise
from heedful.analysis.alignment_choice import AlignmentChoice, Tried, choose_for, head_sets
from heedful.analysis.alignment_error import GoldLine, count_errors
from heedful.analysis.alignment_files import parse_links, read_alignments
from heedful.analysis.alignment_learning import learn
from heedful.analysis.alignment_model import Line, links_above
from heedful.analysis.word_weights import cross_sites, read_word_weights
from heedful.data.opening import numbered_lines
from heedful.runs.alignments import texts_of
from heedful.runs.learnt_alignment import THRESHOLDS
from record import CACHE, data_folder, environment, footer, read_results, table, write_results
from rivals import CONTENDERS, python_of

GOLD = ("word-alignment", "hansards.en-fr.tsv.gz")
TRAINING_TEXT = ("hansards-en-fr-train", "train.tsv.gz")
PUBLISHED = {
    "fast_align": {"forward": 16.4, "reverse": 15.9, "grow-diagonal": 10.5, "grow-diagonal-final": 12.1},
    "mgiza": {"forward": 8.0, "reverse": 9.8, "grow-diagonal": 5.9, "grow-diagonal-final": 6.2},
}
"""AER in percent (Zenkel et al. 2019; trained on all 1.1 million pairs)."""
TOLERANCE = 0.05 + 1e-9
AGREEMENT_LINES = 500


@dataclass(frozen=True)
class Model:
    """One of ours.

    Attributes:
        name: of its row.
        recipe: that trains it.
        settings: on top of the recipe.
        is_reverse: it translates from French to English.
    """

    name: str
    recipe: str
    settings: tuple[str, ...] = ()
    is_reverse: bool = False


MODELS = {
    "transformer": Model("Transformer", "hansards-en-fr"),
    "recurrent": Model("recurrent, additive attention", "hansards-en-fr-recurrent"),
    "reverse": Model(
        "Transformer, French to English",
        "hansards-en-fr",
        (
            "data.train.source=fr",
            "data.train.target=en",
            "data.test.source=tgt",
            "data.test.target=src",
            "training.max_minutes=30",
        ),
        is_reverse=True,
    ),
}
HEADINGS = {"aer": "AER", "cpu_s": "seconds of one core"}
PARTS = ("published", "rivals", *MODELS, "both", "learnt")


def gold(split: str, *, is_reverse: bool = False) -> list[GoldLine]:
    """Return gold alignments, for a model of the other direction turned around."""
    lines = runs.read_gold(data_folder(*GOLD), split=split)
    return [turn_gold(each) for each in lines] if is_reverse else lines


def turn_gold(line: GoldLine) -> GoldLine:
    """Return a gold line with source and target exchanged."""
    return GoldLine(turn(line.sure), turn(line.possible), line.target, line.source)


def turn(links: Links) -> Links:
    """Return links with source and target exchanged."""
    return frozenset((target, source) for source, target in links)


def percent(alignments: Sequence[Links], split: str = "test", *, is_reverse: bool = False) -> dict[str, float]:
    """Return error rate, precision and recall of alignments, in percent."""
    errors = count_errors(alignments, gold(split, is_reverse=is_reverse))
    return {"aer": 100 * errors.aer, "precision": 100 * errors.precision, "recall": 100 * errors.recall}


def published() -> dict[str, Any]:
    """Compute the published figures from the published alignments; end where one does not come out."""
    found: dict[str, dict[str, list[Links]]] = {}
    for number, line in numbered_lines(str(data_folder("word-alignment", "system-output.tsv.gz"))):
        if number > 1:
            _, _, system, links = line.split("\t")
            name, _, way = system.partition(" ")
            found.setdefault(name, {}).setdefault(way, []).append(parse_links(links)[0])
    rows = []
    for name, ways in PUBLISHED.items():
        for way, said in ways.items():
            computed = percent(found[name][way])
            if abs(computed["aer"] - said) > TOLERANCE:
                raise SystemExit(f"{name} {way}: published {said}, computed {computed['aer']:.2f}")
            rows.append({"system": name, "way": way, "published": said, **computed})
    return {"rows": rows}


def rivals() -> dict[str, Any]:
    """Let other aligners align the test sentences, and measure the diagonal."""
    folder = CACHE / "alignment"
    folder.mkdir(parents=True, exist_ok=True)
    trial, test = gold("trial"), gold("test")
    pairs = [line.split("\t") for _, line in numbered_lines(str(data_folder(*TRAINING_TEXT)))][1:]
    text = "".join(f"{source} ||| {target}\n" for source, target in [*pairs, *texts_of(trial), *texts_of(test)])
    (folder / "text").write_text(text, "utf-8")
    rows = [{"system": "diagonal", "way": "", **percent([diagonal(*lengths(each)) for each in test])}]
    for name in ("systran-align", "eflomal"):
        command = [python_of("aligners"), CONTENDERS / "word_aligners.py", name, folder / "text"]
        subprocess.run([*command, str(len(trial) + len(test)), folder / name], check=True)
    rows.append({"system": "systran-align", "way": "symmetrised by itself", **percent(output("systran-align"))})
    forward, reverse = ([*read_alignments(folder / f"eflomal.{way}")] for way in ("forward", "reverse"))
    rows += [{"system": "eflomal", "way": way, **percent(output("eflomal", way))} for way in ("forward", "reverse")]
    joined = {how: [symmetrise(*each, how) for each in zip(forward, reverse, strict=True)] for how in SYMMETRISATIONS}
    best = min(SYMMETRISATIONS, key=lambda how: count_errors(joined[how][: len(trial)], trial).aer)
    rows.append({"system": "eflomal", "way": f"{best}, chosen on trial", **percent(joined[best][len(trial) :])})
    return {"rows": rows}


def output(name: str, way: str = "symmetrised") -> list[Links]:
    """Return what an aligner says of the test sentences."""
    return read_alignments(CACHE / "alignment" / f"{name}.{way}")[-len(gold("test")) :]


def lengths(line: GoldLine) -> tuple[int, int]:
    """Return the number of words on both sides."""
    return len((line.source or "").split()), len((line.target or "").split())


def run_name(key: str, settings: Sequence[str]) -> str:
    """Return a run's name; a try never touches the run that the table stands on."""
    return f"{'try-' if settings else ''}alignment-{key}"


def measure(key: str, settings: Sequence[str]) -> dict[str, Any]:
    """Train a model and measure every head, the averages, and what is chosen with and without gold alignments."""
    spec = MODELS[key]
    folder, command = train(spec.recipe, run_name(key, settings), [*spec.settings, *settings])
    model = runs.load(folder)
    trial, test = gold("trial", is_reverse=spec.is_reverse), gold("test", is_reverse=spec.is_reverse)
    seen, unseen = (list(read_word_weights(model.task, texts_of(each))) for each in (trial, test))

    def row(name: str, tried: AlignmentChoice, trial_aer: float | None) -> dict[str, Any]:
        links = [tried.links(tried.weights(line)) for line in unseen]
        result = percent(links, is_reverse=spec.is_reverse)
        return {"heads": name, "setting": tried.describe(), "trial": trial_aer, **result}

    rows = []
    for name, heads in head_sets(cross_sites(model.task)).items():
        found = choose_for(seen, trial, heads)
        rows.append(row(name, found.choice, 100 * found.errors.aer))
    agreed, agreement = runs.choose_unsupervised(model, training_pairs(spec.is_reverse))
    rows.append(row("chosen without gold", agreed, None))
    chosen = runs.choose_alignment(model, trial)
    runs.save_choice(model, chosen.choice, {"gold": GOLD[1], "split": "trial", **chosen.errors.to_values()})
    rows.append(row("chosen on trial", chosen.choice, 100 * chosen.errors.aer))
    scores = {name: each["value"] for name, each in evaluate(folder, "test")["metrics"].items()}
    return {"name": spec.name, "command": command, **facts(folder), "scores": scores, "agreement": agreement,
            "rows": rows, **environment()}  # fmt: skip


def training_pairs(is_reverse: bool, number: int | None = AGREEMENT_LINES) -> list[tuple[str, str]]:
    """Return the first pairs of the training text, or all."""
    lines = (line.split("\t") for place, line in numbered_lines(str(data_folder(*TRAINING_TEXT))) if place > 1)
    pairs = [(source, target) for source, target in itertools.islice(lines, number)]
    return [(target, source) for source, target in pairs] if is_reverse else pairs


def both(settings: Sequence[str]) -> dict[str, Any]:
    """Let the Transformers of both directions align together."""
    forward, reverse = (runs.load(CACHE / "runs" / run_name(key, settings)) for key in ("transformer", "reverse"))
    tried: Tried = runs.choose_alignment(forward, gold("trial"), reverse=reverse)
    links = list(runs.align(forward, texts_of(gold("test")), choice=tried.choice, reverse=reverse))
    joint = tried.choice.joint
    setting = f"{joint.join}, above {joint.threshold:g}, {joint.symmetrisation}"
    row = {"heads": "both directions, chosen on trial", "setting": setting, "trial": 100 * tried.errors.aer}
    return {"rows": [row | percent(links)], **environment()}


def learnt(settings: Sequence[str]) -> dict[str, Any]:
    """Learn to align on top of attention, from the same pairs as the aligners."""
    rows = []
    trial, test = gold("trial"), gold("test")
    for key in ("transformer", "recurrent"):
        model = runs.load(CACHE / "runs" / run_name(key, settings))
        agreed, _ = runs.choose_unsupervised(model, training_pairs(is_reverse=False))
        chosen = runs.choose_alignment(model, trial).choice
        # Aligners read the texts that they are to align, gold left out; the last rows do without.
        ways = [
            ("heads and threshold chosen on trial", [*texts_of(trial), *texts_of(test)], chosen, trial),
            ("nothing chosen on gold", [*texts_of(trial), *texts_of(test)], agreed, None),
            ("chosen on trial, test sentences not read before", [], chosen, trial),
        ]
        for name, texts, choice, known in ways if key == "transformer" else ways[:1]:
            begun = time.process_time()
            found = runs.learn_alignment(model, texts, choice=choice, gold=known)
            cpu_s = time.process_time() - begun
            runs.save_choice(model, found.choice, {}, learnt=found.model)
            trial_aer = 100 * found.errors.aer if found.errors else None
            rows.append(
                {"attention of": MODELS[key].name, "way": name, "pairs": found.num_pairs, "cpu_s": cpu_s}
                | {"trial": trial_aer, **percent(list(runs.align(model, texts_of(test))))}
            )
            print(rows[-1], flush=True)
    rows.append(without_attention())
    return {"rows": rows, **environment()}


def without_attention() -> dict[str, Any]:
    """Learn lexicon and jumps alone: every word is expected alike."""
    trial, test = gold("trial"), gold("test")
    texts = [*texts_of(trial), *texts_of(test), *training_pairs(is_reverse=False, number=None)]
    lines = [Line(one, other, torch.ones(len(other), len(one)).half()) for one, other in map(words_of, texts)]
    begun = time.process_time()
    found = learn(lines)
    cpu_s = time.process_time() - begun
    agreement = [each.float() for each in found.agreement(lines[: len(trial) + len(test)])]

    def links(threshold: float, split: slice) -> list[Links]:
        return [links_above(each, threshold) for each in agreement[split]]

    first, rest = slice(len(trial)), slice(len(trial), None)
    best = min(THRESHOLDS, key=lambda threshold: count_errors(links(threshold, first), trial).aer)
    return {
        "attention of": "none",
        "way": "threshold chosen on trial",
        "pairs": len(lines),
        "cpu_s": cpu_s,
        "trial": 100 * count_errors(links(best, first), trial).aer,
        **percent(links(best, rest)),
    }


def words_of(pair: tuple[str, str]) -> tuple[list[str], list[str]]:
    """Return the words of both sides."""
    return pair[0].split(), pair[1].split()


def render(values: dict[str, Any]) -> str:
    """Return the page of results."""
    parts = [
        "# Word alignment: Hansards English-French, 447 test sentences\n",
        "AER, precision, recall in percent. What attention reads while a word is predicted is where the model expects "
        "it to come from, before it knows which word it is. Aligners are made for the question, and do better than "
        "attention alone; a lexicon learnt on top of it (`heedful align --learn`) knows both.\n",
    ]
    figures = ["aer", "precision", "recall"]
    sections: list[tuple[str, str, list[str]]] = [
        ("rivals", "Aligners trained on the same 80,000 pairs, and the diagonal", ["system", "way", *figures]),
        (
            "learnt",
            "Learnt on top of attention, from the same pairs",
            ["attention of", "way", "pairs", "cpu_s", "trial", *figures],
        ),
        *((key, model.name, ["heads", "setting", "trial", *figures]) for key, model in MODELS.items()),
        ("both", "Transformers of both directions together", ["heads", "setting", "trial", *figures]),
        ("published", "Published alignments (1.1 million pairs)", ["system", "way", "published", *figures]),
    ]
    for key, title, header in sections:
        if key in values:
            rows = [[_cell(row[column]) for column in header] for row in values[key]["rows"]]
            parts += [f"## {title}\n", table([HEADINGS.get(name, name) for name in header], rows)]
            parts += _about(values[key])
    return "\n".join(parts)


def _cell(value: Any) -> Any:
    return f"{value:.2f}" if isinstance(value, float) else "" if value is None else value


def _about(part: dict[str, Any]) -> list[str]:
    lines = []
    if "scores" in part:
        scores = ", ".join(f"{name} {value:.2f}" for name, value in part["scores"].items())
        lines.append(
            f"`{part['command']}`: {part['parameters']:,} parameters, {part['minutes']:.0f} minutes, "
            f"{part['updates']:,} updates, {part['threads']} threads; on the test sentences {scores}. Without gold the "
            f"head was chosen whose two views agree most ({100 * part['agreement']:.1f} % of their links)."
        )
    return [*lines, footer(part)]


def main() -> None:
    """Fill ``results/alignment`` part by part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--again", action="store_true", help="do anew what stands in the table")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="for a try")
    parser.add_argument("--render", action="store_true", help="write the page again from the figures that are there")
    arguments = parser.parse_args()
    data_folder()
    values = read_results("alignment")
    steps: dict[str, Callable[[], dict[str, Any]]] = {
        "published": lambda: published() | environment(),
        "rivals": lambda: rivals() | environment(),
        **{key: lambda key=key: measure(key, arguments.settings) for key in MODELS},
        "both": lambda: both(arguments.settings),
        "learnt": lambda: learnt(arguments.settings),
    }
    for name in () if arguments.render else arguments.only:
        if name in values and not arguments.again and not arguments.settings:
            continue
        if name in MODELS and (arguments.again or arguments.settings):
            forget(run_name(name, arguments.settings))
        part = steps[name]()
        for row in part["rows"]:
            print(f"{name}: {row}", flush=True)
        if not arguments.settings:
            values[name] = part
            write_results("alignment", values, render(values))
    if arguments.render:
        write_results("alignment", values, render(values))


if __name__ == "__main__":
    main()
