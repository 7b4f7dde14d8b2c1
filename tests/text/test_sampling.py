"""What is drawn by a seed: the right distribution, the same in every process, every text still itself."""

import itertools
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import sentencepiece
from tests.text.test_subword import LINES, train

from heedful.core.symbols import UNK_ID
from heedful.text.merge_sampling import MergeSampler
from heedful.text.unigram_sampling import UnigramSampler
from heedful.text.words import SPACE, Words

SCORES = {SPACE: -2.0, "a": -1.5, "b": -2.5, "ab": -1.0, "ba": -3.0, SPACE + "a": -2.2, "aba": -2.9}
IDS = {name: index for index, name in enumerate(SCORES, start=10)}


def segmentations(text: str) -> list[tuple[str, ...]]:
    """Return every way to cut a text into pieces of the vocabulary."""
    cuts = itertools.product([False, True], repeat=len(text) - 1)
    found = []
    for each in cuts:
        places = [0, *(place for place, is_cut in enumerate(each, start=1) if is_cut), len(text)]
        found.append(tuple(text[start:stop] for start, stop in itertools.pairwise(places)))
    return [pieces for pieces in found if all(piece in SCORES for piece in pieces)]


def test_unigram_draws_each_segmentation_with_its_probability() -> None:
    text, alpha, number = f"{SPACE}aba{SPACE}ba", 0.7, 4000
    sampler = UnigramSampler(SCORES, Words(IDS, {}, None), alpha)
    found = Counter(tuple(sampler.sample(text, seed)) for seed in range(number))
    weights = {pieces: math.exp(alpha * sum(SCORES[each] for each in pieces)) for pieces in segmentations(text)}
    assert len(weights) > 10
    expected = {tuple(IDS[each] for each in pieces): weight for pieces, weight in weights.items()}
    scale = number / sum(expected.values())
    assert set(found) <= set(expected)
    deviation = sum((found[ids] - scale * weight) ** 2 / (scale * weight) for ids, weight in expected.items())
    degrees = len(expected) - 1
    assert deviation < degrees + 4 * math.sqrt(2 * degrees)


def test_merges_by_hand() -> None:
    # All merges, in the order of their ranks, give abab; each is left out with the same probability.
    ranks = {"ab": 0.0, "abab": 1.0}
    words = Words({"a": 4, "b": 5, "ab": 6, "abab": 7}, {}, None)
    assert MergeSampler(ranks, words, 0.0).sample("abab", 1) == [7]
    assert MergeSampler(ranks, words, 1.0).sample("abab", 1) == [4, 5, 4, 5]
    number, dropout = 4000, 0.3
    found = Counter(tuple(MergeSampler(ranks, words, dropout).sample("abab", seed)) for seed in range(number))
    keep = 1 - dropout
    expected = {(7,): keep**3, (6, 6): keep**2 * dropout, (6, 4, 5): keep * dropout, (4, 5, 6): keep * dropout}
    expected[4, 5, 4, 5] = dropout**2
    for ids, share in expected.items():
        assert abs(found[ids] / number - share) < 4 * math.sqrt(share * (1 - share) / number)


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
@pytest.mark.parametrize("has_bytes", [False, True])
@pytest.mark.parametrize("text", ["nami  {name}s <a b>", " se ", "na\u4e16\u754cx mi\u00e9z", "a\tb\nmi", "\u2581na"])
def test_a_drawn_text_is_the_text_that_was_encoded(algorithm: str, has_bytes: bool, text: str) -> None:
    options = {"byte_fallback": True, "vocab_size": 350} if has_bytes else {"vocab_size": 89}
    tokenizer = train(algorithm=algorithm, sampling=0.4, user_symbols=["{name}", "<a b>"], **options)
    whole = tokenizer.decode(tokenizer.encode(text))
    unknown = tokenizer.encode(text).count(UNK_ID)
    for seed in range(40):
        ids = tokenizer.sample(text, seed)
        assert tokenizer.decode(ids) == whole
        assert ids.count(UNK_ID) == unknown
        if "{name}" in text:
            assert {"{name}", f"<a{SPACE}b>"} <= set(tokenizer.pieces(ids))


def test_merging_without_dropout_is_encoding() -> None:
    tokenizer = train(algorithm="bpe", vocab_size=89, sampling=1e-300)
    for line in LINES[:50]:
        assert tokenizer.sample(line, 3) == tokenizer.encode(line)


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
def test_nothing_of_the_process_takes_part(algorithm: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # SentencePiece's own draws differ from process to process in one line of some 20,000: too few to be met here.
    tokenizer = train(algorithm=algorithm, vocab_size=89, sampling=0.3)

    def refuse(seed: int) -> None:
        raise AssertionError("drew from SentencePiece's generator")

    monkeypatch.setattr(sentencepiece, "set_random_generator_seed", refuse)
    expected = [tokenizer.sample(line, seed) for seed, line in enumerate(LINES)]
    tokenizer.save(tmp_path, "side")
    (tmp_path / "lines.txt").write_text("\n".join(LINES), "utf-8")
    program = (
        "import sys, pathlib; from heedful.text import SubwordTokenizer; folder = pathlib.Path(sys.argv[1]); "
        "tokenizer = SubwordTokenizer.load(folder, 'side'); lines = (folder / 'lines.txt').read_text('utf-8'); "
        "print([tokenizer.sample(line, seed) for seed, line in enumerate(lines.split('\\n'))])"
    )
    run = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(expected)
