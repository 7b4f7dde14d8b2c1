"""What a linear probe reads from a table of positions (Wang and Chen 2020, the analysis of features).

Two questions: where does this position stand (regression), and which of two comes first (classification)? Everything is
scored on positions that the probe has not seen: five folds, and a pair is tested only when both of its positions are
held out. Beside each score stand the chance level and the same probe on random vectors of the same shape, which no
trained table should be confused with.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

NUM_FOLDS = 5
LEAST_POSITIONS = 10
NUM_PAIRS = 2000
_PENALTIES = torch.logspace(-8, 2, 21, dtype=torch.float64)
_ORDER_PENALTY = 1e-3


@dataclass(frozen=True, eq=False)
class ProbeScores:
    """What was read from one table.

    Attributes:
        predicted: where the probe puts each position when it is held out.
        position_error: mean distance from the true place, in positions.
        position_r2: share of the variance explained.
        order_accuracy: share of held-out pairs put in the right order.
        near_accuracy: the same for pairs that stand apart by at most a sixteenth of the table.
    """

    predicted: Float[Tensor, " T"]
    position_error: float
    position_r2: float
    order_accuracy: float
    near_accuracy: float


@dataclass(frozen=True)
class Probe:
    """A table's scores beside those of a random one.

    Attributes:
        scores: of the table.
        random: of normally distributed vectors of the same shape.
        chance_error: of a probe that always says the middle.
        chance_accuracy: of a coin.
    """

    scores: ProbeScores
    random: ProbeScores
    chance_error: float
    chance_accuracy: float = 0.5


def probe(rows: Float[Tensor, "T D"], *, seed: int = 1) -> Probe | None:
    """Probe a table and a random one of its shape; None where there are too few positions to hold some out."""
    length = len(rows)
    if length < LEAST_POSITIONS:
        return None
    generator = torch.Generator().manual_seed(seed)
    random = torch.randn(rows.shape, generator=generator, dtype=torch.float64)
    places = torch.arange(length, dtype=torch.float64)
    chance_error = float((places - places.mean()).abs().mean())
    return Probe(_score(rows.double(), seed), _score(random, seed), chance_error)


def _score(rows: Float[Tensor, "T D"], seed: int) -> ProbeScores:
    length = len(rows)
    generator = torch.Generator().manual_seed(seed)
    folds = torch.randperm(length, generator=generator).chunk(NUM_FOLDS)
    places = torch.arange(length, dtype=torch.float64)
    predicted = torch.zeros(length, dtype=torch.float64)
    right, near = [], []
    for held_out in folds:
        is_seen = torch.ones(length, dtype=torch.bool)
        is_seen[held_out] = False
        seen = is_seen.nonzero().flatten()
        predicted[held_out] = _regress(rows[seen], places[seen], rows[held_out])
        first, second = _pairs(held_out, generator)
        found = _order(rows, seen, first, second, generator)
        right.append(found)
        near.append(found[(first - second).abs() <= max(1, length // 16)])
    errors = predicted - places
    return ProbeScores(
        predicted=predicted,
        position_error=float(errors.abs().mean()),
        position_r2=float(1 - errors.square().sum() / (places - places.mean()).square().sum()),
        order_accuracy=float(torch.cat(right).double().mean()),
        near_accuracy=float(torch.cat(near).double().mean()) if torch.cat(near).numel() else float("nan"),
    )


def _regress(
    known: Float[Tensor, "N D"], wanted: Float[Tensor, " N"], asked: Float[Tensor, "Q D"]
) -> Float[Tensor, " Q"]:
    """Predict by ridge regression; its penalty is the one with the least leave-one-out error on what is known."""
    centre, middle = known.mean(dim=0), wanted.mean()
    left, sizes, right = torch.linalg.svd(known - centre, full_matrices=False)
    squares = sizes.square()
    penalties_X1 = _PENALTIES[:, None] * squares.max().clamp(min=1e-30)
    shrunk_XN = squares / (squares + penalties_X1)
    inner = left.T @ (wanted - middle)
    fitted_XN = (shrunk_XN * inner) @ left.T
    leverage_XN = shrunk_XN @ left.square().T + 1 / len(known)
    # What the fit would have missed a point by, had it been left out (Allen 1974, PRESS).
    missed_XN = (wanted - middle - fitted_XN) / (1 - leverage_XN).clamp(min=1e-9)
    best = int(missed_XN.square().mean(dim=1).argmin())
    weights = right.T @ (inner * sizes / (squares + penalties_X1[best]))
    read: Tensor = (asked - centre) @ weights + middle
    return read


def _pairs(places: Int[Tensor, " N"], generator: torch.Generator) -> tuple[Int[Tensor, " X"], Int[Tensor, " X"]]:
    """Return pairs of different places, at most so many, each in an order drawn by lot."""
    pairs = torch.combinations(places)
    pairs = pairs[torch.randperm(len(pairs), generator=generator)[:NUM_PAIRS]]
    flips = torch.rand(len(pairs), generator=generator) < 0.5
    pairs = torch.where(flips[:, None], pairs.flip(1), pairs)
    return pairs[:, 0], pairs[:, 1]


def _order(
    rows: Float[Tensor, "T D"],
    seen: Int[Tensor, " N"],
    first: Int[Tensor, " X"],
    second: Int[Tensor, " X"],
    generator: torch.Generator,
) -> Bool[Tensor, " X"]:
    """Learn from the seen positions which of two comes first; say for each asked pair whether that was right.

    Logistic regression on the difference of the two vectors: exchanging the two must turn the answer round, so the best
    weights on both vectors are opposite, and the intercept is 0.
    """
    one, other = _pairs(seen, generator)
    scale = rows[seen].std(dim=0).clamp(min=1e-12)
    features = (rows[other] - rows[one]) / scale
    labels = (other > one).double()
    weights = torch.zeros(rows.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=60, line_search_fn="strong_wolfe")

    def loss() -> float:
        optimizer.zero_grad()
        value = functional.binary_cross_entropy_with_logits(features @ weights, labels)
        value = value + _ORDER_PENALTY * weights.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return float(value.detach())

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        answers = ((rows[second] - rows[first]) / scale) @ weights > 0
    return answers == (second > first)
