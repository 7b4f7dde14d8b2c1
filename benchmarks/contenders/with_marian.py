"""Hugging Face's Marian class, built from a configuration and trained with a plain PyTorch loop.

At its best setting here: PyTorch's fused Adam and fused label-smoothed loss instead of the library's own Trainer, and
the faster of its attention implementations (the benchmark tries both). bfloat16 is autocast, the library's way.
"""

from typing import Any

import torch
import transformers
from transformers import MarianConfig, MarianMTModel

from exchange import BOS, EOS, PAD, Shape, Weights, names, sinusoids
from worker import BETAS, EPSILON, SMOOTHING, Contender, learning_rate, serve, set_rate

PARTS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


def library_name(name: str) -> str:
    """Return the library's name of a neutrally named weight."""
    if name == "embedding":
        return "model.shared.weight"
    side, layer, block, *rest = name.split(".")
    prefix = f"model.{side}.layers.{layer}"
    if block == "feed_forward":
        return f"{prefix}." + {"inner": "fc1", "outer": "fc2", "norm": "final_layer_norm"}[rest[0]] + f".{rest[1]}"
    attention = {"self": "self_attn", "cross": "encoder_attn"}[block]
    return (
        f"{prefix}.{attention}_layer_norm.{rest[1]}"
        if rest[0] == "norm"
        else f"{prefix}.{attention}.{PARTS[rest[0]]}.{rest[1]}"
    )


class Marian(Contender):
    """MarianMTModel with random weights."""

    def __init__(self, shape: Shape, dtype: str, options: dict[str, Any]) -> None:
        super().__init__(shape, dtype, options)
        self.model = MarianMTModel._from_config(
            MarianConfig(
                vocab_size=shape.vocabulary,
                d_model=shape.model_dim,
                encoder_layers=shape.num_layers,
                decoder_layers=shape.num_layers,
                encoder_ffn_dim=shape.inner_dim,
                decoder_ffn_dim=shape.inner_dim,
                encoder_attention_heads=shape.num_heads,
                decoder_attention_heads=shape.num_heads,
                dropout=shape.dropout,
                attention_dropout=shape.dropout,
                activation_dropout=shape.dropout,
                activation_function="relu",
                scale_embedding=True,
                max_position_embeddings=512,
                pad_token_id=PAD,
                bos_token_id=BOS,
                eos_token_id=EOS,
                decoder_start_token_id=BOS,
                forced_eos_token_id=None,
            ),
            attn_implementation=options.get("attention", "eager"),
        )

    @property
    def version(self) -> str:
        return f"transformers {transformers.__version__}"

    def load(self, weights: Weights) -> None:
        state = self.model.state_dict()
        for name, value in weights.items():
            state[library_name(name)].copy_(torch.from_numpy(value))
        table = torch.from_numpy(sinusoids(512, self.shape.model_dim))
        for side in ("encoder", "decoder"):
            state[f"model.{side}.embed_positions.weight"].copy_(table)
        self.optimizer = torch.optim.Adam(
            [each for each in self.model.parameters() if each.requires_grad], betas=BETAS, eps=EPSILON, fused=True
        )
        self.num_updates = 0

    def weights(self) -> Weights:
        state = self.model.state_dict()
        return {name: state[library_name(name)].float().numpy().copy() for name, _ in names(self.shape)}

    def _logits(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        keep = (source != PAD).long()
        return self.model(
            input_ids=source, attention_mask=keep, decoder_input_ids=target[:, :-1], use_cache=False
        ).logits

    def update(self, source: torch.Tensor, target: torch.Tensor) -> None:
        self.model.train()
        with torch.autocast("cpu", self.dtype, enabled=self.dtype == torch.bfloat16):
            logits = self._logits(source, target)
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1).float(), target[:, 1:].flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
        )
        loss.backward()
        set_rate(self.optimizer, learning_rate(self.num_updates))
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    @torch.no_grad()
    def loss(self, source: torch.Tensor, target: torch.Tensor) -> float:
        self.model.eval()
        logits = self._logits(source, target).flatten(0, 1)
        return torch.nn.functional.cross_entropy(
            logits, target[:, 1:].flatten(), ignore_index=PAD, reduction="sum"
        ).item()

    @torch.no_grad()
    def decode(self, source: torch.Tensor, beam: int, max_length: int) -> list[list[int]]:
        self.model.eval()
        with torch.autocast("cpu", self.dtype, enabled=self.dtype == torch.bfloat16):
            ids = self.model.generate(
                input_ids=source,
                attention_mask=(source != PAD).long(),
                num_beams=beam,
                do_sample=False,
                max_new_tokens=max_length,
                early_stopping=self.options.get("first_finished", False),
            )
        return [_cut(row) for row in ids[:, 1:].tolist()]


def _cut(row: list[int]) -> list[int]:
    return [each for each in (row[: row.index(EOS)] if EOS in row else row) if each != PAD]


if __name__ == "__main__":
    serve(Marian)
