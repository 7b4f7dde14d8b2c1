import pytest
from tests.pruning.models import make_task

from heedful.pruning import Lengths, count_operations, find_heads, reduce_task


def test_operations_by_hand() -> None:
    # Width 12, 3 heads of 4, 16 inner, 2 + 2 layers; 5 symbols read, 7 written, 2 hypotheses: 14 steps.
    task, _, _ = make_task("transformer")
    found = count_operations(task.model, Lengths(source=5.0, target=7.0, num_hypotheses=2))
    square = 12 * 12
    encoder = 5 * (4 * square + 2 * 5 * 12)
    own = 14 * (4 * square + 2 * 3.5 * 12)
    cross = 14 * (2 * square + 2 * 5 * 12) + 5 * 2 * square
    assert found.attention == 2 * (encoder + own + cross)
    assert found.feed_forward == 2 * (5 + 14) * 2 * 12 * 16
    assert found.output == 14 * 12 * task.codec.target_size
    assert found.total == found.attention + found.feed_forward + found.output


@pytest.mark.parametrize(("name", "output"), [("classifier", 0), ("language_model", 7 * 12)])
def test_models_of_one_stack(name: str, output: int) -> None:
    task, _, _ = make_task(name)
    lengths = Lengths(source=5.0, target=7.0)
    found = count_operations(task.model, lengths)
    assert found.output == output * (task.codec.target_size or 0)
    nothing = reduce_task(task, {site.path: () for site in find_heads(task.model).sites})
    left = count_operations(nothing.model, lengths)
    assert left.attention == 0 and left.feed_forward == found.feed_forward
    assert left.total == left.feed_forward + left.output


def test_a_window_sees_less() -> None:
    task, _, _ = make_task("windowed")
    near = count_operations(task.model, Lengths(source=50.0, target=2.0))
    narrow = count_operations(task.model, Lengths(source=100.0, target=2.0))
    assert narrow.feed_forward - near.feed_forward == 2 * 50 * 2 * 12 * 16
    own = 50 * (4 * 144 + 2 * 3 * 12)
    cross = 2 * 2 * 50 * 12 + 50 * 2 * 144
    assert narrow.attention - near.attention == 2 * (own + cross)
