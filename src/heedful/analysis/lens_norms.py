"""How long the vectors are that attention adds up: ``||a f(x)||`` (Kobayashi et al. 2020, section 3).

A weight alone says little where the value it multiplies is short. ``f(x)`` is what a head makes of a position: its
value, through the head's part of the output projection: ``f(x) = (x W_V + b_V) W_O`` (equation 4). For attention with
one head over vectors as they are (recurrent decoders, pooling), ``f`` is the identity.

All heads together add ``sum_h a_h f_h(x)``, so the norm of a whole layer is the length of that sum; not a mean of
lengths, for what heads add may cancel out.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attention.multihead import MultiHeadAttention


def transform_values(values: Float[Tensor, "H K E"], attention: MultiHeadAttention | None) -> Float[Tensor, "H K D"]:
    """Return ``f(x)`` of each position for each head; what each head adds where it attends to that position alone."""
    if attention is None:
        return values
    weight_DX = attention.output_weight.detach().to("cpu", torch.float32)
    weight_DHE = weight_DX.view(len(weight_DX), attention.num_heads, attention.head_dim)
    transformed: Tensor = torch.einsum("hke,dhe->hkd", values, weight_DHE)
    return transformed


def value_weighted_norms(
    weights: Float[Tensor, "H Q K"], values: Float[Tensor, "H K E"], attention: MultiHeadAttention | None
) -> Float[Tensor, "H Q K"]:
    """Return ``||a f(x)||``, which is ``a ||f(x)||`` as no weight is negative."""
    lengths: Tensor = torch.linalg.vector_norm(transform_values(values, attention), dim=-1)
    return weights * lengths[:, None]


def joint_norms(
    weights: Float[Tensor, "H Q K"], values: Float[Tensor, "H K E"], attention: MultiHeadAttention | None
) -> Float[Tensor, "Q K"]:
    """Return ``||sum_h a_h f_h(x)||``: the length of what all heads together add; zeros where there are no heads."""
    transformed_HKD = transform_values(values, attention)
    lengths = weights.new_zeros(weights.shape[1:])
    for query, weights_HK in enumerate(weights.unbind(1)):
        lengths[query] = torch.einsum("hk,hkd->kd", weights_HK, transformed_HKD).norm(dim=-1)
    return lengths
