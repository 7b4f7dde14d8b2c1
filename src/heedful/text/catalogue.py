"""The tokenizers by kind. A new one is one file and one line here."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from heedful.core.errors import did_you_mean
from heedful.text.byte import ByteConfig, ByteTokenizer
from heedful.text.character import CharacterConfig, CharacterTokenizer
from heedful.text.saved import damaged, read_json
from heedful.text.subword import SubwordConfig, SubwordTokenizer
from heedful.text.tokenizer import Tokenizer
from heedful.text.word import WordConfig, WordTokenizer
from heedful.text.wordpiece import WordPieceConfig, WordPieceTokenizer

TOKENIZERS: dict[str, type[Tokenizer]] = {
    "character": CharacterTokenizer,
    "word": WordTokenizer,
    "byte": ByteTokenizer,
    "subword": SubwordTokenizer,
    "wordpiece": WordPieceTokenizer,
}

AnyTokenizerConfig = Annotated[
    CharacterConfig | WordConfig | ByteConfig | SubwordConfig | WordPieceConfig, Field(discriminator="kind")
]


def train_tokenizer(config: AnyTokenizerConfig, lines: Iterable[str], *, folder: Path = Path()) -> Tokenizer:
    """Make the tokenizer that a configuration asks for from training text.

    Args:
        config: of any kind.
        lines: the training text, read once.
        folder: where a relative path in the configuration starts.

    Raises:
        ConfigError: the configuration does not go with the text.
        DataError: there is no text.
    """
    return TOKENIZERS[config.kind].train(config, lines, folder=folder)


def load_tokenizer(folder: Path, name: str) -> Tokenizer:
    """Read a tokenizer that was saved under the name.

    Raises:
        BundleError: a file is missing or damaged, or is of a kind this version does not know.
    """
    path = folder / f"{name}.json"
    kind = read_json(path, kind=str)["kind"]
    if kind not in TOKENIZERS:
        raise damaged(path, f"unknown kind of tokenizer `{kind}` ({did_you_mean(kind, TOKENIZERS)})")
    return TOKENIZERS[kind].load(folder, name)
