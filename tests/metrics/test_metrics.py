"""Metrics against numbers worked by hand and against sacrebleu itself."""

import random
import time

import pytest
import sacrebleu
from pydantic import TypeAdapter

from heedful.core.config import Config, parse_config
from heedful.core.errors import ConfigError
from heedful.metrics import METRICS, AnyMetricConfig, build_metric, edit_distance, perplexity
from heedful.metrics.edit_distance import common_length


class Listed(Config):
    """A configuration that lists metrics."""

    metrics: list[AnyMetricConfig]


def value(config, hypotheses: list[str], references: list) -> float:
    """Score with a metric as a configuration writes it."""
    metric = build_metric(TypeAdapter(AnyMetricConfig).validate_python(config))
    pairs = [each if isinstance(each, tuple) else (each,) for each in references]
    return metric.score(hypotheses, pairs).value


HYPOTHESES = ["the cat sat on the mat .", "a dog barks", "It rains in Spain today", "hello"]
REFERENCES = ["the cat is on the mat .", "the dog barked loudly", "it rains in Spain", "hello"]


def test_sacrebleu_agrees() -> None:
    assert value("bleu", HYPOTHESES, REFERENCES) == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert value("chrf", HYPOTHESES, REFERENCES) == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert value("ter", HYPOTHESES, REFERENCES) == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score
    lower = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], lowercase=True, tokenize="char").score
    assert value({"name": "bleu", "lowercase": True, "tokenize": "char"}, HYPOTHESES, REFERENCES) == lower
    plus = sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2).score
    assert value({"name": "chrf", "word_order": 2}, HYPOTHESES, REFERENCES) == plus


def test_bleu_by_hand() -> None:
    # 1-grams 4/5, 2-grams 3/4, 3-grams 2/3, 4-grams 1/2; as long as the reference.
    expected = 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    assert value({"name": "bleu", "tokenize": "none"}, ["a b c d x"], ["a b c d e"]) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_differing_numbers_of_references(name: str) -> None:
    second = ("the cat sat on the mat .", None, None, "hallo")
    ragged = [(one,) if other is None else (one, other) for one, other in zip(REFERENCES, second, strict=True)]
    repeated = [(one, one if other is None else other) for one, other in zip(REFERENCES, second, strict=True)]
    assert value(name, HYPOTHESES, ragged) == pytest.approx(value(name, HYPOTHESES, repeated))
    assert value(name, HYPOTHESES, ragged) != value(name, HYPOTHESES, REFERENCES)


def test_signatures_say_the_options() -> None:
    result = build_metric(parse_config(Listed, {"metrics": [{"name": "bleu", "lowercase": True}]}).metrics[0]).score(
        HYPOTHESES, [(each,) for each in REFERENCES]
    )
    assert result.name == "bleu" and result.is_higher_better
    assert "case:lc" in result.signature and "tok:13a" in result.signature and "nrefs:1" in result.signature


def naive_distance(first: str, second: str) -> int:
    row = list(range(len(second) + 1))
    for i, one in enumerate(first, start=1):
        before, row[0] = row[0], i
        for j, other in enumerate(second, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (one != other))
    return row[-1]


def naive_common_length(first: str, second: str) -> int:
    if not first or not second:
        return 0
    rows = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first, start=1):
        for j, other in enumerate(second, start=1):
            rows[i][j] = rows[i - 1][j - 1] + 1 if one == other else max(rows[i - 1][j], rows[i][j - 1])
    return rows[-1][-1]


def test_distances_equal_the_table() -> None:
    chance = random.Random(1)
    for _ in range(700):
        first, second = ("".join(chance.choices("abc", k=chance.randrange(9))) for _ in range(2))
        assert edit_distance(first, second) == naive_distance(first, second), (first, second)
        assert common_length(first, second) == naive_common_length(first, second), (first, second)
    long = ["".join(chance.choices("abcd", k=length)) for length in (71, 131)]
    assert edit_distance(*long) == naive_distance(*long)


def test_distance_by_hand() -> None:
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance(["K", "AE1", "T"], ["K", "AH0", "T", "S"]) == 2


def test_six_thousand_words_are_quick() -> None:
    chance = random.Random(2)
    words = [" ".join(chance.choices("abcdefghij", k=chance.randrange(3, 13))) for _ in range(6000)]
    began = time.process_time()
    value("per", words, words[1:] + words[:1])
    assert time.process_time() - began < 2


def test_error_rates_by_hand() -> None:
    # Line 1 is 1 edit from a reference of 3 words, line 2 is 2 edits from one of 2 words.
    lines, references = ["a b c", "x y"], [("a b c d e f", "a b d"), ("u v",)]
    assert value("wer", lines, references) == pytest.approx(100 * 3 / 5)
    assert value("per", lines, references) == pytest.approx(100 * 3 / 5)
    assert value("sequence_error", ["a  b", "c", "d"], [("a b",), ("x", "c"), ("e",)]) == pytest.approx(100 / 3)
    assert value("cer", ["abd"], ["abc e"]) == pytest.approx(100 * 3 / 5)
    assert value("cer", ["caf\u0065\u0301"], ["caf\u00e9"]) == 0
    assert value("wer", ["A B"], ["a b"]) == 100 and value({"name": "wer", "lowercase": True}, ["A B"], ["a b"]) == 0


def test_blank_lines_are_scored() -> None:
    assert value("wer", ["", "a"], ["a b", ""]) == pytest.approx(100 * 3 / 2)
    assert value("wer", ["a"], [""]) == 100
    assert value("rougeL", [""], ["a"]) == 0
    for name in METRICS:
        assert value(name, ["", "a"], ["", "a"]) >= 0


def test_labels_by_hand() -> None:
    said, meant = ["a", "a", "b", "c", "a"], ["a", "b", "b", "b", "a"]
    assert value("accuracy", said, meant) == pytest.approx(60)
    # a: 2 x 2 / (3 + 2), b: 2 x 1 / (1 + 3), c: 0
    assert value("macro_f1", said, meant) == pytest.approx(100 * (4 / 5 + 2 / 4 + 0) / 3)


def test_rouge_by_hand() -> None:
    lines, references = ["The cat, sat!"], ["the cat on the mat sat"]
    assert value("rouge1", lines, references) == pytest.approx(100 * 2 * 3 / (3 + 6))
    assert value("rouge2", lines, references) == pytest.approx(100 * 2 * 1 / (2 + 5))
    assert value("rougeL", ["sat the cat"], references) == pytest.approx(100 * 2 * 2 / (3 + 6))
    assert value("rouge1", ["a b"], [("x", "a b")]) == 100


def test_perplexity_by_hand() -> None:
    import math

    result = perplexity(6 * math.log(4), num_tokens=6, num_words=3)
    assert result.per_token == pytest.approx(4) and result.per_word == pytest.approx(16)
    assert perplexity(1e6, 1, 1).per_token == math.inf
    with pytest.raises(ValueError, match="needs tokens"):
        perplexity(1.0, 0, 0)


def test_every_metric_is_built_by_its_name() -> None:
    for config in parse_config(Listed, {"metrics": list(METRICS)}).metrics:
        result = build_metric(config).score(["a b"], [("a b", "c")])
        assert result.name == config.name
        assert result.value == pytest.approx(100 if result.is_higher_better else 0) or result.name == "bleu"


def test_an_unknown_metric_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"`metrics.0.name` is 'blue'. Did you mean `bleu`\?"):
        parse_config(Listed, {"metrics": ["blue"]})
    with pytest.raises(ConfigError, match=r"`metrics.1.name` is 'rouge3'. Did you mean `rouge"):
        parse_config(Listed, {"metrics": ["bleu", "rouge3"]})
    with pytest.raises(ConfigError, match=r"`metrics.0.lower` is not a known key. Did you mean `lowercase`\?"):
        parse_config(Listed, {"metrics": [{"name": "cer", "lower": True}]})


def test_lines_without_references_are_refused() -> None:
    with pytest.raises(ValueError, match="2 hypotheses"):
        value("wer", ["a", "b"], ["a"])
    with pytest.raises(ValueError, match="Line 1"):
        value("bleu", ["a"], [()])
