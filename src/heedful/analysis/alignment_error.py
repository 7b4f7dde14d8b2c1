"""How far alignments are from those that people made: precision, recall, alignment error rate."""

from collections.abc import Iterable
from dataclasses import dataclass

from heedful.analysis.alignment import Links


@dataclass(frozen=True)
class GoldLine:
    """What people say of one pair of texts.

    Attributes:
        sure: links that everybody would make.
        possible: links that may be made, the sure ones included.
        source: the source text, words between spaces; None where the file does not have it.
        target: the target text likewise.
    """

    sure: Links
    possible: Links
    source: str | None = None
    target: str | None = None


@dataclass(frozen=True)
class AlignmentErrors:
    """Alignments counted against gold ones (Och and Ney 2003, section 5): A against sure S and possible P, S within P.

    Attributes:
        num_links: |A|.
        num_sure: |S|.
        num_in_sure: |A & S|.
        num_in_possible: |A & P|.
    """

    num_links: int
    num_sure: int
    num_in_sure: int
    num_in_possible: int

    @property
    def precision(self) -> float:
        """Return the share of links that are possible, ``|A & P| / |A|``; 0 without links."""
        return self.num_in_possible / max(self.num_links, 1)

    @property
    def recall(self) -> float:
        """Return the share of sure links that were found, ``|A & S| / |S|``; 0 without sure links."""
        return self.num_in_sure / max(self.num_sure, 1)

    @property
    def aer(self) -> float:
        """Return the alignment error rate, ``1 - (|A & S| + |A & P|) / (|A| + |S|)``; 0 where both are empty."""
        size = self.num_links + self.num_sure
        return 1 - (self.num_in_sure + self.num_in_possible) / size if size else 0.0

    def to_values(self) -> dict[str, float]:
        """Return plain values for JSON: shares from 0 to 1."""
        return {
            "aer": self.aer,
            "precision": self.precision,
            "recall": self.recall,
            "links": self.num_links,
            "sure": self.num_sure,
        }

    def to_text(self) -> str:
        """Return a line for people, in percent."""
        return (
            f"AER {100 * self.aer:.2f}, precision {100 * self.precision:.2f}, recall {100 * self.recall:.2f} "
            f"({self.num_links:,} links, {self.num_sure:,} sure)"
        )


def count_errors(alignments: Iterable[Links], gold: Iterable[GoldLine]) -> AlignmentErrors:
    """Count the links of a whole test set; sentences are not averaged.

    Raises:
        ValueError: there are not as many alignments as gold lines.
    """
    num_links = num_sure = num_in_sure = num_in_possible = 0
    for links, line in zip(alignments, gold, strict=True):
        num_links += len(links)
        num_sure += len(line.sure)
        num_in_sure += len(links & line.sure)
        num_in_possible += len(links & line.possible)
    return AlignmentErrors(num_links, num_sure, num_in_sure, num_in_possible)
