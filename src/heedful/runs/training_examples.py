"""Training data read once more after training: some of the examples, each as likely."""

import random
from collections.abc import Callable
from pathlib import Path

from heedful.core.errors import DataError
from heedful.data.example import Example
from heedful.data.opening import STDIN
from heedful.data.readers import AnySourceConfig, data_paths, read_examples
from heedful.data.report import ReadReport


def draw_examples(
    source: AnySourceConfig, most: int, *, is_wanted: Callable[[Example], bool] = lambda _: True
) -> list[Example]:
    """Return so many examples at most, each as likely (Vitter 1985, algorithm R); all are read, and so checked.

    Args:
        source: of the training data.
        most: at least 1.
        is_wanted: says of an example whether it is one of those to draw from.

    Raises:
        DataError: they came on standard input, or cannot be read as asked.
    """
    if STDIN in data_paths(source):
        raise DataError("they came on standard input, which is read once.")
    draw = random.Random(1)
    drawn: list[Example] = []
    for index, example in enumerate(filter(is_wanted, read_examples(source, Path.cwd(), ReadReport()))):
        if index < most:
            drawn.append(example)
        elif (place := draw.randrange(index + 1)) < most:
            drawn[place] = example
    return drawn
