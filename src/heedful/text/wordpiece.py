"""WordPiece as BERT uses it: a given vocabulary file, words cut greedily into the longest known pieces."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from heedful.core.config import Config, resolve_path
from heedful.core.errors import ConfigError, DataError
from heedful.core.symbols import UNK_ID
from heedful.text.saved import damaged, read_json, write_json
from heedful.text.tokenizer import Tokenizer, without_reserved
from heedful.text.vocabulary import Vocabulary

_CONTINUATION = "##"
_RESERVED = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_MAX_WORD_CHARACTERS = 100


class WordPieceConfig(Config):
    """Pieces of words from a vocabulary file of BERT's form (Devlin et al. 2019, arXiv:1810.04805).

    Attributes:
        vocabulary: path of the ``vocab.txt``, one piece a line; relative to the configuration's file.
        lowercase: True lowers case and strips accents before looking up, as the "uncased" vocabularies need.
    """

    kind: Literal["wordpiece"] = "wordpiece"
    vocabulary: str
    lowercase: bool = True


class WordPieceTokenizer(Tokenizer):
    """BERT's pieces under Heedful's ids: ``[PAD] [UNK] [CLS] [SEP]`` become 0 to 3, the rest follow in file order.

    `file_ids` maps an id to its line in the file (from 0), for whoever brings weights trained with that file.
    Decoding joins pieces to words with single spaces between; where punctuation stood without a space is not kept.
    """

    kind = "wordpiece"

    def __init__(self, vocabulary: Vocabulary, file_ids: Sequence[int], *, lowercase: bool) -> None:
        self.vocabulary = vocabulary
        self.file_ids = tuple(file_ids)
        self.lowercase = lowercase
        self._ids = dict(zip(vocabulary.symbols, vocabulary.encode(vocabulary.symbols), strict=True))

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        return [each for word in basic_words(text, lowercase=self.lowercase) for each in self._cut(word)]

    def _cut(self, word: str) -> list[int]:
        """Cut one word into the longest known pieces from the left; UNK for the whole if a rest is unknown."""
        if len(word) > _MAX_WORD_CHARACTERS:
            return [UNK_ID]
        ids, start = [], 0
        while start < len(word):
            prefix = _CONTINUATION if start else ""
            for end in range(len(word), start, -1):
                found = self._ids.get(prefix + word[start:end])
                if found is not None:
                    break
            else:
                return [UNK_ID]
            ids.append(found)
            start = end
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        texts = self.vocabulary.texts(without_reserved(ids))
        joined = "".join(
            each[len(_CONTINUATION) :] if each.startswith(_CONTINUATION) and len(each) > 2 else f" {each}"
            for each in texts
        )
        return joined.removeprefix(" ")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.vocabulary.pieces(ids)

    def save(self, folder: Path, name: str) -> None:
        values = {
            "kind": self.kind,
            "lowercase": self.lowercase,
            "symbols": list(self.vocabulary.symbols),
            "file_ids": list(self.file_ids),
        }
        write_json(folder / f"{name}.json", values)

    @classmethod
    def load(cls, folder: Path, name: str) -> "WordPieceTokenizer":
        path = folder / f"{name}.json"
        values = read_json(path, symbols=list, file_ids=list, lowercase=bool)
        vocabulary = Vocabulary.from_saved(values["symbols"], path)
        file_ids = values["file_ids"]
        if sorted(each for each in file_ids if type(each) is int) != list(range(len(vocabulary))):
            raise damaged(path, f"its file_ids are not the numbers from 0 to {len(vocabulary) - 1}, each once")
        return cls(vocabulary, file_ids, lowercase=values["lowercase"])

    @classmethod
    def train(cls, config: WordPieceConfig, lines: Iterable[str], *, folder: Path = Path()) -> "WordPieceTokenizer":
        """Read the vocabulary file; the lines are not needed.

        Raises:
            ConfigError: the file is missing.
            DataError: the file lacks one of the four reserved pieces, or repeats a piece.
        """
        path = resolve_path(config.vocabulary, folder)
        try:
            text = path.read_bytes().decode("utf-8")
        except OSError as error:
            raise ConfigError(f"{path}: the vocabulary cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError as error:
            raise DataError(f"not UTF-8 at byte {error.start}. Save the vocabulary as UTF-8.", path) from None
        pieces = [each.removesuffix("\r") for each in text.removesuffix("\n").split("\n")]
        numbers: dict[str, int] = {}
        for index, piece in enumerate(pieces):
            if not piece or piece in numbers:
                raise DataError(
                    f"the piece {piece!r} is empty or repeated. One distinct piece a line.", path, index + 1
                )
            numbers[piece] = index
        missing = [each for each in _RESERVED if each not in numbers]
        if missing:
            raise DataError(f"the vocabulary lacks {' '.join(missing)}. Use a BERT vocab.txt.", path)
        rest = [each for each in pieces if each not in _RESERVED]
        file_ids = [numbers[each] for each in (*_RESERVED, *rest)]
        return cls(Vocabulary(rest), file_ids, lowercase=config.lowercase)


def basic_words(text: str, *, lowercase: bool) -> Iterator[str]:
    """Yield words and single punctuation marks as BERT's basic tokenisation does.

    Control characters vanish, ideographs (CJK) and punctuation stand alone, and with ``lowercase`` accents are
    stripped (NFD, category Mn).
    """
    if lowercase:
        text = "".join(
            each for each in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(each) != "Mn"
        )
    word: list[str] = []
    for character in text:
        if character.isspace():
            yield from _flush(word)
        elif _is_punctuation(character) or _is_ideograph(character):
            yield from _flush(word)
            yield character
        elif unicodedata.category(character)[0] != "C" and character != "\ufffd":
            word.append(character)
    yield from _flush(word)


def _flush(word: list[str]) -> Iterator[str]:
    if word:
        yield "".join(word)
        word.clear()


def _is_punctuation(character: str) -> bool:
    # ASCII symbols such as $ and ^ count as punctuation for BERT, whatever Unicode says.
    is_ascii_mark = character.isascii() and character.isprintable() and not character.isalnum() and character != " "
    return is_ascii_mark or unicodedata.category(character)[0] == "P"


def _is_ideograph(character: str) -> bool:
    return unicodedata.name(character, "").startswith(("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH"))
