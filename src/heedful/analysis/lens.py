"""The lens: everything that the page, the file and the notebook show of one line, as one documented value.

`Lens` is the whole file, version 1 of its format: one view, or two of the same line side by side. It is plain JSON
(``to_values``), and loads back, checked (``from_values``). Matrices are written as `lens_matrix` says. Positions are
those of a `Reading`: the source ends with ``</s>``, a decoder reads ``<s> w1 .. wn`` and predicts ``w1 .. wn </s>``.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pydantic

from heedful.analysis.lens_matrix import LensValue, Matrix
from heedful.core.errors import DataError

FORMAT = "heedful-lens"
VERSION = 1

SideName = Literal["source", "target_input", "target_output", "answer"]
Kind = Literal["encoder", "decoder", "cross", "pooling"]
Measure = Literal["weights", "norms", "rollout"]


class LensSide(LensValue):
    """One sequence as text.

    Attributes:
        pieces: what a person sees of each position.
        words: the words between spaces, and each reserved symbol.
        word_of: for each position the index of its word.
    """

    pieces: tuple[str, ...]
    words: tuple[str, ...]
    word_of: tuple[int, ...]

    @pydantic.model_validator(mode="after")
    def _check(self) -> "LensSide":
        if len(self.word_of) != len(self.pieces) or not all(0 <= each < len(self.words) for each in self.word_of):
            raise ValueError("`word_of` must name a word for each piece")
        return self


class LensSite(LensValue):
    """One attention of the model.

    Attributes:
        path: its name for taps and gates.
        kind: what attends to what.
        layer: from 0, counted within its kind.
        num_heads: heads it has.
        head_dim: width of each.
        queries: the side whose positions attend.
        keys: the side whose positions are attended to.
        weights: what each key's value is multiplied by, ``H Q K``: softmaxed scores, lessened away from a centre where
            local attention predicts one; absent where they did not fit into the file.
        norms: lengths of the weighted, transformed values, ``H Q K`` (`lens_norms`); absent likewise.
        joint_norms: lengths of their sums over the heads, ``1 Q K``; absent likewise, and where one head is all.
        rollout: attention rolled out up to this layer, ``1 Q K`` (`lens_rollout`); absent also where states mix
            positions by other means than attention, as in recurrent models.
    """

    path: str
    kind: Kind
    layer: int = pydantic.Field(ge=0)
    num_heads: int = pydantic.Field(ge=0)
    head_dim: int = pydantic.Field(ge=0)
    queries: SideName
    keys: SideName
    weights: Matrix | None = None
    norms: Matrix | None = None
    joint_norms: Matrix | None = None
    rollout: Matrix | None = None

    def matrix(self, measure: Measure) -> Matrix | None:
        """Return what is measured in one way; None where it is absent."""
        matrices: dict[str, Matrix | None] = {"weights": self.weights, "norms": self.norms, "rollout": self.rollout}
        return matrices[measure]

    def of_all_heads(self, measure: Measure) -> Matrix | None:
        """Return that whose mean over the first axis is what is measured of all heads together."""
        return self.joint_norms if measure == "norms" and self.num_heads > 1 else self.matrix(measure)


class LensNumbers(LensValue):
    """What one attention computed, for whoever follows it number by number.

    Attributes:
        path: of the attention.
        query: ``H Q E``; absent where the score has none of its own (pooling).
        key: ``H K E``; absent where the score is no product of query and key: then `scores` says what it gave.
        value: ``H K E``.
        scores: as the score gave them, ``H Q K``, where there is no `key`.
        keep: 1 where the query may see the key, ``1 Q K``.
        factor: what each softmaxed score is multiplied by, ``1 Q K``, where local attention lessens its weights away
            from a centre; absent where the softmax gives the weights.
        context: the weighted sum of the values, ``H Q E``.
        share: what each head adds to the new vector, its context through its part of the output projection, ``H Q D``;
            absent where there is no such projection, or no room.
    """

    path: str
    query: Matrix | None = None
    key: Matrix | None = None
    value: Matrix
    scores: Matrix | None = None
    keep: Matrix
    factor: Matrix | None = None
    context: Matrix
    share: Matrix | None = None


class LensHead(LensValue):
    """One head of the model: its attention's path, and its number from 0."""

    path: str
    head: int = pydantic.Field(ge=0)


class LensSilence(LensValue):
    """What the model wrote while heads were silent.

    Attributes:
        heads: the silent ones.
        text: the answer.
        words: of the answer.
        log_prob: of the view's own target while they were silent.
    """

    heads: tuple[LensHead, ...]
    text: str
    words: tuple[str, ...]
    log_prob: float


class LensCauses(LensValue):
    """How much each head did for each symbol of the answer.

    Attributes:
        side: the side of the answer.
        log_probs: of each of its positions, given those before.
        heads: every head that was silenced, one at a time.
        losses: by how much the log-probability of a position fell when a head was silent (negative: it rose), ``heads
            positions``.
    """

    side: SideName
    log_probs: tuple[float, ...]
    heads: tuple[LensHead, ...]
    losses: Matrix


class LensView(LensValue):
    """How one model read one line.

    Attributes:
        name: of the bundle.
        task: its kind.
        model: its kind.
        source_text: as given, or None for a language model.
        target_text: the given target, text or label, else the model's own.
        is_forced: the target was given.
        sides: the sequences by name.
        sites: every attention, from the input to the output.
        numbers: of some attentions; what was left out stands in `notes`.
        causes: which heads did it; None where it was not asked for.
        silenced: answers with heads silent.
        notes: for people: what was cut or left out, and why.
    """

    name: str
    task: str
    model: str
    source_text: str | None
    target_text: str
    is_forced: bool
    sides: Mapping[SideName, LensSide]
    sites: tuple[LensSite, ...]
    numbers: tuple[LensNumbers, ...] = ()
    causes: LensCauses | None = None
    silenced: tuple[LensSilence, ...] = ()
    notes: tuple[str, ...] = ()

    @pydantic.model_validator(mode="after")
    def _check(self) -> "LensView":
        sites = {each.path: each for each in self.sites}
        for site in self.sites:
            for side in (site.queries, site.keys):
                if side not in self.sides:
                    raise ValueError(f"`{site.path}` needs the side `{side}`, which is missing")
            _check_shapes(site, len(self.sides[site.queries].pieces), len(self.sides[site.keys].pieces))
        silent = [*(self.causes.heads if self.causes else ()), *(head for each in self.silenced for head in each.heads)]
        for path in [*(each.path for each in self.numbers), *(each.path for each in silent)]:
            if path not in sites:
                raise ValueError(f"`{path}` is no attention of this view")
        return self

    def site(self, path: str) -> LensSite:
        """Return an attention by its path."""
        return next(each for each in self.sites if each.path == path)

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of attention that it has, in order."""
        return list(dict.fromkeys(each.kind for each in self.sites))


class Lens(LensValue):
    """The whole file.

    Attributes:
        format: always ``heedful-lens``.
        version: of the format.
        heedful: the version that wrote it.
        views: one, or two side by side.
    """

    format: Literal["heedful-lens"] = "heedful-lens"
    version: Literal[1] = 1
    heedful: str
    views: tuple[LensView, ...] = pydantic.Field(min_length=1, max_length=2)

    def to_values(self) -> dict[str, Any]:
        """Return plain values for JSON; what is absent is left out."""
        return self.model_dump(mode="json", exclude_none=True)

    def to_json(self) -> str:
        """Return the file's text: ASCII alone, so that no character of a line can do harm on its way."""
        return json.dumps(self.to_values(), ensure_ascii=True, separators=(",", ":"))

    @classmethod
    def from_values(cls, values: Any, path: str | None = None) -> "Lens":
        """Read plain values back, and check them.

        Args:
            values: what `to_values` gave.
            path: where they come from, for messages.

        Raises:
            DataError: they are no lens, one of another version, or damaged.
        """
        if not isinstance(values, Mapping) or values.get("format") != FORMAT:
            raise DataError("this is no lens. Write one with `heedful inspect ... --json FILE`.", path)
        if values.get("version") != VERSION:
            raise DataError(
                f"the lens has format version {values.get('version')!r}; this Heedful reads version {VERSION}. "
                f"It was written by Heedful {values.get('heedful', '?')}.",
                path,
            )
        try:
            return cls.model_validate({"views": (), **values})
        except pydantic.ValidationError as error:
            raise DataError(f"the lens is damaged: {_first(error)}. Write it again.", path) from None


def _check_shapes(site: LensSite, num_queries: int, num_keys: int) -> None:
    measured = ((site.weights, site.num_heads), (site.norms, site.num_heads), (site.joint_norms, 1), (site.rollout, 1))
    for matrix, heads in measured:
        if matrix is not None and matrix.shape != (heads, num_queries, num_keys):
            raise ValueError(
                f"a matrix of `{site.path}` has shape {list(matrix.shape)}, but its heads, queries and keys are "
                f"{[heads, num_queries, num_keys]}"
            )


def _first(error: pydantic.ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, found["loc"]))
    message = found["msg"].removeprefix("Value error, ")
    return f"`{place}`: {message}" if place else message


def measures_of(view: LensView) -> Iterator[Measure]:
    """Yield the measures that a view has for any of its attentions."""
    measures: tuple[Measure, ...] = ("weights", "norms", "rollout")
    for measure in measures:
        if any(site.matrix(measure) is not None for site in view.sites):
            yield measure
