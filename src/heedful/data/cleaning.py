"""Which examples are fit to train on, and whether the test has leaked into them."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Literal

from pydantic import Field

from heedful.core.config import Config
from heedful.data.example import Example
from heedful.data.report import ReadReport


class CleaningConfig(Config):
    """What is dropped from the training data; dev and test data are taken as they are.

    Attributes:
        drop_empty: drop rows whose source, target or label is blank.
        drop_duplicates: drop a row if source, target and label equal an earlier row's (some 100 bytes of memory a row);
            rows of language models are kept.
        max_characters: longest source or target, in characters.
        max_length_ratio: how many times longer, in characters, one side may be than the other, both counted with 10
            added so that short texts are not hit; absent for no limit.
        too_long: what to do with rows longer than the text's `max_source_length` or `max_target_length` in symbols.
        overlap: what to do with rows whose source (or target, where there is no source) is also in dev or test,
            compared without case and spacing.
    """

    drop_empty: bool = True
    drop_duplicates: bool = True
    max_characters: int = Field(default=5000, ge=1)
    max_length_ratio: float | None = Field(default=None, ge=1)
    too_long: Literal["drop", "truncate"] = "drop"
    overlap: Literal["warn", "drop", "ignore"] = "warn"


class HeldOut:
    """The texts of dev and test, to be recognised in the training data."""

    def __init__(self, examples: Iterable[Example] = ()) -> None:
        self._keys = {_overlap_key(each) for each in examples}

    def __contains__(self, example: Example) -> bool:
        return bool(self._keys) and _overlap_key(example) in self._keys


def clean(
    examples: Iterable[Example], config: CleaningConfig, report: ReadReport, held_out: HeldOut | None = None
) -> Iterator[Example]:
    """Yield the examples that are fit to train on, and count the others in the report.

    Args:
        examples: as read.
        config: what to drop.
        report: collects what was dropped and why, and a warning if the held-out texts were met.
        held_out: texts of dev and test.
    """
    seen: set[bytes] = set()
    num_leaked, first_leak = 0, None
    for example in examples:
        reason = _unfit(example, config)
        if reason is None and config.drop_duplicates and example.source is not None:
            key = _digest(example.source, example.target, example.label)
            reason = "duplicates" if key in seen else None
            seen.add(key)
        if reason is None and held_out is not None and config.overlap != "ignore" and example in held_out:
            num_leaked += 1
            first_leak = first_leak or example
            reason = "also in dev or test" if config.overlap == "drop" else None
        if reason is not None:
            report.drop(reason, example.path, example.line)
            continue
        report.num_kept += 1
        yield example
    if first_leak and config.overlap == "warn":
        report.warnings.append(
            f"{num_leaked:,} training rows are also in dev or test (first at {first_leak.path}:{first_leak.line}), "
            'so scores will be too good. Set `data.cleaning.overlap = "drop"` to leave them out.'
        )


def _unfit(example: Example, config: CleaningConfig) -> str | None:
    """Return why one example alone should be dropped, or None."""
    texts = [each for each in (example.source, example.target) if each is not None]
    if config.drop_empty and not all(each.strip() for each in (*texts, *_present(example.label))):
        return "with an empty side"
    lengths = [len(each) for each in texts]
    if max(lengths) > config.max_characters:
        return f"longer than {config.max_characters:,} characters"
    if config.max_length_ratio is not None and max(lengths) + 10 > config.max_length_ratio * (min(lengths) + 10):
        return f"with one side more than {config.max_length_ratio:g} times longer"
    return None


def _present(text: str | None) -> tuple[str, ...]:
    return () if text is None else (text,)


def _overlap_key(example: Example) -> bytes:
    text = example.target if example.source is None else example.source
    return _digest(" ".join((text or "").casefold().split()))


def _digest(*texts: str | None) -> bytes:
    joined = "\0".join("\1" if each is None else each for each in texts)
    return hashlib.blake2b(joined.encode("utf-8", errors="surrogatepass"), digest_size=12).digest()
