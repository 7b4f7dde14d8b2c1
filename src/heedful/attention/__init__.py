"""The heart of Heedful: scores, masks, weights, multi-head attention, and the taps that let one look inside."""

from heedful.attention.attend import attend
from heedful.attention.cache import KeyValueCache, KeyValues
from heedful.attention.dropout import Dropout
from heedful.attention.local import AnyLocalityConfig, Locality, Nearby, build_locality
from heedful.attention.masks import AttentionMask, causal_keep, padding_keep, window_keep
from heedful.attention.multihead import CrossAttention, MultiHeadAttention, SelfAttention, split_model_dim
from heedful.attention.rotary import Rotary
from heedful.attention.scores import SCORES, AnyScoreConfig, Score, build_score
from heedful.attention.tap import AnyTap, Gates, ScopedTap, Tap, scope_gates, scope_tap
from heedful.attention.weights import masked_softmax
from heedful.attention.window import attend_in_window

__all__ = [
    "SCORES",
    "AnyLocalityConfig",
    "AnyScoreConfig",
    "AnyTap",
    "AttentionMask",
    "CrossAttention",
    "Dropout",
    "Gates",
    "KeyValueCache",
    "KeyValues",
    "Locality",
    "MultiHeadAttention",
    "Nearby",
    "Rotary",
    "ScopedTap",
    "Score",
    "SelfAttention",
    "Tap",
    "attend",
    "attend_in_window",
    "build_locality",
    "build_score",
    "causal_keep",
    "masked_softmax",
    "padding_keep",
    "scope_gates",
    "scope_tap",
    "split_model_dim",
    "window_keep",
]
