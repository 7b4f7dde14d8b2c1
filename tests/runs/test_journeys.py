"""From a file of examples to predictions, for each task."""

from pathlib import Path

import pytest
from tests.runs.pruning_samples import Listener
from tests.runs.samples import TINY_TRANSFORMER, reversal, words, write_tsv

import heedful
from heedful import runs
from heedful.core.config import write_toml
from heedful.core.errors import BundleError, ConfigError, RequestError
from heedful.runs.config import parse_run
from heedful.runs.preparation import prepare_fitting
from heedful.tasks.bundle import open_bundle
from heedful.training import SilentReporter


def test_a_model_learns_to_turn_words_around(reverser: Path) -> None:
    model = runs.load(reverser)
    evaluation = model.evaluate("test")
    assert evaluation.scores()["sequence_error"] <= 25
    assert evaluation.scores()["loss"] < 0.2
    assert evaluation.num_lines == 40
    assert [each.text for each in model.predict(["abcd", "", "dca"])] == ["dcba", "", "acd"]


def test_the_bundle_alone_predicts_what_the_run_predicts(reverser: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    (reverser / "bundle").rename(moved)
    try:
        found = [each.text for each in runs.load(moved).predict(words()[:9])]
    finally:
        moved.rename(reverser / "bundle")
    assert found == [each.text for each in runs.load(reverser).predict(words()[:9])]


def test_dev_scores_are_those_of_the_weights_in_the_bundle(reverser: Path) -> None:
    """Validation and bundle both see the averaged weights."""
    written = open_bundle(reverser).metrics()["dev"]
    again = runs.load(reverser).evaluate("dev").scores()
    assert {name: entry["value"] for name, entry in written.items()} == pytest.approx(again, rel=1e-4)


def test_n_best_and_beams(reverser: Path) -> None:
    model = runs.load(reverser)
    (best,) = model.predict(["abca"], num_best=4)
    assert len(best.candidates) == 4
    scores = [each.score for each in best.candidates]
    assert scores == sorted(scores, reverse=True)
    (greedy,) = model.predict(["abca"], beam_size=1)
    assert greedy.text == best.text == "acba"
    with pytest.raises(ConfigError, match="`beam_size` must be at least 1"):
        list(model.predict(["a"], beam_size=0))


def test_a_forced_beginning_is_kept_and_gone_on_from(reverser: Path) -> None:
    model = runs.load(reverser)
    first, second, blank = model.predict(["abcd", "abcd", ""], prefixes=["b", "", "c"], beam_size=1)
    assert first.text.startswith("b") and second.text == "dcba" and blank.text == ""
    forced = next(model.score([("abcd", first.text)]))
    assert first.candidates[0].log_prob == pytest.approx(forced.log_prob, abs=1e-4)
    with pytest.raises(RequestError, match=r"There is no prefix 2\. Give a prefix for each line, blank for nothing"):
        list(model.predict(["abcd", "ab"], prefixes=["a"]))
    with pytest.raises(RequestError, match="There is no line 1"):
        list(model.predict([], prefixes=["a"]))
    with pytest.raises(RequestError, match="line 2: no output can begin with 'az', as the vocabulary lacks"):
        list(model.predict(["abcd", "ab"], prefixes=["a", "az"]))


def test_a_stream_joined_is_the_greedy_prediction(reverser: Path) -> None:
    model = runs.load(reverser)
    for line in [*words()[:7], ""]:
        pieces = list(model.stream(line))
        (whole,) = model.predict([line], beam_size=1)
        assert "".join(pieces) == whole.text and len(pieces) == len(whole.text)


def test_two_streams_at_once_leave_the_model_as_it_was(reverser: Path) -> None:
    model = runs.load(reverser, settings=["runtime.dtype=bfloat16"])
    before = list(model.model.parameters())
    one, other = model.stream("abcd"), model.stream("dcb")
    pairs = list(zip(one, other))  # noqa: B905
    assert ["".join(each) for each in zip(*pairs, strict=True)] == ["dcb", "bcd"]
    assert all(now is then for now, then in zip(model.model.parameters(), before, strict=True))


def test_a_score_is_the_search_s_own(reverser: Path) -> None:
    """Forcing the predicted target through the decoder gives the log-probability that the search gave."""
    model = runs.load(reverser)
    predictions = list(model.predict(words()[:11]))
    forced = list(model.score((each.source, each.text) for each in predictions))
    for prediction, score in zip(predictions, forced, strict=True):
        assert score.log_prob == pytest.approx(prediction.candidates[0].log_prob, abs=1e-4)
        assert sum(each.log_prob for each in score.words) == pytest.approx(score.log_prob, abs=1e-5)


def test_cuts_of_dev_data_are_told_once(tmp_path: Path) -> None:
    listener = Listener()
    config = reversal(tmp_path, max_steps=4, validate_every=2)
    config["text"]["max_source_length"] = 3
    runs.train(config, tmp_path / "run", reporter=listener)
    long = [number for number, word in enumerate(words()[:40], start=2) if len(word) == 4]
    (told,) = [each for each in listener.notes if each.startswith("Warning: dev:")]
    assert told.startswith(f"Warning: dev: {len(long)} lines were longer than 3 symbols and cut (line {long[0]}, ")
    assert told.endswith("the longest had 4. What was cut is not read.")


def test_classification(tmp_path: Path) -> None:
    rows = [(word, "odd" if word.count("a") % 2 else "even") for word in words() if len(word) < 4]
    config = {
        "task": "classification",
        "data": {
            "train": {"kind": "tsv", "path": str(write_tsv(tmp_path / "x.tsv", rows)), "source": "source",
                      "label": "target"},
            "batching": {"max_rows": 20},
        },
        "text": {"source": {"kind": "character"}},
        "model": {"kind": "classifier", "dropout": 0.0, "pooling": "mean",
                  "encoder": {"kind": "convolutional", "embedding_dim": 8, "num_filters": 24,
                              "filter_widths": [1, 2, 3]}},
        "training": {"max_steps": 60, "schedule": {"kind": "constant", "peak": 0.02}, "has_tensorboard": False,
                     "averaging": {"kind": "none"}},
        "runtime": {"dtype": "float32"},
    }  # fmt: skip
    runs.train(config, tmp_path / "run", reporter=SilentReporter())
    model = runs.load(tmp_path / "run")
    right = sum(each.text == label for each, (_, label) in zip(model.predict(w for w, _ in rows), rows, strict=True))
    assert right >= 0.9 * len(rows)
    (both,) = model.predict(["ab"], num_best=2)
    assert {each.text for each in both.candidates} == {"odd", "even"}
    (score,) = model.score([("ab", "odd")])
    assert score.log_prob in [pytest.approx(each.log_prob, abs=1e-5) for each in both.candidates]


@pytest.mark.parametrize("unit", ["line", "stream"])
def test_language_modelling(tmp_path: Path, unit: str) -> None:
    text = tmp_path / "x.txt"
    text.write_text("abcabcabc\n" * 60, "utf-8")
    part = {"kind": "lines", "path": str(text), "unit": unit}
    config = {
        "task": "language_modelling",
        "context": 24,
        "data": {"train": part, "dev": {**part, "start": 0.8}, "batching": {"batch_tokens": 240}},
        "text": {"source": {"kind": "character"}},
        "model": {**{key: value for key, value in TINY_TRANSFORMER.items() if not key.endswith("coder_layers")},
                  "kind": "transformer_language_model", "num_layers": 1},
        "search": {"kind": "greedy", "max_length": 9},
        "training": {"max_steps": 60, "validate_every": 60, "schedule": {"kind": "constant", "peak": 0.01},
                     "has_tensorboard": False, "averaging": {"kind": "none"}},
        "runtime": {"dtype": "float32"},
    }  # fmt: skip
    outcome = runs.train(config, tmp_path / "run", reporter=SilentReporter())
    assert outcome.best["loss"] < 0.4
    model = runs.load(tmp_path / "run")
    assert [each.text for each in model.predict(["abca", ""])] == ["abcabcabc", ""]
    (score,) = model.score([(None, "abcabcabc")])
    assert score.log_prob / score.num_tokens > -0.4


def test_fine_tuning_starts_from_weights_and_tokenizer(reverser: Path, tmp_path: Path) -> None:
    config = reversal(tmp_path, max_steps=1, schedule={"kind": "constant", "peak": 1e-9}, averaging={"kind": "none"})
    for key in ("text", "model"):
        del config[key]
    config["init_from"] = str(reverser)
    runs.train(config, tmp_path / "tuned", reporter=SilentReporter())
    lines = words()[:40]
    before, after = (runs.load(path) for path in (reverser, tmp_path / "tuned"))
    assert [each.text for each in after.predict(lines)] == [each.text for each in before.predict(lines)]
    assert after.config.task.text == before.config.task.text


def test_an_existing_folder_is_refused_and_a_failure_leaves_none(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(BundleError, match=r"there: already there\. .* `heedful resume`"):
        runs.train(reversal(tmp_path), tmp_path / "there", reporter=SilentReporter())
    config = reversal(tmp_path)
    config["training"]["metric"] = "blue"
    with pytest.raises(ConfigError, match=r"`training\.metric` is `blue`, which is not measured"):
        runs.train(config, tmp_path / "failed", reporter=SilentReporter())
    assert not (tmp_path / "failed").exists()


def test_a_run_without_a_folder_is_named_by_its_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    values = reversal(tmp_path, max_steps=1, averaging={"kind": "none"})
    (tmp_path / "words.toml").write_text(write_toml(values), "utf-8")
    assert heedful.train("words.toml").path == Path("runs/words")
    assert "The run goes to runs/words\n" in capsys.readouterr().err
    assert heedful.train(tmp_path / "words.toml").path == Path("runs/words-2")
    assert heedful.train(values).path == Path("runs/translation")
    assert sorted(each.name for each in Path("runs").iterdir()) == ["translation", "words", "words-2"]
    (tmp_path / "runs" / "words-3").touch()  # a file has the name just as well
    assert runs.train("words.toml", reporter=SilentReporter()).path == Path("runs/words-4")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(ConfigError, match="`--out` is missing: several processes must be told where to meet"):
        heedful.train(values)


def test_the_card_tells_sizes_scores_speed_and_data(reverser: Path) -> None:
    card = (reverser / "bundle" / "card.md").read_text("utf-8")
    facts = runs.info(reverser)
    assert f"{facts.num_parameters:,} parameters ({4 * facts.num_parameters / 1e6:.1f} MB)" in card
    assert f"| cer | {facts.scores['cer']['value']:.4f} | {facts.scores['cer']['signature']} |" in card
    assert "Measured while it was trained, on the same machine: 40 lines in " in card
    assert "train.tsv (sha256 " in card and "Licence of the data: not stated" in card


def test_sampling_while_training_follows_the_seed_of_the_run(tmp_path: Path) -> None:
    config = parse_run({**reversal(tmp_path), "runtime": {"seed": 7, "device": "cpu"}})
    fitting = prepare_fitting(config, tmp_path / "run", lambda note: None, is_begun=False)
    assert fitting.task.seed == 7


def test_learned_positions_too_few_for_the_texts_are_told_before_training(tmp_path: Path) -> None:
    values = reversal(tmp_path)
    values["model"] = {**values["model"], "positions": {"kind": "learned", "max_positions": 12}}
    with pytest.raises(ConfigError, match=r"with `text.max_source_length` a text may have 13 positions"):
        runs.train(values, tmp_path / "run")
    assert not (tmp_path / "run" / "bundle").exists()
