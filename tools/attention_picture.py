"""Draw the README's picture: where the demo's model looks in a word that is in no dictionary, as it says each sound.

The dictionary it learned from is free to use (BSD-style licence).

make demo
python tools/attention_picture.py                            # writes docs/images/attention.svg
python tools/attention_picture.py runs/demo pythonesque      # another run, another word
"""

import sys
from pathlib import Path

import heedful
from heedful.analysis import draw_svg
from heedful.runs.attending import picture_of

TARGET = Path(__file__).parent.parent / "docs" / "images" / "attention.svg"


def main(run: str = "runs/demo", word: str = "transformerly") -> None:
    """Write the picture.

    Raises:
        SystemExit: the run's model attends to nothing.
    """
    picture = picture_of(heedful.load(run).task, word)
    if picture is None:
        sys.exit(f"{run}: this model has no attention to draw.")
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    drawn = draw_svg(picture.weights, picture.queries, picture.keys, title=picture.title)
    TARGET.write_text(drawn + "\n", encoding="utf-8")
    print(f"{picture.title}: {TARGET}")


if __name__ == "__main__":
    main(*sys.argv[1:])
