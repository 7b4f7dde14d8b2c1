"""Removing heads and inner units for good: what is left is an ordinary, smaller model."""

import copy
import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.errors import ConfigError, did_you_mean
from heedful.core.weights import copy_tensors, model_tensors
from heedful.models.interfaces import Model
from heedful.models.resizing import describe_shape
from heedful.pruning.heads import KeptHeads
from heedful.tasks import Task

UNIT_BLOCK = 8
"""Inner units are kept in blocks of so many: matrix products are quickest in multiples of a vector's width."""


def remove_heads(model: Model, kept: KeptHeads) -> None:
    """Remove the heads of a model that are not kept, in place; its parameters are new ones afterwards.

    Args:
        model: to be changed.
        kept: for each attention by its path, the heads that stay; those not named keep all.

    Raises:
        ConfigError: no such attention, or no such head.
    """
    attentions = model.multihead_attentions()
    for path, heads in kept.items():
        if path not in attentions:
            raise ConfigError(f"The model has no attention `{path}` with heads. {did_you_mean(path, attentions)}")
        number = attentions[path].num_heads
        wrong = [head for head in heads if not 0 <= head < number]
        if wrong or len(set(heads)) != len(heads):
            what = f"head {wrong[0]} is named" if wrong else "a head is named twice"
            raise ConfigError(f"`{path}` has {number} heads, counted from 0, but {what}: {list(heads)}.")
    for path, heads in kept.items():
        if len(heads) < attentions[path].num_heads:
            attentions[path].keep_heads(heads)


def keep_units(model: Model, kept: Mapping[str, Sequence[int]]) -> None:
    """Remove the inner units of feed-forward layers that are not kept, in place.

    Args:
        model: to be changed.
        kept: for each block by its path, the units that stay.
    """
    blocks = model.blocks()
    for path, units in kept.items():
        blocks[path].feed_forward.keep_units(units)


def units_to_keep(importance: Mapping[str, Float[Tensor, " M"]], fraction: float) -> dict[str, list[int]]:
    """Return the inner units to keep, so many of all layers together, the most important.

    No layer falls below half of the fraction: importance to the first order says little of what removing nearly a whole
    layer does. Units go in blocks of `UNIT_BLOCK` where a layer has a multiple of that, and half of the fraction of it
    is at least one block.

    Args:
        importance: of each unit, by the path of its block.
        fraction: share to keep, above 0 and at most 1.
    """
    order = {path: values.sort(descending=True, stable=True) for path, values in importance.items()}
    chosen: dict[str, int] = {}
    candidates: list[tuple[float, str, int]] = []
    for path, (values, _) in order.items():
        half = len(values) * fraction / 2
        size = UNIT_BLOCK if len(values) % UNIT_BLOCK == 0 and half >= UNIT_BLOCK else 1
        chosen[path] = max(1, math.ceil(half / size)) * size
        rest = torch.split(values[chosen[path] :], size)
        candidates += [(float(each.mean()), path, len(each)) for each in rest if len(each)]
    wanted = round(fraction * sum(map(len, importance.values())))
    for _, path, size in sorted(candidates, key=lambda each: -each[0]):
        if sum(chosen.values()) + size <= wanted:
            chosen[path] += size
    return {path: sorted(order[path].indices[:number].tolist()) for path, number in chosen.items()}


def reduce_task(task: Task, kept_heads: KeptHeads, kept_units: Mapping[str, Sequence[int]] | None = None) -> Task:
    """Return a task of its own whose model lacks what is not kept; configuration and model agree.

    Raises:
        ConfigError: no such attention or head, or a model that has none to remove.
    """
    model = copy.deepcopy(task.model)
    remove_heads(model, kept_heads)
    keep_units(model, kept_units or {})
    shape = describe_shape(task.config.model, model)
    with torch.random.fork_rng(devices=[]):
        reduced = type(task)(task.config.model_copy(update={"model": shape}), task.codec, task.labels)
    copy_tensors(reduced.model, model_tensors(model))
    reduced.model.train(task.model.training)
    return reduced.to(task.device, task.dtype, task.seed)
