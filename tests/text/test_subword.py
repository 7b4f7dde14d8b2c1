"""Subword training and sampling: small corpora, determinism, threads."""

import hashlib
import json
import random
import threading
from pathlib import Path

import pytest

from heedful.core.config import parse_config
from heedful.core.errors import BundleError, ConfigError
from heedful.core.symbols import UNK_ID
from heedful.text import SubwordTokenizer
from heedful.text.subword import SubwordConfig

RANDOM = random.Random(5)
SYLLABLES = ["na", "mi", "ko", "ta", "ru", "se"]
WORDS = ["".join(RANDOM.choices(SYLLABLES, k=RANDOM.randint(1, 4))) for _ in range(900)]
LINES = [" ".join(WORDS[start : start + 6]) for start in range(0, len(WORDS), 6)]
TEXT = "nami korutase minaru sesemi"


def train(**options: object) -> SubwordTokenizer:
    return SubwordTokenizer.train(parse_config(SubwordConfig, options), LINES)


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
class TestBoth:
    def test_a_seed_fixes_the_sample_whatever_was_drawn_before(self, algorithm: str) -> None:
        tokenizer = train(algorithm=algorithm, vocab_size=89, sampling=0.3)
        first = [tokenizer.sample(TEXT, seed) for seed in range(23)]
        assert [tokenizer.sample(TEXT, seed) for seed in reversed(range(23))] == first[::-1]
        assert len(set(map(tuple, first))) > 5
        assert {tokenizer.decode(ids) for ids in first} == {TEXT}

    def test_threads_do_not_disturb_one_another(self, algorithm: str) -> None:
        tokenizer = train(algorithm=algorithm, vocab_size=89, sampling=0.3)
        expected = [tokenizer.sample(TEXT, seed) for seed in range(101)]
        found: dict[int, list[list[int]]] = {}

        def work(name: int) -> None:
            found[name] = [tokenizer.sample(TEXT, seed) for seed in range(101)]

        threads = [threading.Thread(target=work, args=(name,)) for name in range(5)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert list(found.values()) == [expected] * 5

    def test_training_is_repeatable(self, algorithm: str, tmp_path: Path) -> None:
        for name in ("a", "b"):
            train(algorithm=algorithm, vocab_size=89).save(tmp_path, name)
        assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()

    def test_a_small_corpus_gives_a_small_vocabulary(self, algorithm: str) -> None:
        tokenizer = train(algorithm=algorithm, vocab_size=8000)
        assert 20 < tokenizer.size < 2000
        assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT

    def test_placeholders_stay_whole(self, algorithm: str) -> None:
        tokenizer = train(algorithm=algorithm, vocab_size=37, user_symbols=["{name}"])
        assert "{name}" in tokenizer.pieces(tokenizer.encode("nami {name} ko"))
        tokenizer = train(algorithm=algorithm, vocab_size=37, user_symbols=["<a b>"])
        assert tokenizer.decode(tokenizer.encode("nami <a b> ko")) == "nami <a b> ko"

    def test_bytes_spell_what_is_unknown(self, algorithm: str) -> None:
        assert UNK_ID in train(algorithm=algorithm, vocab_size=89).encode("☃")
        tokenizer = train(algorithm=algorithm, vocab_size=400, byte_fallback=True)
        assert UNK_ID not in tokenizer.encode("nami ☃!")
        assert tokenizer.decode(tokenizer.encode("nami ☃!")) == "nami ☃!"


def test_an_impossible_vocabulary_names_a_remedy() -> None:
    with pytest.raises(ConfigError, match=r"vocabulary of 7 .*cannot be trained.*Try"):
        train(vocab_size=7)


def test_sampling_survives_saving(tmp_path: Path) -> None:
    tokenizer = train(vocab_size=89, sampling=0.3)
    tokenizer.save(tmp_path, "side")
    loaded = SubwordTokenizer.load(tmp_path, "side")
    assert loaded.is_sampling
    assert [loaded.sample(TEXT, seed) for seed in range(7)] == [tokenizer.sample(TEXT, seed) for seed in range(7)]


def test_another_model_under_the_name_is_noticed(tmp_path: Path) -> None:
    train(vocab_size=37).save(tmp_path, "side")
    train(vocab_size=31).save(tmp_path, "other")
    (tmp_path / "other.model").rename(tmp_path / "side.model")
    with pytest.raises(Exception, match=r"side\.model.*side\.json"):
        SubwordTokenizer.load(tmp_path, "side")


def test_a_model_that_is_none_is_damage_even_where_the_digest_agrees(tmp_path: Path) -> None:
    train(vocab_size=89).save(tmp_path, "side")
    values = json.loads((tmp_path / "side.json").read_bytes())
    for content in (b"garbage", b"\xff" * 99, b""):
        (tmp_path / "side.model").write_bytes(content)
        (tmp_path / "side.json").write_text(json.dumps({**values, "sha256": hashlib.sha256(content).hexdigest()}))
        with pytest.raises(BundleError, match=r"side\.model: damaged, no SentencePiece model"):
            SubwordTokenizer.load(tmp_path, "side")
