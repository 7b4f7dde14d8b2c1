"""The codec: rows, sides, truncation, what is saved."""

from pathlib import Path

import pytest

from heedful.core.config import parse_config
from heedful.core.errors import BundleError, ConfigError, DataError
from heedful.core.symbols import BOS_ID, EOS_ID
from heedful.text import Codec, LabelSet, TextConfig, Unread

PAIRS: list[tuple[str | None, str | None]] = [("Ein Haus", "a house"), ("zwei Häuser", "two houses")]


def train(pairs: list[tuple[str | None, str | None]] = PAIRS, **options: object) -> Codec:
    return Codec.train(parse_config(TextConfig, {"source": {"kind": "character"}, **options}), pairs)


def test_rows_carry_the_reserved_ids() -> None:
    codec = train()
    assert codec.encode_source("") == [EOS_ID] and codec.encode_target("") == [BOS_ID, EOS_ID]
    source, target = codec.encode_source("Haus"), codec.encode_target("house")
    assert source[-1] == EOS_ID and len(source) == 5 and target[0] == BOS_ID and target[-1] == EOS_ID
    assert codec.target_symbols("house") == target[1:-1]
    assert codec.decode_target(target) == "house" and codec.decode_source(source) == "Haus"


def test_joint_is_one_vocabulary_of_both_sides() -> None:
    joint, apart = train(is_joint=True), train()
    assert joint.is_shared and not apart.is_shared
    assert joint.decode_target(joint.encode_target("zwei houses")) == "zwei houses"
    assert "z" not in apart.decode_target(apart.encode_target("zwei"))


def test_summary_tells_the_sizes_that_came_about() -> None:
    joint, apart = train(is_joint=True), train()
    assert joint.summary() == f"{joint.source_size} symbols for source and target"
    assert apart.summary() == f"{apart.source_size} source symbols and {apart.target_size} target symbols"
    assert train([("to be", None)]).summary() == "9 source symbols"  # four reserved, and t, o, b, e, space


def test_sides_that_a_task_has_not() -> None:
    only_target = train([(None, "to be"), (None, "or not")], is_joint=True)
    assert only_target.source is None and only_target.source_size is None and not only_target.is_shared
    assert only_target.decode_target(only_target.encode_target("to be")) == "to be"
    only_source = train([("to be", None)])
    assert only_source.target is None and only_source.encode_source("be")[-1] == EOS_ID


def test_each_side_has_its_own_tokenizer() -> None:
    codec = train(target={"kind": "word"})
    assert len(codec.encode_source("Haus")) == 5 and len(codec.encode_target("a house")) == 4


def test_truncation_is_reported() -> None:
    codec = train(max_source_length=5, max_target_length=3)
    cuts = Unread()
    assert len(codec.encode_source("Häuser", unread=cuts, line=17)) == 6
    assert codec.encode_target("houses", unread=cuts, line=18)[-1] == EOS_ID
    assert len(codec.encode_source("zwei ", unread=cuts, line=19)) == 6
    assert cuts.cut.count == 2 and cuts.cut.first == [17, 18] and cuts.longest == 6
    assert cuts.summary().startswith("2 lines were longer than") and "(line 17, 18)" in cuts.summary()
    assert Unread().summary() == ""


def test_a_line_cut_on_both_sides_is_one_and_lines_without_a_number_are_each_one() -> None:
    codec = train(max_source_length=5, max_target_length=3)
    for line, count, first in ((7, 1, [7]), (0, 4, []), (None, 4, [])):
        cuts = Unread()
        for _ in range(2):
            codec.encode_source("Häuser", unread=cuts, line=line)
            codec.encode_target("houses", unread=cuts, line=line)
        assert cuts.cut.count == count and cuts.cut.first == first


def test_unknown_symbols_are_reported() -> None:
    codec = train()
    unread = Unread()
    codec.encode_source("Haus", unread=unread, line=1)
    assert unread.summary() == ""
    codec.encode_source("Ωaus", unread=unread, line=2)
    assert unread.unknown.count == 1 and unread.unknown.first == [2]
    assert unread.summary() == (
        "1 line holds symbols that the vocabulary lacks, all read as one unknown symbol (line 2)."
    )
    for line in range(3, 10):
        codec.encode_source("Ω", unread=unread, line=line)
    assert "8 lines hold symbols" in unread.summary() and "(line 2, 3, 4, 5, 6 ...)" in unread.summary()


def test_normalisation_is_part_of_the_codec() -> None:
    codec = train(lowercase=True, collapse_spaces=True)
    assert codec.normalize(" Ha\u0308user \t x\u00a0 ") == "häuser x"
    assert codec.encode_source("HA\u0308USER") == codec.encode_source("häuser")


@pytest.mark.parametrize("options", [{}, {"is_joint": True}, {"target": {"kind": "word"}}])
def test_loaded_equals_saved(options: dict[str, object], tmp_path: Path) -> None:
    codec = train(**options, lowercase=True, max_source_length=7)
    codec.save(tmp_path)
    loaded = Codec.load(tmp_path)
    assert loaded.config == codec.config and loaded.is_shared == codec.is_shared
    assert loaded.encode_source("Zwei Häuser") == codec.encode_source("Zwei Häuser")
    assert loaded.encode_target("two houses") == codec.encode_target("two houses")
    assert loaded.fingerprint() == codec.fingerprint() != train().fingerprint()


@pytest.mark.parametrize("name", ["codec.json", "tokenizer.source.json", "tokenizer.target.json"])
@pytest.mark.parametrize(
    "content",
    [None, b"", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"kind": "character", "symbols": ["a", "a"]}'],
)
def test_damage_is_named(name: str, content: bytes | None, tmp_path: Path) -> None:
    train().save(tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BundleError, match=name):
        Codec.load(tmp_path)


def test_a_target_s_tokenizer_and_a_joint_one_exclude_each_other() -> None:
    character = {"kind": "character"}
    message = r"^`text\.target` would not be used.* Leave the table out, or set `text\.is_joint = false`\."
    with pytest.raises(ConfigError, match=message):
        parse_config(TextConfig, {"source": character, "target": {"kind": "word"}, "is_joint": True}, prefix="text")
    # The same as the source's says no other thing.
    parse_config(TextConfig, {"source": character, "target": character, "is_joint": True})


def test_training_reads_an_iterator_once() -> None:
    codec = Codec.train(parse_config(TextConfig, {"source": {"kind": "character"}}), iter(PAIRS))
    assert codec.fingerprint() == train().fingerprint()
    with pytest.raises(DataError, match="no training examples"):
        train([])


def test_labels(tmp_path: Path) -> None:
    labels = LabelSet.collect(["spam", "ham", "spam"])
    assert labels.names == ("ham", "spam") and labels.index("spam") == 1 and len(labels) == 2
    labels.save(tmp_path)
    assert LabelSet.load(tmp_path).names == labels.names
    with pytest.raises(DataError, match=r"mail.tsv:3: the label 'span' .*Did you mean `spam`"):
        labels.index("span", "mail.tsv", 3)
    with pytest.raises(DataError, match="at least 2"):
        LabelSet.collect(["spam"])
    (tmp_path / "labels.json").write_text('{"names": ["spam", 3]}')
    with pytest.raises(BundleError, match=r"labels\.json"):
        LabelSet.load(tmp_path)
