"""Items that come one by one, taken several at a time, so that nothing read before a fault is lost."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from heedful.core.errors import HeedfulError

Item = TypeVar("Item")


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of `size` items, in order; the last may be shorter, and none is empty.

    Where the items end with an error of Heedful's, such as a line that is not text, those before it are yielded first:
    whoever answers chunk by chunk has answered all of them when the error is raised.

    Raises:
        HeedfulError: the items did.
    """
    chunk: list[Item] = []
    try:
        for item in items:
            chunk.append(item)
            if len(chunk) == size:
                yield chunk
                chunk = []
    except HeedfulError:
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk
