"""How many heads are open while a model learns to do without the others."""

from dataclasses import dataclass

RAMP_SHARE = 0.6
"""Share of the time in which heads close; in the rest the model learns with those that stay."""


@dataclass(frozen=True)
class Budget:
    """From all heads to those that stay.

    The number falls quickly at first, where most heads are worth little, and slowly towards the end: the cubic of Zhu
    and Gupta (2017), equation 1.

    Attributes:
        start: heads there are.
        end: heads that stay.
        ramp_share: share of the time until the end is reached.
        hold_share: share of the time before that in which all are open.
    """

    start: int
    end: int
    ramp_share: float = RAMP_SHARE
    hold_share: float = 0.0

    def num_open(self, fraction: float) -> float:
        """Return how many heads should be open when that share of the time has passed."""
        left = min(1.0, max(0.0, (self.ramp_share - fraction) / (self.ramp_share - self.hold_share)))
        return self.end + (self.start - self.end) * left**3
