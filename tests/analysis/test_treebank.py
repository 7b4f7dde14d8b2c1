"""Reading CoNLL-U: what stands where, and what is wrong where."""

import gzip
from pathlib import Path

import pytest

from heedful.analysis.treebank import read_treebank
from heedful.core.errors import DataError

TREE = """\
# newdoc id = 1
# sent_id = 1-1
# text = Im Haus don't (schläft er) heute.
1-2\tIm\t_\t_\t_\t_\t_\t_\t_\t_
1\tin\tin\tADP\t_\t_\t3\tcase\t_\t_
2\tdem\tder\tDET\t_\t_\t3\tdet\t_\t_
3\tHaus\tHaus\tNOUN\t_\t_\t7\tobl\t_\t_
4-5\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
4\tdo\tdo\tAUX\t_\t_\t7\taux\t_\t_
5\tn't\tnot\tPART\t_\t_\t7\tadvmod:neg\t_\t_
5.1\tzero\tzero\tVERB\t_\t_\t_\t_\t7:conj\t_
6\t(\t(\tPUNCT\t_\t_\t7\tpunct\t_\tSpaceAfter=No
7\tschläft\tschlafen\tVERB\t_\t_\t0\troot\t_\t_
8\ter\ter\tPRON\t_\t_\t7\tnsubj:outer\t_\tSpaceAfter=No
9\t)\t)\tPUNCT\t_\t_\t7\tpunct\t_\t_
10\theute\theute\tADV\t_\t_\t7\tadvmod\t_\tSpaceAfter=No
11\t.\t.\tPUNCT\t_\t_\t7\tpunct\t_\t_

"""


def write(folder: Path, text: str) -> Path:
    path = folder / "trees.conllu"
    path.write_text(text, "utf-8")
    return path


def word(place: int, form: str, head: int = 0, relation: str = "root", misc: str = "_") -> str:
    return f"{place}\t{form}\t_\t_\t_\t_\t{head}\t{relation}\t_\t{misc}\n"


def test_words_units_and_places(tmp_path: Path) -> None:
    (tree,) = read_treebank(write(tmp_path, TREE))
    assert (tree.line, len(tree.words)) == (1, 11)
    assert tree.units == ("Im", "Haus", "do", "n't", "(", "schläft", "er", ")", "heute", ".")
    assert [each.unit for each in tree.words] == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [each.head for each in tree.words] == [2, 2, 6, 6, 6, 6, None, 6, 6, 6, 6]
    assert [each.relation for each in tree.words][3:8] == ["aux", "advmod", "punct", "root", "nsubj"]


def test_without_a_text_the_words_make_it(tmp_path: Path) -> None:
    rows = word(1, "New York", 2, "obl") + word(2, "naps", 0, misc="SpaceAfter=No") + word(3, "!", 2, "punct")
    path = tmp_path / "trees.conllu.gz"
    path.write_bytes(gzip.compress((rows + "\n\n" + word(1, "Yes")).encode()))
    one, other = read_treebank(path)
    assert (one.text, other.text, other.line) == ("New York naps!", "Yes", 6)
    assert one.units == ("New York", "naps", "!")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("1\tword\n", 1, "2 columns, but CoNLL-U has 10"),
        (word(1, "a").replace("1\t", "x\t", 1), 1, "`x` is no word's number"),
        (word(1, "a") + word(3, "b", 1), 2, "word 3 follows word 1"),
        (word(1, "a").replace("\t0\t", "\t_\t"), 1, "the head of word 1 is `_`, not a number"),
        (word(1, "a") + word(2, "b", 3), 2, "word 2 has the head 3, which cannot be"),
        (word(1, "a", 1), 1, "word 1 has the head 1, which cannot be"),
        (word(1, "a") + word(2, "b", 3) + word(3, "c", 2), 2, "heads lead round in a circle: words 2, 3"),
        (word(1, "a", 2) + word(2, "b", 3) + word(3, "c", 1), 1, "heads lead round in a circle: words 1, 2, 3"),
        (word(1, "a", 3) + word(2, "b", 3) + word(3, "c", 2), 1, "heads lead round in a circle: words 2, 3"),
        ("2-3\tab" + "\t_" * 8 + "\n" + word(1, "a"), 1, "`2-3` does not stand before its words"),
        ("1-3\tab" + "\t_" * 8 + "\n" + word(1, "a"), 1, "reaches to word 3, but the sentence has 1"),
        ("# text = a c\n" + word(1, "a") + word(2, "b", 1), 3, "the treebank's word `b` is not what follows"),
        ("# text = a b c\n" + word(1, "a") + word(2, "b", 1), 1, "the text goes on behind the last word: `c`"),
        ("# text = a\n\n", 1, "comments without a sentence"),
    ],
)
def test_faults_are_told_with_their_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=f"{path}:{line}: ") as caught:
        read_treebank(path)
    assert message in str(caught.value)


def test_a_file_without_sentences(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no sentence in it"):
        read_treebank(write(tmp_path, "\n\n"))
