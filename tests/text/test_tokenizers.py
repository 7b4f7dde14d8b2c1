"""The contract of every tokenizer, run over the catalogue, and what each kind promises besides."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.core.config import parse_config
from heedful.core.errors import BundleError, DataError
from heedful.core.symbols import BOS_ID, EOS_ID, NUM_RESERVED, PAD_ID, UNK_ID
from heedful.text import TOKENIZERS, TextConfig, Tokenizer, load_tokenizer, train_tokenizer
from heedful.text.tokenizer import RESERVED_NAMES, UNK_TEXT
from heedful.text.word import split_words

LINES = [
    "the cat sat on the mat",
    "Die Katze saß, auf der Matte!",
    "",
    "it's (well) known: 12.5 %",
    "日本 ☃  two spaces",
]
VOCABULARY = [
    "[PAD]",
    "[unused0]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "the",
    "cat",
    "sat",
    "on",
    "mat",
    "##s",
    "##at",
    "c",
    "m",
    "!",
    ",",
]
_CARRIERS = set("\ue00a\ue00d\ue01f\ue581\ue585")
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


def make(kind: str, folder: Path, lines: list[str] = LINES, **options: object) -> Tokenizer:
    if kind == "wordpiece":
        (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
        options["vocabulary"] = "vocab.txt"
    config = parse_config(TextConfig, {"source": {"kind": kind, **options}}).source
    return train_tokenizer(config, lines, folder=folder)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_contract(kind: str, tmp_path: Path) -> None:
    tokenizer = make(kind, tmp_path)
    for line in [*LINES, "entirely unseen: Ж ☂", "<s> </s> <pad> <unk>"]:
        ids = tokenizer.encode(line)
        assert all(0 <= each < tokenizer.size for each in ids)
        assert not {PAD_ID, BOS_ID, EOS_ID} & set(ids)
        assert len(tokenizer.pieces(ids)) == len(ids)
        assert tokenizer.sample(line, seed=5) == ids and not tokenizer.is_sampling
        assert tokenizer.decode([BOS_ID, *ids, EOS_ID, PAD_ID]) == tokenizer.decode(ids)
    assert tokenizer.pieces([PAD_ID, UNK_ID, BOS_ID, EOS_ID]) == list(RESERVED_NAMES)
    assert tokenizer.decode([UNK_ID]).strip() == ("" if kind == "byte" else UNK_TEXT)
    assert tokenizer.encode("") == [] and tokenizer.decode([]) == ""


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_loaded_equals_saved(kind: str, tmp_path: Path) -> None:
    tokenizer = make(kind, tmp_path)
    tokenizer.save(tmp_path, "side")
    loaded = load_tokenizer(tmp_path, "side")
    assert type(loaded) is type(tokenizer) and loaded.size == tokenizer.size
    every = list(range(tokenizer.size))
    assert loaded.pieces(every) == tokenizer.pieces(every)
    assert [loaded.encode(line) for line in LINES] == [tokenizer.encode(line) for line in LINES]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_damaged_or_missing_file_is_named(kind: str, tmp_path: Path) -> None:
    make(kind, tmp_path).save(tmp_path, "side")
    for path in sorted(tmp_path.glob("side.*")):
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(BundleError, match=path.name):
            load_tokenizer(tmp_path, "side")
        path.unlink()
        with pytest.raises(BundleError, match=path.name):
            load_tokenizer(tmp_path, "side")
        path.write_bytes(whole)
    (tmp_path / "side.json").write_text('{"kind": "charakter"}')
    with pytest.raises(BundleError, match=r"side\.json.*`charakter`.*`character`"):
        load_tokenizer(tmp_path, "side")


@pytest.mark.parametrize("kind", ["character", "word", "subword"])
def test_no_text_is_an_error_with_a_remedy(kind: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Check the data's columns"):
        make(kind, tmp_path, ["", ""])


@settings(deadline=None, max_examples=60)
@given(TEXT)
def test_bytes_are_lossless(text: str) -> None:
    tokenizer = make("byte", Path())
    assert tokenizer.decode(tokenizer.encode(text)) == text


@settings(deadline=None, max_examples=60)
@given(TEXT.filter(bool))
def test_known_characters_are_lossless(text: str) -> None:
    tokenizer = make("character", Path(), [text])
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.size == NUM_RESERVED + len(set(text))


@settings(deadline=None, max_examples=60)
@given(TEXT.filter(str.strip), st.booleans())
def test_known_words_come_back_but_for_spacing(text: str, split_punctuation: bool) -> None:
    tokenizer = make("word", Path(), [text], split_punctuation=split_punctuation)
    assert tokenizer.decode(tokenizer.encode(text)) == " ".join(text.split())


@settings(deadline=None, max_examples=30)
@given(TEXT.filter(str.strip).filter(lambda text: not _CARRIERS & set(text)), st.sampled_from(["unigram", "bpe"]))
def test_known_subwords_are_lossless(text: str, algorithm: str) -> None:
    tokenizer = make("subword", Path(), [text] * 3, algorithm=algorithm, vocab_size=97)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_characters_that_sentencepiece_keeps_for_itself() -> None:
    text = "a\u2581b \u2585 \x1fc \t\n<unk></s>\n"
    tokenizer = make("subword", Path(), [text])
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_words_with_punctuation_by_hand() -> None:
    text = "Well, it's (half-done)..."
    parts = ["Well", "￭,", "it's", "(", "￭half-done", "￭)", "￭.", "￭.", "￭."]
    assert split_words(text, split_punctuation=True) == parts
    assert split_words(text, split_punctuation=False) == ["Well,", "it's", "(half-done)..."]


def test_rare_words_are_unknown_and_the_size_is_kept() -> None:
    lines = ["a a a b b c", "d d"]
    assert make("word", Path(), lines, min_count=2).pieces(range(4, 7)) == ["a", "b", "d"]
    small = make("word", Path(), lines, max_size=6)
    assert small.size == 6 and small.encode("b c d a") == [5, UNK_ID, UNK_ID, 4]
    assert small.decode(small.encode("b c")) == f"b {UNK_TEXT}"


def test_bytes_that_are_no_text_do_not_break_decoding() -> None:
    tokenizer = make("byte", Path())
    assert tokenizer.decode([4 + 0xC3, 4 + ord("a")]) == "\ufffda"
    assert tokenizer.pieces([4 + 0xC3, 4 + ord("a")]) == ["<C3>", "a"]
