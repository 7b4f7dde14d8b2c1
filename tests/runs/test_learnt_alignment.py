"""Learning to align on top of attention: by command and in Python, kept in the bundle, with data that fail."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.test_commands import Terminal, run
from tests.runs.test_alignments import gold, model

from heedful import runs
from heedful.core.errors import BundleError, DataError
from heedful.runs.alignment_kept import choice_of
from heedful.runs.training_run import RUN_LOCK
from heedful.tasks import open_bundle
from heedful.training import RunFolder

__all__ = ["gold", "model", "run"]


def test_learning_keeps_a_lexicon_that_aligns(run: Terminal, model: runs.LoadedModel, gold: Path) -> None:
    folder = gold.parent
    rng = random.Random(1)
    letters = "abcd"
    lines = [rng.sample(letters, rng.randint(1, 4)) for _ in range(60)]
    (folder / "s.txt").write_text("".join(f"{' '.join(line)}\n" for line in lines), "utf-8")
    (folder / "t.txt").write_text("".join(f"{' '.join(reversed(line))}\n" for line in lines), "utf-8")
    files = [folder / "s.txt", folder / "t.txt"]
    assert run("align", model.path, *files, "--learn", "--max-pairs", "60") == 0
    turned = [" ".join(f"{each}-{len(line) - 1 - each}" for each in range(len(line))) for line in lines]
    right = sum(one == other for one, other in zip(run.out.splitlines(), turned, strict=True))
    assert (
        right > 55 and "learnt from 60 pairs; learnt over heads decoder." in run.err and "links above 0.35" in run.err
    )
    links = run.out
    assert run("align", model.path, *files) == 0
    assert run.out == links and "no way to align was chosen" not in run.err
    assert set(open_bundle(model.path).manifest["files"]) >= {"alignment.json", "lexicon.safetensors"}
    assert json.loads((model.path / "alignment.json").read_text())["chosen_by"]["pairs"] == 60
    # Another choice takes what was learnt over other heads away.
    assert run("align", model.path, "--choose", gold) == 0
    assert not (model.path / "lexicon.safetensors").exists() and choice_of(model).learnt is None
    assert "the lexicon was learnt over other heads, so it was removed. Learn again with" in run.err


def test_learning_chooses_its_threshold_on_gold(run: Terminal, model: runs.LoadedModel, gold: Path) -> None:
    assert run("align", model.path, "--learn", "--choose", gold, "--max-pairs", "20") == 0
    saved = json.loads((model.path / "alignment.json").read_text())
    assert saved["chosen_by"]["gold"] == "gold.tsv" and saved["chosen_by"]["pairs"] == 20
    assert run("align", "--evaluate", gold, model.path, "--json") == 0
    assert json.loads(run.out)["aer"] == saved["chosen_by"]["aer"]
    assert run("predict", model.path, "-", "--alignments", text="ab\n\n") == 0
    assert run.out.splitlines() == ["ba\t0-0", "\t"]


def test_a_lost_or_damaged_lexicon_is_told(model: runs.LoadedModel) -> None:
    found = runs.learn_alignment(model, [("ab c", "c ba"), ("c", "c")], max_pairs=2)
    assert found.num_pairs == 2 and found.errors is None
    runs.save_choice(model, found.choice, {}, learnt=found.model)
    file = model.path / "lexicon.safetensors"
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(BundleError, match=r"lexicon.safetensors: damaged: not safetensors .*Learn again"):
        list(runs.align(model, [("ab", "ba")]))
    file.unlink()
    with pytest.raises(BundleError, match=r"lexicon.safetensors: missing. Learn again with `heedful align"):
        list(runs.align(model, [("ab", "ba")]))


def test_learning_without_the_training_pairs(
    run: Terminal, model: runs.LoadedModel, gold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = gold.parent
    train = model.config.task.data.train.model_copy(update={"path": str(folder / "gone.tsv")})
    data = model.config.task.data.model_copy(update={"train": train})
    model.config = replace(model.config, task=model.config.task.model_copy(update={"data": data}))
    found = runs.learn_alignment(model, [("ab c", "c ba")])
    assert found.num_pairs == 1
    with pytest.raises(DataError, match=r"training pairs cannot be read: .*gone.tsv.*Name two files"):
        runs.learn_alignment(model)
    with pytest.raises(DataError, match="training pairs cannot be read"):
        runs.learn_alignment(model, [("", "a"), ("b", " ")])
    before = open_bundle(model.path).manifest
    (folder / "s.txt").write_text("\n", "utf-8")
    files = [folder / "s.txt", folder / "s.txt"]
    for arguments, message in (
        (["align", model.path, *files, "--learn", "--reverse", model.path], "Leave out `--reverse`"),
        (["align", model.path, "--learn", "--agree"], "`--agree` chooses on texts, RUN SOURCE TARGET"),
        (["align", model.path, "--learn", "--evaluate", gold], "`--evaluate` and `--learn` are different"),
    ):
        assert run(*arguments) == 2
        assert message in run.err and run.out == ""
    assert open_bundle(model.path).manifest == before


def test_heads_chosen_before_are_learnt_over_and_told(run: Terminal, model: runs.LoadedModel, gold: Path) -> None:
    assert run("align", model.path, "--choose", gold) == 0
    chosen = choice_of(model)
    assert run("align", model.path, "--learn", "--max-pairs", "20") == 0
    saved = json.loads((model.path / "alignment.json").read_text())
    assert choice_of(model) == chosen.model_copy(update={"learnt": 0.35})
    assert saved["chosen_by"]["gold"] == "gold.tsv" and saved["chosen_by"]["pairs"] == 20
    # With a model of the other direction, attention alone is asked.
    assert run("align", "--evaluate", gold, model.path, "--reverse", model.path, "--json") == 0
    assert json.loads(run.out)["aer"] == 0


def test_what_cannot_be_kept_is_told_before_anything_is_learnt(
    run: Terminal, reverser: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.runs.learnt_alignment.learn", None)
    checkpoint = next(iter(sorted((reverser / "checkpoints").iterdir())))
    assert run("align", checkpoint, "--learn") == 1
    assert "a checkpoint, which has the weights alone" in run.err
    with RunFolder(reverser).lock(RUN_LOCK):
        assert run("align", reverser, "--learn") == 1
    assert "is training here" in run.err


def test_training_pairs_that_end_in_a_fault_are_not_learnt_from(
    model: runs.LoadedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.tsv"
    broken.write_text("source\ttarget\nab c\tc ba\nab\n", "utf-8")
    train = model.config.task.data.train.model_copy(
        update={"path": str(broken), "source": "source", "target": "target"}
    )
    data = model.config.task.data.model_copy(update={"train": train})
    model.config = replace(model.config, task=model.config.task.model_copy(update={"data": data}))
    with pytest.raises(DataError, match=r"training pairs cannot be read: .*broken.tsv:3"):
        runs.learn_alignment(model)
    found = runs.learn_alignment(model, [("ab c", "c ba")])
    assert found.num_pairs == 1 and "learning from the 1 given pairs alone" in capsys.readouterr().err


def test_so_many_training_pairs_are_drawn_as_are_wanted(
    model: runs.LoadedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "many.tsv"
    rows = [*(f"{'a ' * number}b\tb" for number in range(80)), f"{'a ' * 101}\tb", "\tb"]
    file.write_text("source\ttarget\n" + "\n".join(rows) + "\n", "utf-8")
    train = model.config.task.data.train.model_copy(update={"path": str(file), "source": "source", "target": "target"})
    data = model.config.task.data.model_copy(update={"train": train})
    model.config = replace(model.config, task=model.config.task.model_copy(update={"data": data}))
    assert runs.learn_alignment(model).num_pairs == 80
    assert "lines have 1.0 words on one side" in capsys.readouterr().err
    assert runs.learn_alignment(model, [("a", "b"), ("", "b")], max_pairs=9).num_pairs == 9
