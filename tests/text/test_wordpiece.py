"""WordPiece by hand: BERT's basic words, the greedy cut, and the mapping from the file's ids."""

import json
from pathlib import Path

import pytest

from heedful.core.errors import BundleError, ConfigError, DataError
from heedful.core.symbols import UNK_ID
from heedful.text import WordPieceConfig, WordPieceTokenizer
from heedful.text.wordpiece import basic_words

PIECES = [
    "[PAD]",
    "[unused0]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "un",
    "##aff",
    "##able",
    "##a",
    "a",
    "cafe",
    "##s",
    "!",
    "日",
]


def write(folder: Path, pieces: list[str]) -> WordPieceConfig:
    (folder / "vocab.txt").write_text("".join(f"{each}\n" for each in pieces), encoding="utf-8")
    return WordPieceConfig(vocabulary="vocab.txt")


def test_longest_match_first(tmp_path: Path) -> None:
    tokenizer = WordPieceTokenizer.train(write(tmp_path, PIECES), [], folder=tmp_path)
    ids = tokenizer.encode("Unaffable  Cafés!日a unx")
    assert tokenizer.pieces(ids) == ["un", "##aff", "##able", "cafe", "##s", "!", "日", "a", "<unk>"]
    assert ids[-1] == UNK_ID
    assert tokenizer.decode(ids[:5]) == "unaffable cafes"


def test_ids_map_to_the_file(tmp_path: Path) -> None:
    tokenizer = WordPieceTokenizer.train(write(tmp_path, PIECES), [], folder=tmp_path)
    assert tokenizer.size == len(PIECES)
    assert [PIECES[each] for each in tokenizer.file_ids[:4]] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    every = range(4, tokenizer.size)
    assert [PIECES[tokenizer.file_ids[each]] for each in every] == tokenizer.pieces(every)


def test_basic_words_by_hand() -> None:
    assert list(basic_words("Don't pay $5—naïve\u200b \tOK", lowercase=False)) == [
        *("Don", "'", "t", "pay", "$", "5", "—", "naïve", "OK")
    ]
    assert list(basic_words("ÄÖ\u0301x", lowercase=True)) == ["aox"]


def test_wrong_vocabulary_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.txt.*cannot be read"):
        WordPieceTokenizer.train(WordPieceConfig(vocabulary="none.txt"), [], folder=tmp_path)
    with pytest.raises(DataError, match=r"vocab\.txt: the vocabulary lacks \[CLS\] \[SEP\]"):
        WordPieceTokenizer.train(write(tmp_path, ["[PAD]", "[UNK]", "a"]), [], folder=tmp_path)
    with pytest.raises(DataError, match=r"vocab\.txt:6: the piece 'a' is empty or repeated"):
        WordPieceTokenizer.train(write(tmp_path, [*PIECES[:1], *PIECES[2:5], "a", "a"]), [], folder=tmp_path)


def test_saved_numbers_of_lines_are_checked(tmp_path: Path) -> None:
    tokenizer = WordPieceTokenizer.train(write(tmp_path, PIECES), [], folder=tmp_path)
    tokenizer.save(tmp_path, "side")
    assert WordPieceTokenizer.load(tmp_path, "side").file_ids == tokenizer.file_ids
    values = json.loads((tmp_path / "side.json").read_bytes())
    ids = values["file_ids"]
    for wrong in (ids[:-1], [*ids, len(ids)], ["0", *ids[1:]], [True, *ids[1:]], [ids[1], *ids[1:]], [-1, *ids[1:]]):
        (tmp_path / "side.json").write_text(json.dumps({**values, "file_ids": wrong}))
        with pytest.raises(BundleError, match=r"side\.json: damaged, its file_ids are not the numbers from 0 to "):
            WordPieceTokenizer.load(tmp_path, "side")
