"""How far several accounts of which symbols mattered agree, each given for every output of a model.

=============  =====================================================================================================
weights        mean over the heads of the attention nearest to the output
rollout        attention rolled out over the layers up to there (Abnar and Zuidema 2020)
norms          length of what all heads of that attention together add for a position (`joint_norms`, Kobayashi et al.
               2020)
gradient       input times gradient of the output's log-probability, absolute (Denil et al. 2014)
silencing      log-probability lost when that attention and its like in all layers may not look at the symbol; what they
               look at instead is scaled up (Serrano and Smith 2019)
leave-one-out  log-probability lost when the symbol is read as unknown
=============  =====================================================================================================

The first three describe what the model computes; the last two measure what happens without a symbol.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.analysis.lens_causes import answer_log_probs
from heedful.analysis.lens_norms import joint_norms
from heedful.analysis.lens_rollout import roll_out
from heedful.analysis.reading import Reading
from heedful.analysis.record import AttentionMap
from heedful.attention.tap import Tap
from heedful.core.errors import RequestError
from heedful.core.symbols import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from heedful.core.types import Batch
from heedful.layers.embedding import InputEmbedding
from heedful.models.bound import bind
from heedful.models.interfaces import AttentionSite, Classifies, Generates, Model

METHODS = ("weights", "rollout", "norms", "gradient", "silencing", "leave-one-out")
_RESERVED = (PAD_ID, BOS_ID, EOS_ID)


@dataclass
class Erasure(Tap):
    """Takes from attention what each row of a batch may not look at: row k not at the key ``keys[k]``.

    Attributes:
        paths: of the attentions.
        keys: one for each row.
    """

    paths: frozenset[str]
    keys: Tensor

    def wants(self, point: str) -> bool:
        """Say whether the point is the weights of one of the attentions."""
        path, _, what = point.rpartition(".")
        return what == "weights" and path in self.paths

    def visit(self, point: str, value: Tensor) -> Tensor:
        """Return the weights without each row's key, scaled up to what they summed to."""
        index = self.keys.to(value.device).view(-1, 1, 1, 1).expand(*value.shape[:3], 1)
        left = value.scatter(-1, index, 0.0)
        scale = value.sum(-1, keepdim=True) / left.sum(-1, keepdim=True).clamp(min=1e-9)
        return left * scale


@dataclass
class _Inputs:
    """Keeps what the embeddings of a model give, each as a leaf of the graph of gradients, in order."""

    found: list[Tensor] = field(default_factory=list)

    def __call__(self, module: object, given: object, output: Tensor) -> Tensor:
        leaf = output.detach().requires_grad_()
        self.found.append(leaf)
        return leaf


def explaining_site(model: Model) -> AttentionSite:
    """Return the attention nearest to the output that tells which input it looks at.

    Raises:
        RequestError: the model has none, or no head is left in it.
    """
    sites = model.attention_sites()
    for kind in ("cross", "pooling", "decoder", "encoder"):
        if isinstance(model, Generates) and kind in ("pooling", "encoder"):
            continue
        found = [each for each in sites if each.kind == kind]
        if not found or (kind == "decoder" and len(found) < len(sites)):
            continue
        with_heads = [each for each in found if each.num_heads]
        if with_heads:
            return with_heads[-1]
        raise RequestError(
            f"every {kind} head was pruned away, and those are what leads from the output to what the model reads. "
            "Name the model before."
        )
    raise RequestError(
        "The model has no attention from its output to what it reads, so there is nothing to compare. Name a run whose "
        "model has one: an encoder-decoder or a classifier with attention, a Transformer."
    )


@dataclass(frozen=True)
class Accounts:
    """Which symbols mattered to each output of one line, by every method.

    Attributes:
        scores: by method, a row for each output, a column for each position that is read.
        may_rank: where a symbol that is not reserved could matter to the output at all.
    """

    scores: dict[str, Float[Tensor, "Q K"]]
    may_rank: Bool[Tensor, "Q K"]


def account(model: Model, reading: Reading, batch: Batch) -> Accounts:
    """Return what each method says of a line.

    Args:
        model: without dropout.
        reading: of the line, with the points ``*.weights`` and ``*.value``.
        batch: of the line alone, its own output as target or label included.
    """
    site = explaining_site(model)
    maps = reading.maps
    here = next(each for each in maps if each.site == site)
    scores = {"weights": here.weights.mean(0), "rollout": roll_out(maps)[site.path]}
    scores["norms"] = _norms(model, reading, here)
    if site.kind == "encoder":  # the output is pooled from all positions
        scores = {name: each.mean(0, keepdim=True) for name, each in scores.items()}
    scores["gradient"] = _gradients(model, batch, is_source=site.kind != "decoder")
    scores["silencing"] = _losses(model, batch, site)
    scores["leave-one-out"] = _losses(model, batch, site, is_at_input=True)
    ids = _read_ids(batch, site)
    may_rank = torch.tensor([each not in _RESERVED for each in ids.tolist()]).expand_as(scores["gradient"])
    if site.kind == "decoder":
        may_rank = may_rank & torch.ones_like(may_rank).tril()
    return Accounts(scores, may_rank)


def _read_ids(batch: Batch, site: AttentionSite) -> Tensor:
    if site.kind == "decoder":
        ids: Tensor = batch.target_input[0]
        return ids
    assert batch.source is not None
    return batch.source[0]


def _norms(model: Model, reading: Reading, here: AttentionMap) -> Float[Tensor, "Q K"]:
    values_HKE = reading.recording.points[f"{here.site.path}.value"][reading.row, :, : here.weights.shape[2]]
    return joint_norms(here.weights, values_HKE, model.multihead_attentions().get(here.site.path))


def _gradients(model: Model, batch: Batch, *, is_source: bool) -> Float[Tensor, "Q K"]:
    """Return ``|x . d log p / dx|`` for every output and every embedded input."""
    inputs = _Inputs()
    hooks = [each.register_forward_hook(inputs) for each in model.modules() if isinstance(each, InputEmbedding)]
    try:
        with torch.enable_grad():
            log_probs = _log_probs(model, batch).unbind()
    finally:
        for hook in hooks:
            hook.remove()
    embedded = inputs.found[0 if is_source else -1]
    rows = []
    for each in log_probs:
        (gradient,) = torch.autograd.grad(each, embedded, retain_graph=True, allow_unused=True)
        products = torch.zeros_like(embedded) if gradient is None else gradient * embedded
        rows.append(products[0].sum(-1).abs().detach().cpu())
    return torch.stack(rows)


def _log_probs(model: Model, batch: Batch) -> Float[Tensor, " Q"]:
    """Return the log-probability of every output of a batch of one row, with its graph."""
    if isinstance(model, Classifies):
        assert batch.labels is not None
        return model.classify(batch).float().log_softmax(-1)[0, batch.labels]
    assert isinstance(model, Generates)
    hidden = model.decode(model.encode(batch), batch.target_input)
    log_probs = model.output.log_probs(hidden)[0]
    return log_probs.gather(-1, batch.target_output[0][:, None])[:, 0]


def _losses(model: Model, batch: Batch, site: AttentionSite, *, is_at_input: bool = False) -> Float[Tensor, "Q K"]:
    """Return by how much each output's log-probability falls without each position."""
    ids = _read_ids(batch, site)
    num_keys = len(ids)
    keys = torch.arange(num_keys, device=ids.device)
    before = answer_log_probs(model, batch)[0]
    copies = batch.select(torch.zeros(num_keys, dtype=torch.long, device=ids.device))
    if is_at_input:
        after = answer_log_probs(model, _without(copies, site, keys))
    else:
        paths = frozenset(each.path for each in model.attention_sites() if each.kind == site.kind)
        after = answer_log_probs(bind(model, tap=Erasure(paths, keys)), copies)
    return (before - after).T.float().cpu()


def _without(copies: Batch, site: AttentionSite, keys: Tensor) -> Batch:
    """Return the batch, each row's own position read as unknown.

    Where a target is read, that is also what is to be said there; but no output that reads a symbol has to say it.
    """
    if site.kind != "decoder":
        assert copies.source is not None
        return replace(copies, source=copies.source.scatter(1, keys[:, None], UNK_ID))
    assert copies.target is not None
    return replace(copies, target=copies.target.scatter(1, keys[:, None], UNK_ID))


def kendall_tau(one: Float[Tensor, " K"], other: Float[Tensor, " K"]) -> float:
    """Return Kendall's tau-b of two rankings (Kendall 1945), corrected for ties; NaN where one is all tied."""
    first, second = ((each[:, None] - each[None]).sign() for each in (one.double(), other.double()))
    size = float((first.square().sum() * second.square().sum()).sqrt())
    return float((first * second).sum()) / size if size else float("nan")


def line_agreement(accounts: Accounts) -> Iterator[tuple[str, str, float]]:
    """Yield for each two methods the mean of tau over a line's outputs that have at least three symbols to rank."""
    for place, one in enumerate(METHODS):
        for other in METHODS[place + 1 :]:
            found = []
            for query, keep in enumerate(accounts.may_rank):
                if int(keep.sum()) >= 3:
                    tau = kendall_tau(accounts.scores[one][query][keep], accounts.scores[other][query][keep])
                    found += [] if math.isnan(tau) else [tau]
            if found:
                yield one, other, sum(found) / len(found)
