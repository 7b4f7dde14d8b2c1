"""What is wrong with a run's folder is told in one message, and what a command was asked wrongly changes nothing."""

import hashlib
import json
import re
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from heedful import load, resume
from heedful.core.errors import BundleError, ConfigError, DataError, HeedfulError
from heedful.runs import info
from heedful.runs.training_run import CONFIG, RUN_LOCK, train
from heedful.tasks import write_bundle
from heedful.tasks.weights import save_weights
from heedful.training import RunFolder, SilentReporter, read_history
from heedful.training.checkpoint import Checkpoints


@pytest.fixture
def run(reverser: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(reverser, tmp_path / "run"))


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("model.model_dim=16", BundleError),
        ("training.metric=nonsense", ConfigError),
        ("data.train.path=nowhere.tsv", DataError),
        ('training.averaging={kind="last"}', BundleError),
    ],
)
def test_a_setting_that_does_not_fit_leaves_the_run_as_it_was(
    run: Path, setting: str, kind: type[HeedfulError]
) -> None:
    before = (run / CONFIG).read_bytes()
    with pytest.raises(kind):
        resume(run, settings=[setting], reporter=SilentReporter())
    assert (run / CONFIG).read_bytes() == before


def test_a_run_that_another_process_prepares_is_left_alone(run: Path) -> None:
    before = (run / CONFIG).read_bytes()
    with RunFolder(run).lock(RUN_LOCK), pytest.raises(BundleError, match="another process"):
        resume(run, settings=["training.max_steps=1"], reporter=SilentReporter())
    assert (run / CONFIG).read_bytes() == before


def test_a_folder_that_cannot_be_made(run: Path) -> None:
    for out, message in ((run / CONFIG / "x", "cannot be made"), (run / CONFIG, "already there")):
        with pytest.raises(BundleError, match=message):
            train(run / CONFIG, out, reporter=SilentReporter())


DEEP = "[" * 100_000


def _empty(file: Path) -> None:
    save_file({}, file)


def _of(text: str) -> Callable[[Path], None]:
    return lambda file: void(file.write_text(text, "utf-8"))


def void(_: object) -> None:
    """Forget a value."""


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("data.json", _of("{"), r"data\.json: damaged.* remove this file and resume"),
        ("data.json", _of("[]"), r"data\.json: damaged"),
        ("data.json", _of(DEEP), r"data\.json: damaged"),
        ("history.jsonl", _of("3\n"), r"history\.jsonl: damaged"),
        ("state.json", _of(DEEP), "damaged .*Remove the folder to go on from the one before it"),
        ("random.json", _of(DEEP), "damaged .*Remove the folder to go on from the one before it"),
        ("history.jsonl", _of("no record\n"), r"history\.jsonl: damaged.*Remove the file"),
        ("state.json", _of("[1]"), "damaged .*Remove the folder to go on from the one before it"),
        ("random.json", _of("[1]"), "damaged .*Remove the folder to go on from the one before it"),
        ("random.json", _of('["x"]'), r"random\.json is damaged"),
        ("optimizer.safetensors", _empty, r"not those of `training\.optimizer`"),
        ("averages.safetensors", _empty, r"not those of `training\.optimizer` and `training\.averaging`"),
    ],
)
def test_a_damaged_file_of_a_run_is_named(run: Path, name: str, damage: Callable[[Path], None], message: str) -> None:
    last = Checkpoints(run / "checkpoints").last()
    assert last is not None
    damage(last / name if (last / name).exists() else run / name)
    with pytest.raises(BundleError, match=message):
        resume(run, reporter=SilentReporter())


def test_a_history_nested_too_deeply_is_damage(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text(DEEP + "\n")
    with pytest.raises(BundleError, match=r"history\.jsonl: damaged"):
        read_history(tmp_path / "history.jsonl")


def agree(bundle: Path) -> None:
    """Let the manifest say what the files hold: damage that no checksum finds."""
    manifest = json.loads((bundle / "manifest.json").read_text("utf-8"))
    for name, entry in manifest["files"].items():
        content = (bundle / name).read_bytes()
        entry.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    (bundle / "manifest.json").write_text(json.dumps(manifest), "utf-8")


@pytest.mark.parametrize("text", ["", "[1, 2]", "{}", "garbage", "[" * 100_000])
@pytest.mark.parametrize("name", ["config.toml", "metrics.json", "model.safetensors"])
def test_a_bundle_whose_files_hold_something_else(run: Path, name: str, text: str) -> None:
    (run / "bundle" / name).write_text(text, "utf-8")
    agree(run / "bundle")
    if (name, text) == ("metrics.json", "{}"):
        assert info(run).scores == {}
        return
    with pytest.raises(BundleError, match=name.replace(".", r"\.")):
        info(run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensor: tensor * float("nan"), "numbers that are not finite"),
        (lambda tensor: tensor.to(torch.int64), r"is of type torch\.int64"),
    ],
)
def test_weights_that_no_training_leaves(
    run: Path, change: Callable[[torch.Tensor], torch.Tensor], message: str
) -> None:
    file = run / "bundle" / "model.safetensors"
    save_file({name: change(tensor) for name, tensor in load_file(file).items()}, file)
    agree(run / "bundle")
    with pytest.raises(BundleError, match=message):
        load(run)


def test_a_bundle_of_another_version_is_not_the_users_mistake(run: Path) -> None:
    file = run / "bundle" / CONFIG
    file.write_text(file.read_text("utf-8").replace("[model]", "[model]\nnovelty = 3"), "utf-8")
    agree(run / "bundle")
    with pytest.raises(BundleError, match=r"`model\.novelty` is not a known key(.|\n)*wrote the bundle; this is"):
        load(run)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("config.toml", "runtime = 3\n", r"config\.toml: `runtime` must be a table\.\nHeedful .* wrote the bundle"),
        ("config.toml", "text = 3\n", r"config\.toml: `text` is 3, but must be a table"),
        ("codec.json", DEEP, r"codec\.json: damaged, not valid JSON"),
    ],
)
def test_what_no_bundle_holds_is_told_in_words(run: Path, name: str, text: str, message: str) -> None:
    file = run / "bundle" / name
    key = text.split()[0] if name == CONFIG else ""
    tables = re.sub(rf"(?ms)^\[{key}(\.\w+)?\]\n.*?(?=^\[|\Z)", "", file.read_text("utf-8")) if key else ""
    file.write_text(text + tables, "utf-8")
    agree(run / "bundle")
    with pytest.raises(BundleError, match=message):
        load(run)
    if key:
        with pytest.raises(BundleError, match=message):
            train(run / CONFIG, run / "x", settings=[f"init_from={run}"], reporter=SilentReporter())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.toml", 'task = "translation"\ntraining = 3\n[model]\n'),
        ("metrics.json", '{"dev": 3}'),
        ("metrics.json", '{"dev": {"cer": 3}}'),
        ("metrics.json", '{"data": 3}'),
    ],
)
def test_facts_of_another_kind_are_damage(run: Path, name: str, text: str) -> None:
    (run / "bundle" / name).write_text(text, "utf-8")
    agree(run / "bundle")
    with pytest.raises(BundleError, match=rf"{name}: damaged"):
        info(run)


def test_a_run_before_its_first_validation(run: Path) -> None:
    shutil.rmtree(run / "bundle")
    with pytest.raises(BundleError, match="has not finished its first validation: `heedful resume` goes on"):
        load(run)


def test_fine_tuning_with_another_tokenizer_is_refused(run: Path, tmp_path: Path) -> None:
    for setting, key in (("text.source.kind=byte", r"text\.source\.kind"), ("text.is_joint=false", r"text\.is_joint")):
        with pytest.raises(ConfigError, match=f"`{key}` is .* but `init_from` brings its tokenizer"):
            train(run / CONFIG, tmp_path / "x", settings=[f"init_from={run}", setting], reporter=SilentReporter())


@pytest.mark.parametrize("text", ["a", "\n\n\n", "abcd"])
def test_a_language_model_of_next_to_nothing_still_gets_its_report(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.txt").write_text(text, "utf-8")
    (tmp_path / "dev.txt").write_text("\n", "utf-8")
    source = {"kind": "lines", "unit": "stream"}
    config = {
        "task": "language_modelling",
        "context": 5,
        "data": {name: {**source, "path": str(tmp_path / f"{name}.txt")} for name in ("train", "dev")},
        "text": {"source": {"kind": "character"}},
        "model": {
            "kind": "transformer_language_model",
            "model_dim": 6,
            "num_heads": 2,
            "inner_dim": 7,
            "num_layers": 1,
        },
        "training": {"max_steps": 1, "has_tensorboard": False},
        "runtime": {"dtype": "float32", "threads": 1, "device": "cpu"},
    }
    out = train(config, tmp_path / "run", reporter=SilentReporter()).path
    assert (out / "report.html").is_file()


def test_a_label_that_was_never_trained_on_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("text\tlabel\na\tx\nb\ty\n", "utf-8")
    (tmp_path / "dev.tsv").write_text("text\tlabel\na\tx\nb\tz\n", "utf-8")
    source = {"kind": "tsv", "source": "text", "label": "label"}
    encoder = {"kind": "convolutional", "embedding_dim": 5, "filter_widths": [3], "num_filters": 2}
    config = {
        "task": "classification",
        "data": {name: {**source, "path": str(tmp_path / f"{name}.tsv")} for name in ("train", "dev")},
        "text": {"source": {"kind": "word"}},
        "model": {"kind": "classifier", "encoder": encoder},
        "training": {"max_steps": 1, "has_tensorboard": False},
    }
    with pytest.raises(DataError, match=r"dev\.tsv:3: the label 'z' is not one of the model's"):
        train(config, tmp_path / "run", reporter=SilentReporter())


def test_a_bundle_on_a_full_disk_is_told_in_words(reverser: Path, tmp_path: Path) -> None:
    model = load(reverser).model
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(BundleError, match=r"bundle: the bundle could not be written: File too large"):
            write_bundle(tmp_path / "bundle", lambda folder: save_weights(model, folder / "model.safetensors"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert list(tmp_path.iterdir()) == []
