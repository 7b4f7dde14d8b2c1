"""JoeyNMT's Transformer, its batch, its loss and its steps of one update, on the batches everyone takes.

At its best setting here: PyTorch's fused Adam instead of the one its configuration builds. JoeyNMT turns half precision
off on a CPU by itself; ``bfloat16`` here puts autocast around its model all the same.
"""

from types import SimpleNamespace
from typing import Any

import torch
from joeynmt import __version__
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.vocabulary import Vocabulary

from exchange import PAD, Shape, Weights, names
from worker import BETAS, EPSILON, SMOOTHING, Contender, learning_rate, serve, set_rate

BLOCKS = {
    ("encoder", "self"): ("src_src_att", "layer_norm"),
    ("decoder", "self"): ("trg_trg_att", "x_layer_norm"),
    ("decoder", "cross"): ("src_trg_att", "dec_layer_norm"),
}
PARTS = {"query": "q_layer", "key": "k_layer", "value": "v_layer", "output": "output_layer"}
FEED_FORWARD = {"inner": "pwff_layer.0", "outer": "pwff_layer.3", "norm": "layer_norm"}


def library_name(name: str) -> str:
    """Return the library's name of a neutrally named weight."""
    if name == "embedding":
        return "src_embed.lut.weight"
    side, layer, block, *rest = name.split(".")
    prefix = f"{side}.layers.{layer}"
    if block == "feed_forward":
        return f"{prefix}.feed_forward.{FEED_FORWARD[rest[0]]}.{rest[1]}"
    attention, norm = BLOCKS[side, block]
    return f"{prefix}.{norm}.{rest[1]}" if rest[0] == "norm" else f"{prefix}.{attention}.{PARTS[rest[0]]}.{rest[1]}"


def swap_reserved(ids: torch.Tensor) -> torch.Tensor:
    """Exchange the ids 0 and 1, for JoeyNMT has the unknown word before the padding."""
    return torch.where(ids < 2, 1 - ids, ids)


class JoeyNMT(Contender):
    """JoeyNMT's encoder-decoder, tied on both sides and at the output."""

    def __init__(self, shape: Shape, dtype: str, options: dict[str, Any]) -> None:
        super().__init__(shape, dtype, options)
        tokens = {
            "unk_token": "<unk>",
            "pad_token": "<pad>",
            "bos_token": "<s>",
            "eos_token": "</s>",
            "sep_token": None,
        }
        ids = {"unk_id": 0, "pad_id": 1, "bos_id": 2, "eos_id": 3, "sep_id": None}
        special = SimpleNamespace(**tokens, **ids, lang_tags=[])
        vocabulary = Vocabulary([f"w{place}" for place in range(4, shape.vocabulary)], special)
        side = {
            "type": "transformer",
            "num_layers": shape.num_layers,
            "num_heads": shape.num_heads,
            "embeddings": {"embedding_dim": shape.model_dim, "scale": True, "dropout": shape.dropout},
            "hidden_size": shape.model_dim,
            "ff_size": shape.inner_dim,
            "dropout": shape.dropout,
            "layer_norm": "post",
            "activation": "relu",
        }
        config = {"tied_embeddings": True, "tied_softmax": True, "encoder": side, "decoder": side}
        self.model = build_model(config, vocabulary, vocabulary)

    @property
    def version(self) -> str:
        return f"JoeyNMT {__version__}"

    def load(self, weights: Weights) -> None:
        state = self.model.state_dict()
        for name, value in weights.items():
            tensor = torch.from_numpy(value)
            state[library_name(name)].copy_(tensor[[1, 0, *range(2, len(tensor))]] if name == "embedding" else tensor)
        self.optimizer = torch.optim.Adam(self.model.parameters(), betas=BETAS, eps=EPSILON, fused=True)
        self.num_updates = 0

    def weights(self) -> Weights:
        state = self.model.state_dict()
        found = {name: state[library_name(name)].numpy().copy() for name, _ in names(self.shape)}
        found["embedding"] = found["embedding"][[1, 0, *range(2, self.shape.vocabulary)]]
        return found

    def _batch(self, source: torch.Tensor, target: torch.Tensor) -> Batch:
        return Batch(
            src=swap_reserved(source),
            src_length=(source != PAD).sum(1),
            src_prompt_mask=None,
            trg=swap_reserved(target),
            trg_prompt_mask=None,
            indices=torch.arange(len(source)),
            device=torch.device("cpu"),
            pad_index=1,
            eos_index=3,
        )

    def _loss(self, source: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, Batch]:
        batch = self._batch(source, target)
        batch.sort_by_src_length()
        with torch.autocast("cpu", self.dtype, enabled=self.dtype == torch.bfloat16 and self.model.training):
            total, *_ = self.model(return_type="loss", **vars(batch))
        return total, batch

    def update(self, source: torch.Tensor, target: torch.Tensor) -> None:
        self.model.train()
        self.model.loss_function = ("crossentropy", SMOOTHING)
        total, batch = self._loss(source, target)
        batch.normalize(total, "tokens").backward()
        set_rate(self.optimizer, learning_rate(self.num_updates))
        self.optimizer.step()
        self.model.zero_grad()

    @torch.no_grad()
    def loss(self, source: torch.Tensor, target: torch.Tensor) -> float:
        self.model.eval()
        self.model.loss_function = ("crossentropy", 0.0)
        return self._loss(source, target)[0].item()


if __name__ == "__main__":
    serve(JoeyNMT)
