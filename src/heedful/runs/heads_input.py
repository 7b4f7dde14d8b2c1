"""The text, trees and gold alignments that heads are looked at on, read once and checked against each other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heedful.analysis.alignment_error import GoldLine
from heedful.analysis.alignment_files import check_range
from heedful.analysis.heads import Line
from heedful.analysis.treebank import Tree, read_treebank
from heedful.core.errors import ConfigError, DataError
from heedful.runs.alignments import read_gold
from heedful.runs.loaded import LoadedModel
from heedful.runs.streams import check_stdin, open_lines


@dataclass(frozen=True)
class HeadsData:
    """What heads are looked at on.

    Attributes:
        text: the lines that models read; absent means those of the treebank, else of the gold alignments.
        targets: a file for each bundle, or one for all; absent means the models' own answers.
        treebank: CoNLL-U of the text.
        gold: word alignments, in a table with their own sentences or, as Pharaoh lines, of the text and its targets.
        is_one_based: words count from 1 in them.
    """

    text: Path | None = None
    targets: tuple[Path, ...] = ()
    treebank: Path | None = None
    gold: Path | None = None
    is_one_based: bool = False


class HeadsInput:
    """The same, read.

    Args:
        data: where it lies.

    Raises:
        ConfigError: there is nothing to read, or standard input is to be read twice.
        DataError: a file cannot be read.
    """

    def __init__(self, data: HeadsData) -> None:
        self.data = data
        check_stdin(data.text, *data.targets, data.treebank)
        self.trees = None if data.treebank is None else read_treebank(data.treebank)
        self.gold = None if data.gold is None else read_gold(data.gold, is_one_based=data.is_one_based)
        self.texts = self._read_texts()

    def _read_texts(self) -> list[str]:
        if self.data.text is not None:
            with open_lines(self.data.text) as lines:
                texts = list(lines)
            if not any(text.strip() for text in texts):
                raise DataError("there is no text in it.", self.data.text)
            return texts
        if self.trees is not None:
            return [each.text for each in self.trees]
        if self._is_gold_the_text:
            assert self.gold is not None
            return [each.source or "" for each in self.gold]
        raise ConfigError(
            "there is nothing to read. Name a `--text`, a `--treebank`, or `--gold` alignments in a "
            "table with their texts."
        )

    @property
    def _is_gold_the_text(self) -> bool:
        is_alone = self.data.text is None and self.trees is None
        return is_alone and self.gold is not None and all(each.source is not None for each in self.gold)

    def lines(self, model: LoadedModel, target: Path | None) -> list[Line]:
        """Return what a model reads, with its targets.

        Raises:
            ConfigError: targets for a language model.
            DataError: files that do not go together.
        """
        is_read = model.task.codec.source is not None
        targets = self._targets(target, model) if is_read else [None] * len(self.texts)
        if target is not None and not is_read:
            raise ConfigError(f"{model.path}: a language model reads one text. Leave out `--target`.")
        trees: Sequence[Tree | None] = [None] * len(self.texts)
        if self.trees is not None:
            self._check_trees(model)
            trees = self.trees
        return [
            Line(text if is_read else None, answer if is_read else text, tree)
            for text, answer, tree in zip(self.texts, targets, trees, strict=True)
        ]

    def _targets(self, target: Path | None, model: LoadedModel) -> list[str | None]:
        if target is not None:
            with open_lines(target) as found:
                targets: list[str | None] = list(found)
            self._check_count(len(targets), target, "lines")
            return targets
        if self._is_gold_the_text and model.task.codec.target is not None:
            assert self.gold is not None
            return [each.target for each in self.gold]
        return [None] * len(self.texts)

    def gold_lines(self, lines: Sequence[Line]) -> list[Line] | None:
        """Return the lines that the gold alignments are of, their own or those of the text; None without them.

        Raises:
            DataError: they have no texts and the text no targets, or links lie outside.
        """
        if self.gold is None:
            return None
        assert self.data.gold is not None
        gold = self.gold
        if any(each.source is None for each in gold):
            if any(each.target is None for each in lines):
                raise DataError(
                    "links without their texts are read beside a `--text` and its `--target`.", self.data.gold
                )
            self._check_count(len(gold), self.data.gold, "lines")
            pairs = zip(gold, lines, strict=True)
            gold = [replace(each, source=line.source, target=line.target) for each, line in pairs]
            for number, each in enumerate(gold, start=1):
                check_range(each.possible, each.source, each.target, str(self.data.gold), number)
        return [_gold_line(each) for each in gold]

    def _check_count(self, found: int, path: Path, unit: str) -> None:
        if found != len(self.texts):
            raise DataError(
                f"{found:,} {unit}, but the text has {len(self.texts):,} lines. They must go together.", path
            )

    def _check_trees(self, model: LoadedModel) -> None:
        assert self.trees is not None and self.data.treebank is not None
        self._check_count(len(self.trees), self.data.treebank, "sentences")
        for number, (tree, text) in enumerate(zip(self.trees, self.texts, strict=True), start=1):
            one, other = ("".join(model.task.codec.normalize(each).split()) for each in (tree.text, text))
            if one != other:
                pairs = enumerate(zip(one, other, strict=False))
                place = next((index for index, (left, right) in pairs if left != right), min(len(one), len(other)))
                raise DataError(
                    f"the sentence is not line {number} of the text: `{one[place : place + 20]}` against "
                    f"`{other[place : place + 20]}`. Leave out `--text` to read the treebank's own sentences.",
                    tree.path,
                    tree.line,
                )


def _gold_line(gold: GoldLine) -> Line:
    source, target = gold.source or "", gold.target or ""
    return Line(source, target, None, tuple(source.split()), tuple(target.split()), gold)
