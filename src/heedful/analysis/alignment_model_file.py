"""What was learnt of alignment as one safetensors file: words as text, all else as numbers."""

from collections.abc import Mapping, Sequence

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from heedful.analysis.alignment_chain import NUM_JUMPS, RAREST_JUMP
from heedful.analysis.alignment_lexicon import RAREST, Lexicon, Vocabulary
from heedful.analysis.alignment_model import AlignmentModel

_TYPES = {
    "source_words": torch.uint8,
    "target_words": torch.uint8,
    "source_shares": torch.float32,
    "target_shares": torch.float32,
    "codes": torch.int64,
    "counts": torch.float32,
    "jumps": torch.float32,
}


def to_bytes(model: AlignmentModel) -> bytes:
    """Return the content of a file."""
    tensors = {
        "source_words": _joined(model.source.words),
        "target_words": _joined(model.target.words),
        "source_shares": model.source.shares,
        "target_shares": model.target.shares,
        "codes": model.lexicon.codes,
        "counts": model.lexicon.counts,
        "jumps": model.jumps,
    }
    content: bytes = save({name: tensor.contiguous() for name, tensor in tensors.items()})
    return content


def from_bytes(content: bytes) -> AlignmentModel:
    """Return what the content of a file says.

    Raises:
        ValueError: it is not such a file, or numbers in it cannot be.
    """
    try:
        tensors: dict[str, Tensor] = load(content)
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise ValueError(f"not safetensors ({error})") from None
    if {name: tensor.dtype for name, tensor in tensors.items()} != _TYPES:
        raise ValueError(f"not the tensors {', '.join(_TYPES)}")
    source, target = (_vocabulary(tensors, side) for side in ("source", "target"))
    _check_numbers(tensors, len(source.words), len(target.words))
    lexicon = Lexicon(tensors["codes"], tensors["counts"], len(source.words), len(target.words))
    return AlignmentModel(source, target, lexicon, tensors["jumps"])


def _joined(words: Sequence[str]) -> Tensor:
    """Return words as the bytes of one text; no word has a space in it."""
    return torch.frombuffer(bytearray(" ".join(words).encode("utf-8")), dtype=torch.uint8)


def _vocabulary(tensors: Mapping[str, Tensor], side: str) -> Vocabulary:
    letters, shares = tensors[f"{side}_words"], tensors[f"{side}_shares"]
    if letters.dim() != 1:
        raise ValueError(f"`{side}_words` are not one row of bytes")
    words = tuple(letters.numpy().tobytes().decode("utf-8").split(" "))
    if len(set(words)) != len(words):
        raise ValueError(f"a word stands twice among `{side}_words`")
    if shares.shape != (len(words) + 1,) or not _are_within(shares, RAREST / 2, 1.0):
        raise ValueError(
            f"`{side}_shares` are not one probability for each of {len(words):,} words and the unknown one"
        )
    return Vocabulary(words, shares)


def _check_numbers(tensors: Mapping[str, Tensor], num_sources: int, num_targets: int) -> None:
    codes, jumps = tensors["codes"], tensors["jumps"]
    is_in_order = codes.dim() == 1 and bool((codes.diff() > 0).all())
    is_in_range = is_in_order and bool(
        ((codes >= 0) & (codes < num_sources * (num_targets + 1)) & (codes % (num_targets + 1) < num_targets)).all()
    )
    if not is_in_range:
        raise ValueError("`codes` are not pairs of these words in order")
    if tensors["counts"].shape != codes.shape or not _are_within(tensors["counts"], 0.0, 1e12):
        raise ValueError(f"`counts` are not one number for each of {len(codes):,} pairs of words")
    if jumps.shape != (2, NUM_JUMPS) or not _are_within(jumps, RAREST_JUMP / 2, 1.0):
        raise ValueError(f"`jumps` are not two rows of {NUM_JUMPS} probabilities")


def _are_within(values: Tensor, least: float, most: float) -> bool:
    # A little rounding is allowed; what is no number lies nowhere.
    return bool(((values >= least) & (values <= most + 1e-4)).all())
