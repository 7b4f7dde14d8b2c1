"""From a reading to a view of the lens: what is kept, how exactly, and what must be left out of a file."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from heedful.analysis.lens import LensCauses, LensHead, LensNumbers, LensSide, LensSite, LensView, SideName
from heedful.analysis.lens_causes import losses_of_silence
from heedful.analysis.lens_matrix import Code, Matrix
from heedful.analysis.lens_norms import joint_norms, value_weighted_norms
from heedful.analysis.lens_numbers import numbers_of
from heedful.analysis.lens_rollout import roll_out
from heedful.analysis.reading import Reading, Side
from heedful.models.interfaces import AttentionSite
from heedful.tasks.task import Task

FINE_CELLS = 400_000
"""Up to so many numbers two bytes each are written, beyond that one."""

MATRIX_CHARACTERS = 7_600_000
"""Room for all weights, norms and rollouts, as they are written."""

NUMBERS_CHARACTERS = 1_600_000
"""Room for attention in numbers."""

KINDS: tuple[str, ...] = ("cross", "decoder", "encoder", "pooling")
"""The order in which attentions are kept in numbers where there is no room for all, the highest layers first."""

SIDES: Mapping[str, tuple[SideName, SideName]] = {
    "encoder": ("source", "source"),
    "decoder": ("target_input", "target_input"),
    "cross": ("target_output", "source"),
    "pooling": ("answer", "source"),
}
"""The sides that attend and are attended to, by kind of attention."""


@dataclass
class _Room:
    """Room that is taken piece by piece; what does not fit is None."""

    characters: int
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def keep(self, matrix: Matrix, what: str, site: AttentionSite) -> Matrix | None:
        """Return the matrix if there is room for it."""
        if len(matrix.data) > self.characters:
            self.left_out.setdefault(f"No room in the file for the {what} of", []).append(_short(site))
            return None
        self.characters -= len(matrix.data)
        return matrix


def view_of(
    task: Task, reading: Reading, name: str, *, notes: Iterable[str] = (), with_causes: bool = True
) -> LensView:
    """Return all that the lens shows of a line.

    Args:
        task: whose model read it.
        reading: recorded with the pattern ``*``.
        name: of the bundle.
        notes: for people, to stand with those about what is left out.
        with_causes: measure what each head did for each symbol, which takes a pass over the line for every head.
    """
    sites, left_out = _sites(task, reading)
    numbers, not_followed = _numbers(task, reading)
    said = [*notes, *(f"{what} {', '.join(names)}." for what, names in {**left_out, **not_followed}.items())]
    return LensView(
        name=name,
        task=task.config.model_dump()["task"],
        model=task.config.model.kind,
        source_text=reading.source_text,
        target_text=reading.target_text,
        is_forced=reading.is_forced,
        sides=_sides(reading),
        sites=sites,
        numbers=numbers,
        causes=_causes(task, reading) if with_causes else None,
        notes=tuple(said),
    )


def _short(site: AttentionSite) -> str:
    return f"{site.kind} {site.layer}"


def _sides(reading: Reading) -> dict[SideName, LensSide]:
    sides: dict[SideName, Side | None] = {
        "source": reading.source,
        "target_input": reading.target_input,
        "target_output": reading.target_output,
    }
    found = {name: LensSide(pieces=each.pieces, words=each.words, word_of=each.word_of)
             for name, each in sides.items() if each is not None}  # fmt: skip
    if reading.target_input is None:
        label = (reading.target_text,)
        found["answer"] = LensSide(pieces=label, words=label, word_of=(0,))
    return found


def _sites(task: Task, reading: Reading) -> tuple[tuple[LensSite, ...], dict[str, list[str]]]:
    """Return the attentions with their matrices, and what there is no room for, with whose it is."""
    maps = reading.maps
    attentions = task.model.multihead_attentions()
    rollouts = roll_out(maps) if attentions else {}
    num_cells = sum(2 * each.weights.numel() for each in maps) + sum(each.numel() for each in rollouts.values())
    num_cells += sum(each.weights[0].numel() for each in maps if each.site.num_heads > 1)
    code: Code = "u2" if num_cells <= FINE_CELLS else "u1"
    room = _Room(MATRIX_CHARACTERS)

    def pack(each: AttentionSite, tensor: Tensor, what: str) -> Matrix | None:
        return room.keep(Matrix.pack(tensor, code), what, each)

    # The highest layers are the nearest to the answer: where room ends, they have theirs.
    ordered = sorted(maps, key=lambda each: -each.site.layer)
    weights = {each.site.path: pack(each.site, each.weights, "weights") for each in ordered}
    rolled = {
        each.site.path: pack(each.site, rollouts[each.site.path][None], "rollout")
        for each in ordered
        if each.site.path in rollouts
    }
    norms, joint = {}, {}
    for each in ordered:
        path, values = each.site.path, _point(reading, each.site, "value")
        if each.site.num_heads > 1:
            joint[path] = pack(
                each.site, joint_norms(each.weights, values, attentions.get(path))[None], "norms of all heads"
            )
        norms[path] = pack(each.site, value_weighted_norms(each.weights, values, attentions.get(path)), "norms")
    sites = tuple(
        LensSite(
            path=each.site.path,
            kind=each.site.kind,
            layer=each.site.layer,
            num_heads=each.site.num_heads,
            head_dim=each.site.head_dim,
            queries=SIDES[each.site.kind][0],
            keys=SIDES[each.site.kind][1],
            weights=weights[each.site.path],
            norms=norms[each.site.path],
            joint_norms=joint.get(each.site.path),
            rollout=rolled.get(each.site.path),
        )
        for each in maps
    )
    return sites, room.left_out


def _point(reading: Reading, site: AttentionSite, name: str) -> Tensor:
    """Return what was recorded at a point in the reading's row, padding cut off: ``H P ..``."""
    num_queries, num_keys = next(each.weights.shape[1:] for each in reading.maps if each.site == site)
    value = reading.recording.points[f"{site.path}.{name}"][reading.row]
    if name in ("scores", "weights", "factor"):
        return value[:, :num_queries, :num_keys]
    return value[:, : num_queries if name in ("query", "context") else num_keys]


def _numbers(task: Task, reading: Reading) -> tuple[tuple[LensNumbers, ...], dict[str, list[str]]]:
    """Return the numbers of as many attentions as there is room for, and which are left out."""
    attentions = task.model.multihead_attentions()
    found, left_out = [], []
    characters = NUMBERS_CHARACTERS
    maps = [each for each in reading.maps if each.site.num_heads]
    for each in sorted(maps, key=lambda each: (-each.site.layer, KINDS.index(each.site.kind))):
        names = {point.rpartition(".")[2] for point in reading.recording.points if _is_of(point, each.site)}
        points = {name: _point(reading, each.site, name) for name in names}
        for with_share in (True, False) if _fewest_characters(points) <= characters else ():
            numbers = numbers_of(each.site, points, attentions.get(each.site.path), with_share=with_share)
            if (size := _size(numbers)) <= characters:
                found.append(numbers)
                characters -= size
                break
        else:
            left_out.append(_short(each.site))
    return tuple(found), {"Not kept in numbers, for want of room:": left_out} if left_out else {}


def _fewest_characters(points: Mapping[str, Tensor]) -> int:
    """Return a size that numbers of such tensors are hardly below, so that what cannot fit is not packed first."""
    kept = [tensor for name, tensor in points.items() if name not in ("weights", "scores")]
    return 4 * sum(each.numel() for each in kept)


def _is_of(point: str, site: AttentionSite) -> bool:
    return point.rpartition(".")[0] == site.path


def _size(numbers: LensNumbers) -> int:
    return sum(len(each.data) for each in _matrices(numbers))


def _matrices(numbers: LensNumbers) -> Iterator[Matrix]:
    values = (getattr(numbers, name) for name in LensNumbers.model_fields)
    return (each for each in values if isinstance(each, Matrix))


def _causes(task: Task, reading: Reading) -> LensCauses:
    heads = [(each.site.path, head) for each in reading.maps for head in range(each.site.num_heads)]
    batch = reading.recording.batch
    with task.inference():
        before, losses = losses_of_silence(task.model, batch, heads)
    return LensCauses(
        side="answer" if reading.target_output is None else "target_output",
        log_probs=tuple(before.tolist()),
        heads=tuple(LensHead(path=path, head=head) for path, head in heads),
        losses=Matrix.pack(losses, "f4"),
    )
