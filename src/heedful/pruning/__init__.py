"""Changing a trained model's heads: which to do without, removing them for good, and what that is worth."""

from heedful.pruning.arithmetic import Lengths, Operations, count_operations
from heedful.pruning.budget import Budget
from heedful.pruning.gated_fitting import Candidate, GatedFitting, Goal
from heedful.pruning.head_gates import METHODS, HardConcreteGates, HeadGates, RankedGates, SubsetGates
from heedful.pruning.heads import KINDS, Heads, find_heads
from heedful.pruning.importance import rank_by_confidence, rank_by_gradient, unit_importance
from heedful.pruning.removal import keep_units, reduce_task, remove_heads, units_to_keep

__all__ = [
    "KINDS",
    "METHODS",
    "Budget",
    "Candidate",
    "GatedFitting",
    "Goal",
    "HardConcreteGates",
    "HeadGates",
    "Heads",
    "Lengths",
    "Operations",
    "RankedGates",
    "SubsetGates",
    "count_operations",
    "find_heads",
    "keep_units",
    "rank_by_confidence",
    "rank_by_gradient",
    "reduce_task",
    "remove_heads",
    "unit_importance",
    "units_to_keep",
]
