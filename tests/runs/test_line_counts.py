"""One line in, one line out, whatever the lines hold and however the answer is written."""

import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heedful import runs
from heedful.runs.loaded import LoadedModel
from heedful.runs.streams import format_predictions, to_json_line
from heedful.text.lines import read_lines

ODD = "ab \t\r\x1b\x85\u2028\u202e\ufeff\x7f世é"
LINES = st.lists(st.text(st.sampled_from(ODD) | st.characters(codec="utf-8", exclude_characters="\n\0"), max_size=6))


@pytest.fixture(scope="module")
def model(reverser: Path) -> LoadedModel:
    return runs.load(reverser, settings=["search.max_length=8"])


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LINES, st.sampled_from(["text", "jsonl"]), st.booleans(), st.sampled_from([None, 2]), st.booleans())
def test_as_many_lines_go_out_as_come_in(
    model: LoadedModel, texts: list[str], output_format: str, with_scores: bool, num_best: int | None, ends: bool
) -> None:
    raw = "\n".join(texts).encode() + (b"\n" if ends else b"")
    expected = raw.count(b"\n") + (not raw.endswith(b"\n") and raw.removeprefix(b"\xef\xbb\xbf") != b"")
    predictions = model.predict(read_lines(io.BytesIO(raw), "in"), num_best=num_best, chunk_lines=3)
    written = list(format_predictions(predictions, output_format, with_scores=with_scores))
    assert len(written) == expected
    assert all(each.endswith("\n") and len(each.splitlines()) == 1 for each in written)


def test_json_lines_have_no_other_line_end() -> None:
    assert to_json_line({"a": "\u2028\x85\x9b\t"}) == '{"a": "\\u2028\\u0085\\u009b\\t"}\n'
