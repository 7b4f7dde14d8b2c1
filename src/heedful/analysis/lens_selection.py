"""One matrix of a view, chosen by kind, layer, head and measure, as terminal and paper draw it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from heedful.analysis.lens import LensSide, LensSite, LensView, Measure, measures_of
from heedful.analysis.reading import by_words
from heedful.core.errors import ConfigError, did_you_mean

NEAREST_TO_OUTPUT = ("cross", "pooling", "decoder", "encoder")
"""Which kind of attention is shown unless one is asked for."""

MEASURE_NAMES = {"weights": "attention weights", "norms": "value-weighted norms", "rollout": "attention rollout"}


@dataclass(frozen=True)
class Selection:
    """What to show.

    Attributes:
        kind: of attention; None takes the nearest to the output.
        layer: from 0; None takes the highest that has heads.
        head: from 0; None takes all together: the mean of their weights, the norms of their sum. A rollout has no
            heads.
        measure: what the numbers are.
        has_words: between words rather than positions.
    """

    kind: str | None = None
    layer: int | None = None
    head: int | None = None
    measure: Measure = "weights"
    has_words: bool = False


@dataclass(frozen=True)
class Selected:
    """A matrix ready to be drawn.

    Attributes:
        title: which one it is.
        values: a row for each query.
        queries: what attends.
        keys: what is attended to.
    """

    title: str
    values: Float[Tensor, "Q K"]
    queries: tuple[str, ...]
    keys: tuple[str, ...]


def select(view: LensView, selection: Selection) -> Selected:
    """Return the matrix that was asked for.

    Raises:
        ConfigError: the view has no such attention, head or measure.
    """
    if selection.measure == "rollout" and selection.head is not None:
        raise ConfigError("A rollout is of all heads together, so `--head` does not fit. Leave it out.")
    site = _site(view, selection)
    measure = selection.measure
    matrix = site.of_all_heads(measure) if selection.head is None else site.matrix(measure)
    if matrix is None:
        has = list(measures_of(view))
        raise ConfigError(f"`{site.path}` has no {selection.measure} here. {did_you_mean('', has)}")
    values, title = matrix.unpack(), f"{MEASURE_NAMES[selection.measure]}, {site.kind}, layer {site.layer}"
    if selection.measure == "rollout":
        title += ", all heads"
    elif selection.head is not None:
        if not 0 <= selection.head < site.num_heads:
            raise ConfigError(
                f"`--head` is {selection.head}, but `{site.path}` has {site.num_heads} heads, "
                f"0 to {site.num_heads - 1}."
            )
        values, title = values[selection.head, None], f"{title}, head {selection.head}"
    else:
        what = "sum" if measure == "norms" else "mean"
        title += f", {what} of {site.num_heads} heads" if site.num_heads > 1 else ""
    queries, keys = view.sides[site.queries], view.sides[site.keys]
    if selection.has_words:
        values = by_words(values, queries.word_of, keys.word_of)
    return Selected(title, values.mean(0), _labels(queries, selection), _labels(keys, selection))


def select_heads(view: LensView, selection: Selection) -> list[list[Selected]]:
    """Return the matrix of every head of a kind, a list for each layer; of one layer alone where that was chosen.

    Raises:
        ConfigError: the view has no such attention or measure, or one head was chosen, or a rollout, which has none.
    """
    if selection.head is not None or selection.measure == "rollout":
        raise ConfigError(
            "A picture of all heads has no place for `--head` or a rollout. Leave them out, or draw a matrix or lines."
        )
    last = _site(view, selection)
    layers = [each for each in view.sites if each.kind == last.kind and each.num_heads]
    if selection.layer is not None:
        layers = [last]
    return [
        [
            replace(
                select(view, replace(selection, kind=site.kind, layer=site.layer, head=head)),
                title=f"{site.kind} {site.layer}:{head}",
            )
            for head in range(site.num_heads)
        ]
        for site in layers
    ]


def _labels(side: LensSide, selection: Selection) -> tuple[str, ...]:
    return side.words if selection.has_words else side.pieces


def _site(view: LensView, selection: Selection) -> LensSite:
    kinds: Sequence[str] = view.kinds
    kind = selection.kind
    if kind is None:
        kind = next(each for each in NEAREST_TO_OUTPUT if each in kinds)
    if kind not in kinds:
        raise ConfigError(f"`--kind` is `{kind}`, which this model has not. {did_you_mean(kind, kinds)}")
    sites = [each for each in view.sites if each.kind == kind and each.num_heads]
    if selection.layer is not None:
        found = [each for each in sites if each.layer == selection.layer]
        if not found:
            layers = ", ".join(str(each.layer) for each in sites)
            raise ConfigError(f"`--layer` is {selection.layer}, but {kind} attention has heads in layers {layers}.")
        return found[0]
    if not sites:
        raise ConfigError(f"No head is left in any {kind} attention of this model. {did_you_mean('', kinds)}")
    return sites[-1]
