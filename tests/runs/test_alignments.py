"""Choosing how to align, keeping it in the bundle, using it: by command and in Python."""

import json
import shutil
from pathlib import Path

import pytest
from tests.cli.test_commands import Terminal, run

from heedful import runs
from heedful.core.errors import BundleError, ConfigError, DataError, RequestError
from heedful.runs.alignment_kept import choice_of, saved_choice
from heedful.runs.training_run import RUN_LOCK
from heedful.tasks import open_bundle
from heedful.training import RunFolder

__all__ = ["run"]

HEADER = "src\ttgt\tsure\tpossible\n"


@pytest.fixture
def model(reverser: Path, tmp_path: Path) -> runs.LoadedModel:
    shutil.copytree(reverser / "bundle", tmp_path / "model")
    return runs.load(tmp_path / "model")


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    (tmp_path / "gold.tsv").write_text(HEADER + "ab\tba\t0-0\t\nc\tc\t0-0\t\n", "utf-8")
    return tmp_path / "gold.tsv"


def test_a_choice_is_kept_in_the_bundle_and_the_rest_stays(model: runs.LoadedModel, gold: Path) -> None:
    before = open_bundle(model.path).manifest
    tried = runs.choose_alignment(model, runs.read_gold(gold))
    runs.save_choice(model, tried.choice, {"gold": "gold.tsv", **tried.errors.to_values()})
    after = open_bundle(model.path).manifest
    assert set(after["files"]) - set(before["files"]) == {"alignment.json"}
    assert before["files"].items() <= after["files"].items() and after["created"] == before["created"]
    assert saved_choice(model) == choice_of(model) == tried.choice
    runs.save_choice(model, tried.choice, {"gold": "gold.tsv", **tried.errors.to_values()})
    assert open_bundle(model.path).manifest == after
    saved = json.loads((model.path / "alignment.json").read_text())
    assert saved["chosen_by"] == {"gold": "gold.tsv", **tried.errors.to_values()}


def test_a_choice_in_a_run_waits_for_no_trainer(reverser: Path) -> None:
    model = runs.load(reverser)
    with RunFolder(reverser).lock(RUN_LOCK), pytest.raises(BundleError, match="is training here"):
        runs.save_choice(model, choice_of(model), {})
    assert not (reverser / "bundle" / "alignment.json").exists()


def test_a_damaged_choice_is_told(model: runs.LoadedModel) -> None:
    runs.save_choice(model, choice_of(model), {})
    file = model.path / "alignment.json"
    file.write_text(file.read_text().replace('"shift"', '"shifd"'))
    with pytest.raises(BundleError, match=r"alignment.json: damaged: .*shifd.*Choose again"):
        list(runs.align(model, [("ab", "ba")]))


def test_a_choice_of_another_model_is_told(model: runs.LoadedModel) -> None:
    from heedful.analysis.alignment_choice import AlignedHead

    choice = choice_of(model)
    for head, message in (
        (AlignedHead(site="decoder.layers.7.cross_attention", head=0), "no attention .*7.*Did you mean"),
        (AlignedHead(site=choice.heads[0].site, head=2), "has 2 heads, counted from 0, so none is 2"),
    ):
        with pytest.raises(ConfigError, match=message):
            list(runs.align(model, [], choice=choice.model_copy(update={"heads": (head,)})))


def test_alignments_of_predictions_are_those_of_the_texts(model: runs.LoadedModel) -> None:
    sources = ["ab", "", "cab d", "b"]
    plain = list(model.predict(sources, num_best=2))
    aligned = list(runs.align_predictions(model, model.predict(sources, num_best=2), chunk_lines=3))
    assert [each.text for each in aligned] == [each.text for each in plain]
    for each in aligned:
        for candidate in each.candidates:
            (links,) = runs.align(model, [(each.source, candidate.text)])
            assert candidate.alignment == tuple(sorted(links))
    assert aligned[1].candidates[0].alignment == ()
    assert aligned[0].to_values()["candidates"][0]["alignment"] == [[0, 0]]
    assert "alignment" not in plain[0].to_values()["candidates"][0]


def test_two_directions_together(run: Terminal, model: runs.LoadedModel, gold: Path) -> None:
    pairs = [("ab c", "c ba"), ("", "b"), ("cab", "bac")]
    turned = [(target, source) for source, target in pairs]
    both = list(runs.align(model, pairs, reverse=model))
    mirrored = [frozenset((right, left) for left, right in each) for each in runs.align(model, turned, reverse=model)]
    assert both == mirrored and both[2] == {(0, 0)}
    tried = runs.choose_alignment(model, runs.read_gold(gold), reverse=model)
    assert tried.errors.aer == 0
    assert run("align", "--evaluate", gold, model.path, "--reverse", model.path) == 0
    assert "AER 0.00" in run.out


def test_the_command_chooses_without_gold(run: Terminal, model: runs.LoadedModel) -> None:
    (model.path.parent / "s.txt").write_text("ab\nc\n", "utf-8")
    files = [model.path.parent / "s.txt"] * 2
    assert run("align", model.path, *files, "--agree") == 0
    assert run.out == "0-0\n0-0\n" and "the views agree in 100.0% of their links" in run.err
    assert json.loads((model.path / "alignment.json").read_text())["chosen_by"] == {"agreement": 1.0}
    (model.path.parent / "s.txt").write_text("", "utf-8")
    assert run("align", model.path, *files, "--agree") == 1
    assert "no words to choose by" in run.err


def test_the_command_chooses_aligns_and_evaluates(run: Terminal, model: runs.LoadedModel, gold: Path) -> None:
    folder = gold.parent
    (folder / "s.txt").write_text("ab\n\nc\n", "utf-8")
    (folder / "t.txt").write_text("ba\n\nc\n", "utf-8")
    assert run("align", model.path, folder / "s.txt", folder / "t.txt") == 0
    assert run.out == "0-0\n\n0-0\n" and "no way to align was chosen" in run.err
    assert run("align", model.path, "--choose", gold) == 0
    assert run.out == "" and "AER 0.00" in run.err
    assert run("align", model.path, folder / "s.txt", folder / "t.txt", "--json") == 0
    assert run.err == "" and [json.loads(line)["alignment"] for line in run.out.splitlines()] == [
        [[0, 0]],
        [],
        [[0, 0]],
    ]
    assert run("align", "--evaluate", gold, model.path, "--json") == 0
    assert json.loads(run.out)["aer"] == 0
    assert run("align", "--evaluate", gold, text="0-0\n\n") == 0
    assert run.out == "-: AER 33.33, precision 100.00, recall 50.00 (1 links, 2 sure)\n"
    assert run("predict", model.path, folder / "s.txt", "--alignments") == 0
    assert run.out == "ba\t0-0\n\t\nc\t0-0\n"
    assert run("predict", model.path, folder / "s.txt", "--alignments", "--format", "tsv") == 0
    assert [line.split("\t")[3:] for line in run.out.splitlines()] == [["ba", "0-0"], ["", ""], ["c", "0-0"]]


def test_gold_and_links_count_each_from_its_own_first_word(run: Terminal, tmp_path: Path) -> None:
    files = {
        "gold0": "0-1 1p0\n2-2\n",
        "gold1": "1-2 2p1\n3-3\n",
        "links0": "0-1 1-0\n2-2\n",
        "links1": "1-2 2-1\n3-3\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    for gold in "01":
        for links in "01":
            flags = ["--one-based"] * int(gold) + ["--links-one-based"] * int(links)
            assert run("align", "--evaluate", tmp_path / f"gold{gold}", tmp_path / f"links{links}", *flags) == 0
            assert "AER 0.00, precision 100.00, recall 100.00" in run.out and run.err == ""
    assert run("align", "--evaluate", tmp_path / "gold1", tmp_path / "links1") == 0
    told = run.err.splitlines()
    assert "gold1: no link has the word 0" in told[0] and told[0].endswith("say `--one-based`.")
    assert "links1: no link has the word 0" in told[1] and told[1].endswith("say `--links-one-based`.")
    assert run("align", "--evaluate", tmp_path / "gold0", tmp_path / "links0", "--links-one-based") == 1
    assert "links0:1: link 0-1: words were said to count from 1. Leave out `--links-one-based`." in run.err
    assert run("align", "--evaluate", tmp_path / "gold0", tmp_path / "links0", "--one-based") == 1
    assert "gold0:1: link 0-1: words were said to count from 1. Leave out `--one-based`." in run.err


def test_what_is_asked_wrongly_writes_nothing(run: Terminal, model: runs.LoadedModel, gold: Path) -> None:
    folder = gold.parent
    (folder / "s.txt").write_text("ab\nc\n", "utf-8")
    (folder / "t.txt").write_text("ba\n", "utf-8")
    (folder / "links").write_text("0-0\n1-0\n", "utf-8")
    (folder / "ones.tsv").write_text(HEADER + "ab\tba\t1-1\t\n", "utf-8")
    (folder / "plain").write_text("0-0\n", "utf-8")
    (folder / "linkless.tsv").write_text(HEADER + "ab\tba\t\t0-0\n", "utf-8")
    (folder / "blank").write_text("\n\n", "utf-8")
    for arguments, code, message in (
        (["align", model.path, folder / "s.txt"], 2, "Name a run and two files"),
        (["align", model.path, folder / "s.txt", folder / "t.txt"], 1, "t.txt: 1 lines, but"),
        (["align", "--evaluate", gold, folder / "links"], 1, "links:2: link 1-0 (counted from 0) lies outside"),
        (["align", "--evaluate", gold, folder / "links"], 1, "say `--links-one-based`."),
        (["align", "--evaluate", gold, model.path, "--links-one-based"], 2, "`--links-one-based` is for files of"),
        (["align", "--evaluate", gold, folder / "t.txt"], 1, "t.txt:1: `ba` is no link"),
        (["align", "--evaluate", gold, text_of_one_line(folder)], 1, "1 lines, but there are 2 gold ones"),
        (["align", "--evaluate", folder / "ones.tsv", folder / "links"], 1, "say `--one-based`."),
        (["align", model.path, "--choose", folder / "plain"], 1, "come without their texts"),
        (["align", model.path, "--choose", gold, "--split", "dev"], 2, "no set `dev`"),
        (["align", model.path, "--choose", folder / "ones.tsv", "--split", "dev"], 2, "no column `set`, so it has no"),
        (["align", model.path, "--choose", folder / "linkless.tsv"], 1, "hold no sure link"),
        (["align", model.path, "--choose", "-"], 2, "Gold alignments are read twice, so not from standard input"),
        (["align", model.path, "--choose", gold, "--agree"], 2, "`--choose` and `--agree` are different things"),
        (["align", model.path, "--evaluate", gold, "--choose", gold], 2, "`--evaluate` and `--choose` are different"),
        (["align", model.path, "-", "-"], 2, "Standard input can be read only once"),
        (["align", model.path, folder / "blank", folder / "blank", "--agree"], 1, "There are no words to choose by"),
        (["align", model.path, folder / "s.txt", folder / "s.txt", "--one-based"], 2, "are for gold alignments"),
        (["align", "--evaluate", gold, folder / "one", "--reverse", model.path], 2, "only files of alignments"),
        (["align", model.path, "--choose", folder / "none"], 1, "no such file"),
    ):
        assert run(*arguments) == code, arguments
        assert message in run.err and run.out == ""
    assert "alignment.json" not in open_bundle(model.path).manifest["files"]


def text_of_one_line(folder: Path) -> Path:
    (folder / "one").write_text("0-0\n", "utf-8")
    return folder / "one"


def test_files_of_unequal_length_are_refused_before_a_line_is_written(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("a\nb\n")
    (tmp_path / "t").write_text("a\n")
    with pytest.raises(DataError, match=r"t: 1 lines, but .*s has 2"):
        runs.read_pairs(tmp_path / "s", tmp_path / "t")
    with pytest.raises(DataError, match="cannot be read"):
        runs.read_pairs(tmp_path / "s", tmp_path / "nowhere")


def test_a_classifier_aligns_nothing(model: runs.LoadedModel) -> None:
    from tests.analysis.test_reading import task_of

    data = {"train": {"kind": "tsv", "path": "x", "source": "s", "label": "t"}}
    model.task = task_of({"kind": "classifier", "pooling": "attention"}, "classification", data=data)
    with pytest.raises(RequestError, match=r"`classifier`.*need an encoder-decoder"):
        list(runs.align(model, [("a", "b")]))


def test_a_choice_is_not_kept_with_other_weights(model: runs.LoadedModel) -> None:
    choice = choice_of(model)
    model.weights_sha256 = "0" * 64
    with pytest.raises(BundleError, match="has other weights than when it was loaded"):
        runs.save_choice(model, choice, {})
