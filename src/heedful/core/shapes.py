"""The one legend of axes. Every signature and every suffix of a tensor's name uses these letters.

==  ==========================================================================
B   batch: sentences, or rows of any other kind; always axis 0
S   source positions
T   target positions
Q   query positions of an attention
K   key positions of an attention
D   model width
H   heads
E   width of one head
M   inner width of a feed-forward layer
V   vocabulary
L   layers
N   hypotheses of one sentence (the beam)
R   rows with the beam folded in: B x N
U   utterances of a dialogue
F   audio frames
C   classes
==  ==========================================================================

A name such as ``query_BHQE`` carries its axes where they move; elsewhere the signature says them once.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

TokenIds = Int[Tensor, "B T"]
"""Token ids, padded at the right with ``PAD_ID``."""

Lengths = Int[Tensor, " B"]
"""How many positions of each row are real, reserved symbols included."""

Keep = Bool[Tensor, "..."]
"""A mask: True where a position may be attended (broadcast to ``B H Q K`` or ``B Q K``)."""

Hidden = Float[Tensor, "B T D"]
"""Hidden states, a vector for each position."""
