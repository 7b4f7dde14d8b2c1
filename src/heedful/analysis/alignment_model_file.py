"""What was learnt of alignment as one safetensors file: words as text, all else as numbers."""

from collections.abc import Mapping, Sequence

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from heedful.analysis.alignment_chain import NUM_JUMPS
from heedful.analysis.alignment_lexicon import Lexicon, Vocabulary
from heedful.analysis.alignment_model import AlignmentModel

_TYPES = {
    "source_words": torch.uint8,
    "target_words": torch.uint8,
    "source_shares": torch.float32,
    "target_shares": torch.float32,
    "codes": torch.int64,
    "forward": torch.float32,
    "backward": torch.float32,
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
        "forward": model.lexicon.forward,
        "backward": model.lexicon.backward,
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
    lexicon = Lexicon(tensors["codes"], tensors["forward"], tensors["backward"], len(target.words))
    return AlignmentModel(source, target, lexicon, tensors["jumps"])


def _joined(words: Sequence[str]) -> Tensor:
    """Return words as the bytes of one text; no word has a space in it."""
    return torch.frombuffer(bytearray(" ".join(words).encode("utf-8")), dtype=torch.uint8)


def _vocabulary(tensors: Mapping[str, Tensor], side: str) -> Vocabulary:
    words = tuple(bytes(tensors[f"{side}_words"].tolist()).decode("utf-8").split(" "))
    shares = tensors[f"{side}_shares"]
    if len(set(words)) != len(words):
        raise ValueError(f"a word stands twice among `{side}_words`")
    if shares.shape != (len(words) + 1,) or not _are_probable(shares) or not bool((shares > 0).all()):
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
    for name in ("forward", "backward"):
        if tensors[name].shape != codes.shape or not _are_probable(tensors[name]):
            raise ValueError(f"`{name}` is not one probability for each of {len(codes):,} pairs of words")
    if jumps.shape != (2, NUM_JUMPS) or not _are_probable(jumps) or not bool((jumps > 0).all()):
        raise ValueError(f"`jumps` are not two rows of {NUM_JUMPS} probabilities")


def _are_probable(values: Tensor) -> bool:
    # Whether each lies from 0 to 1, a little rounding allowed; what is no number does not.
    return bool(((values >= 0) & (values <= 1 + 1e-4)).all())
