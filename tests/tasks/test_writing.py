"""What is streamed is the text, piece by piece, whatever the symbols are."""

import pytest

from heedful.core.config import parse_config
from heedful.tasks.writing import growing_text
from heedful.text import Codec, TextConfig

TEXT = "né (well, it's)  世界 🙂 né"


@pytest.mark.parametrize("kind", ["byte", "character", "word", "subword"])
def test_pieces_join_to_the_text(kind: str) -> None:
    tokenizer = {"kind": kind, **({"vocab_size": 60} if kind == "subword" else {})}
    codec = Codec.train(parse_config(TextConfig, {"source": tokenizer}), [(None, TEXT)] * 5)
    ids = codec.target_symbols(TEXT)
    pieces = list(growing_text(ids, codec.decode_target))
    assert "".join(pieces) == codec.decode_target(ids)
    assert len(pieces) > 3


def test_a_character_comes_whole() -> None:
    codec = Codec.train(parse_config(TextConfig, {"source": {"kind": "byte"}}), [(None, "x")])
    assert list(growing_text(codec.target_symbols("a世b"), codec.decode_target)) == ["a", "世", "b"]


def test_half_a_character_at_the_end_is_shown() -> None:
    codec = Codec.train(parse_config(TextConfig, {"source": {"kind": "byte"}}), [(None, "x")])
    assert list(growing_text(codec.target_symbols("a世")[:-1], codec.decode_target)) == ["a", "\ufffd"]
