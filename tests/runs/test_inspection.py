"""Looking inside a trained model: every way out, and what is asked wrongly."""

import io
import json
import re
import shutil
import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from tests.cli.test_commands import Terminal, run  # noqa: F401 (a fixture)
from tests.runs.samples import reversal

from heedful import runs
from heedful.analysis.lens import Lens
from heedful.analysis.lens_selection import Selection
from heedful.core.errors import ConfigError
from heedful.core.weights import model_tensors
from heedful.runs.head_names import parse_heads
from heedful.runs.loaded import LoadedModel
from heedful.training import SilentReporter, read_history

SITES = ["encoder.layers.0.self_attention", "decoder.layers.0.self_attention", "decoder.layers.0.cross_attention"]


@pytest.fixture(scope="module")
def model(reverser: Path) -> LoadedModel:
    return runs.load(reverser)


@pytest.fixture(scope="module")
def seen(model: LoadedModel) -> runs.Inspection:
    return model.inspect("abcd", silent=["cross.0:1", "cross.0:0,cross.0:1"])


@pytest.fixture(scope="module")
def without_attention(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    config = reversal(folder, max_steps=1, validate_every=1)
    config["model"] = {"kind": "recurrent", "embedding_dim": 8, "hidden_dim": 8, "tied_embeddings": "none"}
    return runs.train(config, folder / "run", reporter=SilentReporter()).path


def test_the_answer_is_the_model_s_own_unless_one_is_given(model: LoadedModel, seen: runs.Inspection) -> None:
    (view,) = seen.lens.views
    assert (view.source_text, view.target_text, view.is_forced) == ("abcd", "dcba", False)
    forced = model.inspect("abcd", "ab", with_causes=False).lens.views[0]
    assert (forced.target_text, forced.is_forced) == ("ab", True)
    assert forced.sides["target_input"].pieces == ("<s>", "a", "b")


def test_heads_are_silenced_for_real(model: LoadedModel, seen: runs.Inspection) -> None:
    one, all_, *rest = seen.lens.views[0].silenced
    assert [(each.path, each.head) for each in one.heads] == [(SITES[2], 1)]
    assert len(all_.heads) == 2 and rest
    assert all_.text != "dcba"  # without any cross-attention nothing is known of the source
    assert seen.silence([(SITES[2], 0), (SITES[2], 1)]) == all_
    assert seen.silence([]).text == "dcba"
    with pytest.raises(ConfigError, match="has no head 9: its heads are 0 to 1"):
        seen.silence([(SITES[2], 9)])


def test_two_models_stand_side_by_side(model: LoadedModel, reverser: Path) -> None:
    both = model.inspect("ab", other=reverser / "bundle", with_causes=False).lens
    assert [(each.name, each.target_text) for each in both.views] == [("run", "ba"), ("run (2)", "ba")]
    assert Lens.from_values(both.to_values()) == both


def test_the_page_stands_alone_and_nothing_breaks_out_of_it(model: LoadedModel) -> None:
    page = model.inspect("ab</script><script>alert(1)</script>\u202e\x1b", with_causes=False).to_html()
    assert page.count("<script") == 2 and page.isascii() is False
    assert "alert(1)</script>" not in page and "\u202e" not in page and "\x1b" not in page
    outside = re.findall(r"https?://[^\s\"']+", page)
    assert set(outside) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'; script-src 'sha256-" in page


def test_every_way_out(run: Terminal, reverser: Path, tmp_path: Path) -> None:  # noqa: F811
    names = {each: tmp_path / f"lens.{each}" for each in ("html", "json", "svg", "png")}
    options = [word for name, path in names.items() for word in (f"--{name}", path)]
    assert run("inspect", reverser, "abcd", "--head", 1, "--silence", "cross.0:0", *options) == 0
    lines = run.out.split("\n")
    assert lines[0] == "abcd → dcba" and lines[1] == "attention weights, cross, layer 0, head 1"
    assert sum("▏" in line for line in lines) == 5
    assert lines[-2].startswith(f"without {SITES[2]}:0: ")
    lens = Lens.from_values(json.loads(names["json"].read_text()))
    assert lens.views[0].target_text == "dcba"
    assert lens.to_json().replace("<", "\\u003c") in names["html"].read_text("utf-8")
    texts = [each.text for each in ElementTree.parse(names["svg"]).iter("{http://www.w3.org/2000/svg}text")]
    assert {"a", "b", "c", "d", "</s>", "attention weights, cross, layer 0, head 1"} <= set(texts)
    width, height = struct.unpack(">II", names["png"].read_bytes()[16:24])
    assert width > 300 and height > 300


def svg_texts(path: Path) -> list[str | None]:
    return [each.text for each in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def test_a_picture_of_all_heads_names_each_and_keeps_the_choice(run: Terminal, reverser: Path, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "heads.svg"
    assert run("inspect", reverser, "abcd", "--picture", "heads", "--svg", file) == 0
    texts = svg_texts(file)
    assert [each for each in texts if each and ":" in each] == ["cross 0:0", "cross 0:1"]
    # The words of rows stand once, at the left; those of columns under each head of the last layer.
    assert texts.count("</s>") == 3
    assert run("inspect", reverser, "abcd", "--kind", "encoder", "--layer", 0, "--picture", "heads", "--svg", file) == 0
    assert "encoder 0:1" in svg_texts(file)


def test_lines_are_as_dark_and_wide_as_the_weights(seen: runs.Inspection, tmp_path: Path) -> None:
    file = tmp_path / "lines.svg"
    seen.save_picture(file, "svg", Selection(head=1), "lines")
    values = seen.select(Selection(head=1)).values
    assert sorted(each for each in svg_texts(file) if each) == sorted(
        [*"abcd", "</s>", *"abcd", "</s>", "attention weights, cross, layer 0, head 1"]
    )
    styles = [each.get("style") or "" for each in ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}path")]
    widths = [float(style.split("stroke-width:")[1].split(";")[0]) for style in styles if "stroke-width" in style]
    shares = (values / values.max()).flatten().sort().values
    shares = shares[shares > 0]
    torch.testing.assert_close(torch.tensor(widths[-len(shares) :]), 0.3 + 1.5 * shares, rtol=0, atol=1e-3)


def test_the_terminal_shows_other_measures_and_words(seen: runs.Inspection) -> None:
    file = io.StringIO()
    seen.print(Selection(kind="encoder", measure="rollout", has_words=True), file)
    assert "attention rollout, encoder, layer 0, all heads" in file.getvalue() and "\x1b" not in file.getvalue()
    assert "\nabcd ▏" in file.getvalue()


def test_a_checkpoint_is_the_model_as_it_was_at_its_step(run: Terminal, reverser: Path, tmp_path: Path) -> None:  # noqa: F811
    """That of the best step has the bundle's weights, to the bit; an earlier one stands beside it on a page."""
    places = {each: reverser / "checkpoints" / f"step-{each:08d}" for each in (140, 280)}
    best = next(each["step"] for each in reversed(read_history(reverser / "history.jsonl")) if each.get("is_best"))
    tensors = {step: model_tensors(runs.load(place).model) for step, place in places.items()}
    for name, tensor in model_tensors(runs.load(reverser).model).items():
        assert torch.equal(tensor, tensors[best][name]), name
    assert any(not torch.equal(tensor, tensors[140][name]) for name, tensor in tensors[280].items())
    raw = runs.load(places[280], settings=['training.averaging={kind="none"}']).model
    assert any(not torch.equal(tensor, tensors[280][name]) for name, tensor in model_tensors(raw).items())
    assert run("inspect", places[140], "abcd", "--with", places[280], "--json", tmp_path / "both.json") == 0
    lens = Lens.from_values(json.loads((tmp_path / "both.json").read_text()))
    assert [each.name for each in lens.views] == ["run step-00000140", "run step-00000280"]
    assert lens.views[1].target_text == "dcba"


def test_what_is_no_whole_checkpoint_is_told(run: Terminal, reverser: Path, tmp_path: Path) -> None:  # noqa: F811
    copy = tmp_path / "run"
    shutil.copytree(reverser, copy)
    last = copy / "checkpoints" / "step-00000280"
    assert run("inspect", copy / "checkpoints" / "step-00000007", "ab") == 1
    assert "step-00000007: no such checkpoint. Those that the run kept: step-00000140, step-00000280." in run.err
    assert run("info", last) == 1
    assert "step-00000280: a checkpoint, which has the weights alone. Name the run or its bundle here" in run.err
    averages = (last / "averages.safetensors").read_bytes()
    (last / "averages.safetensors").write_bytes((copy / "checkpoints/step-00000280/optimizer.safetensors").read_bytes())
    assert run("inspect", last, "ab") == 1
    assert "are not those of `training.averaging`" in run.err
    (last / "averages.safetensors").write_bytes(averages[:-9])
    assert run("inspect", last, "ab") == 1
    assert "step-00000280: this checkpoint is damaged" in run.err and run.out == ""
    shutil.rmtree(copy / "bundle")
    assert run("inspect", last, "ab") == 1
    assert "neither a run with a bundle nor a bundle" in run.err


def test_a_notebook_s_widget_answers(seen: runs.Inspection) -> None:
    pytest.importorskip("anywidget")
    widget = seen.widget()
    assert Lens.from_values(widget.lens) == seen.lens and "export default" in widget._esm
    sent: list[dict[str, object]] = []
    widget.send = sent.append
    for heads in ([[SITES[2], 0], [SITES[2], 1]], [[SITES[2], 9]], "nonsense"):
        widget._handle_custom_msg({"id": "a", "view": 0, "heads": heads}, [])
    assert sent[0] == {"id": "a", "answer": seen.lens.views[0].silenced[1].model_dump(mode="json")}
    assert "has no head 9" in str(sent[1]["error"]) and sent[2]["error"]

    def fail(heads: object, view: int) -> None:
        raise RuntimeError("out of memory")

    widget._silence = fail
    widget._handle_custom_msg({"id": "b", "view": 0, "heads": []}, [])
    assert sent[3] == {"id": "b", "error": "out of memory"}
    bundle = seen._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in (bundle[0] if isinstance(bundle, tuple) else bundle)


def test_without_the_extra_a_notebook_gets_the_page(seen: runs.Inspection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert seen._repr_mimebundle_() == {
        "text/plain": "Inspection('abcd' -> 'dcba', 3 attentions)",
        "text/html": seen._repr_html_(),
    }
    with pytest.raises(ConfigError, match=r"pip install 'heedful\[notebook\]'"):
        seen.widget()


def test_a_notebook_gets_a_page_in_a_frame(seen: runs.Inspection) -> None:
    html = seen._repr_html_()
    assert html.startswith('<iframe title="Attention of dcba" sandbox="allow-scripts"') and html.count("<") == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["  "], 1, "The source is blank, and a blank line never meets a model. Give it at least a word."),
        (["ab", "--layer", "4"], 2, "`--layer` is 4, but cross attention has heads in layers 0."),
        (["ab", "--kind", "pooling"], 2, "`--kind` is `pooling`, which this model has not."),
        (["ab", "--silence", "cross.0.1"], 2, "`cross.0.1` names no head. Write kind, layer and head"),
        (["ab", "--silence", "cros.0:1"], 2, "This model has no attention `cros.0`. Did you mean `cross.0`"),
        (["ab", "--silence", "cross.0:2"], 2, f"`{SITES[2]}` has no head 2: its heads are 0 to 1."),
        (["ab", "--with", "nowhere"], 1, "nowhere: no such folder."),
        (["ab", "--silence", "cross.0:" + "9" * 5000], 2, "names no head."),
        (["ab", "--measure", "rollout", "--head", "1"], 2, "A rollout is of all heads together, so `--head` does not"),
        (["ab", "--picture", "heads", "--head", "1"], 2, "A picture of all heads has no place for `--head`"),
        (["ab", "--picture", "heads", "--layer", "4"], 2, "`--layer` is 4, but cross attention has heads in layers 0."),
        (["ab", "--svg", "missing/x.svg"], 2, "missing/x.svg: there is no folder missing. Make it first."),
        (["ab", "--json", "x.html"], 2, "x.html: named twice."),
    ],
)  # fmt: skip
def test_what_is_asked_wrongly_is_told_and_nothing_written(
    run: Terminal, reverser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,  # noqa: F811
    arguments: list[str], code: int, message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run("inspect", reverser, *arguments, "--html", "x.html") == code
    assert message in run.err and run.out == ""
    assert not list(tmp_path.glob("x.*"))


def test_a_model_without_attention_says_so(run: Terminal, without_attention: Path) -> None:  # noqa: F811
    assert run("inspect", without_attention, "ab") == 1
    assert "this model attends to nothing, so there is nothing to look into. Its kind is `recurrent`" in run.err
    assert 'train one that attends: `model.attention.kind="additive"`' in run.err


def test_a_long_line_is_cut_and_told(model: LoadedModel, capsys: pytest.CaptureFixture[str]) -> None:
    view = model.inspect("abcd" * 5, with_causes=False).lens.views[0]
    assert "cut (line 1); the longest had 20" in capsys.readouterr().err
    assert len(view.sides["source"].pieces) == 13 and any("cut" in each for each in view.notes)


def test_a_terminal_shows_no_more_than_fits(seen: runs.Inspection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.runs.inspection.MOST_SHOWN", 2)
    file = io.StringIO()
    seen.print(file=file)
    assert file.getvalue().count("▏") == 2
    assert "The first 2 of 5 rows and 5 columns; a page (--html) shows all." in file.getvalue()


def test_heads_have_short_and_long_names(model: LoadedModel) -> None:
    sites = model.model.attention_sites()
    assert parse_heads(f"encoder.0:1, {SITES[1]}:0", sites) == [(SITES[0], 1), (SITES[1], 0)]
