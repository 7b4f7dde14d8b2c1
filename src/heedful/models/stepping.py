"""From a model to the step function that the search knows."""

from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Int
from torch import Tensor

from heedful.attention.tap import Gates, Tap
from heedful.core.types import Selectable, StepFn, StepOutput
from heedful.models.interfaces import Generates


def make_step_fn(
    model: Generates[Any, Any], *, with_attention: bool = False, tap: Tap | None = None, gates: Gates | None = None
) -> StepFn:
    """Return the step of a model: symbols in, log-probabilities, the new state and, when asked for, attention out.

    Args:
        model: in evaluation mode, or the steps are drawn anew with dropout.
        with_attention: give the weights of the model's last cross-attention, their mean over the heads; for a model
            that has none, None.
        tap: listens at every step; sees and replaces before the weights are given.
        gates: factors for heads.
    """
    sites = [site.path for site in model.attention_sites() if site.kind == "cross" and site.num_heads > 0]
    watched = f"{sites[-1]}.weights" if with_attention and sites else None

    def step(ids: Int[Tensor, "B N"], memory: Selectable, state: Selectable) -> StepOutput:
        listener = tap if watched is None else _Watch(watched, tap)
        hidden, new_state = model.step(ids, memory, state, tap=listener, gates=gates)
        weights = listener.weights_BHNS if isinstance(listener, _Watch) else None
        attention = None if weights is None else weights.float().mean(dim=1)
        return StepOutput(model.output.log_probs(hidden), new_state, attention)

    return step


@dataclass
class _Watch(Tap):
    """Remembers the weights at one point, and passes every point on to another tap."""

    point: str
    inner: Tap | None
    weights_BHNS: Tensor | None = field(default=None, init=False)

    def wants(self, point: str) -> bool:
        return point == self.point or (self.inner is not None and self.inner.wants(point))

    def visit(self, point: str, value: Tensor) -> Tensor:
        if self.inner is not None and self.inner.wants(point):
            value = self.inner.visit(point, value)
        if point == self.point:
            self.weights_BHNS = value
        return value
