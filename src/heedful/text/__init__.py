"""Line <-> ids: tokenizers, the codec of a model's two sides, label sets, and what counts as a line. Loads no torch."""

from heedful.text.byte import ByteConfig, ByteTokenizer
from heedful.text.catalogue import (
    TOKENIZERS,
    AnyTokenizerConfig,
    load_tokenizer,
    train_tokenizer,
)
from heedful.text.character import CharacterConfig, CharacterTokenizer
from heedful.text.codec import Codec, TextConfig
from heedful.text.labels import LabelSet
from heedful.text.lines import escape_line, read_lines
from heedful.text.normalization import normalize
from heedful.text.subword import SubwordConfig, SubwordTokenizer
from heedful.text.tokenizer import Tokenizer
from heedful.text.unread import Unread
from heedful.text.word import WordConfig, WordTokenizer
from heedful.text.wordpiece import WordPieceConfig, WordPieceTokenizer

__all__ = [
    "TOKENIZERS",
    "AnyTokenizerConfig",
    "ByteConfig",
    "ByteTokenizer",
    "CharacterConfig",
    "CharacterTokenizer",
    "Codec",
    "LabelSet",
    "SubwordConfig",
    "SubwordTokenizer",
    "TextConfig",
    "Tokenizer",
    "Unread",
    "WordConfig",
    "WordPieceConfig",
    "WordPieceTokenizer",
    "WordTokenizer",
    "escape_line",
    "load_tokenizer",
    "normalize",
    "read_lines",
    "train_tokenizer",
]
