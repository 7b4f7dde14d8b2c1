"""Subwords by SentencePiece: unigram language model or byte-pair encoding, trained on the training text alone."""

import hashlib
import io
import math
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import sentencepiece
from pydantic import Field

from heedful.core.config import Config
from heedful.core.errors import ConfigError, DataError
from heedful.core.symbols import BOS_ID, EOS_ID, NUM_RESERVED, PAD_ID, UNK_ID
from heedful.text.merge_sampling import MergeSampler
from heedful.text.saved import damaged, read_bytes, read_json, write_json
from heedful.text.tokenizer import RESERVED_NAMES, UNK_TEXT, Tokenizer, without_reserved
from heedful.text.unigram_sampling import UnigramSampler
from heedful.text.words import SPACE, Words

# SentencePiece keeps some characters for itself (its space, its mark of the unknown, a separator) and its trainer takes
# line breaks off the ends. In a text they are carried by characters of the private use area.
_OWN = {"\u2581": "\ue581", "\u2585": "\ue585", "\x1f": "\ue01f", "\n": "\ue00a", "\r": "\ue00d"}
_HIDE, _SHOW = str.maketrans(_OWN), str.maketrans({carrier: own for own, carrier in _OWN.items()})
_IS_OWN, _IS_CARRIER = re.compile(f"[{''.join(_OWN)}]"), re.compile(f"[{''.join(_OWN.values())}]")

# SentencePiece's trainer draws from one generator of the process: seeding it and training must not be interrupted.
_RANDOM = threading.Lock()


class SubwordConfig(Config):
    """Subwords as symbols.

    Attributes:
        algorithm: ``unigram`` (Kudo 2018, arXiv:1804.10959) or ``bpe`` (Sennrich et al. 2016, arXiv:1508.07909).
        vocab_size: entries wished for, the reserved ones included; a small corpus gives fewer.
        sampling: absent for one segmentation. Else each epoch draws anew: for ``unigram`` the smoothing alpha of the
            distribution over all segmentations (Kudo 2018, section 3.3; try 0.2), for ``bpe`` the probability of
            leaving out a merge (BPE-dropout, Provilkov et al. 2020, arXiv:1910.13267; try 0.1).
        character_coverage: share of the training text's characters that the vocabulary must hold.
        byte_fallback: True spells an unknown character with symbols for its UTF-8 bytes (256 more entries).
        user_symbols: strings always kept as one symbol, such as placeholders.
        max_sentences: lines to train on at most, drawn by a fixed seed.
    """

    kind: Literal["subword"] = "subword"
    algorithm: Literal["unigram", "bpe"] = "unigram"
    vocab_size: int = Field(default=8000, gt=NUM_RESERVED)
    sampling: float | None = Field(default=None, gt=0, le=1)
    character_coverage: float = Field(default=1.0, gt=0, le=1)
    byte_fallback: bool = False
    user_symbols: tuple[str, ...] = ()
    max_sentences: int = Field(default=1_000_000, ge=1)


class SubwordTokenizer(Tokenizer):
    """Pieces of words, the space before a word written as U+2581 within its first piece.

    Known text comes back exactly, runs of spaces included; but the private use characters U+E00A, U+E00D, U+E01F,
    U+E581 and U+E585, which carry others, come back as those.
    """

    kind = "subword"

    def __init__(self, model: bytes, *, sampling: float | None = None) -> None:
        self._model = model
        self._sampling = sampling
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._sampler = None if sampling is None else _sampler(self._processor, sampling)

    @property
    def size(self) -> int:
        return int(self._processor.get_piece_size())

    @property
    def is_sampling(self) -> bool:
        return self._sampling is not None

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._processor.encode(_hide(text))
        return ids

    def sample(self, text: str, seed: int) -> list[int]:
        if self._sampler is None or not text:
            return self.encode(text)
        return self._sampler.sample(SPACE + _spell(text), seed)

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._processor.decode(without_reserved(ids))
        return _show(text)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [
            RESERVED_NAMES[each] if each < NUM_RESERVED else _show(self._processor.id_to_piece(int(each)))
            for each in ids
        ]

    def save(self, folder: Path, name: str) -> None:
        (folder / f"{name}.model").write_bytes(self._model)
        values = {
            "kind": self.kind,
            "sampling": self._sampling or 0.0,
            "sha256": hashlib.sha256(self._model).hexdigest(),
        }
        write_json(folder / f"{name}.json", values)

    @classmethod
    def load(cls, folder: Path, name: str) -> "SubwordTokenizer":
        values = read_json(folder / f"{name}.json", sampling=float, sha256=str)
        path = folder / f"{name}.model"
        model = read_bytes(path)
        if hashlib.sha256(model).hexdigest() != values["sha256"]:
            raise damaged(path, f"not the SentencePiece model that {name}.json describes")
        try:
            if not model:  # which SentencePiece takes for a model that is yet to come
                raise RuntimeError
            return cls(model, sampling=values["sampling"] or None)
        except RuntimeError:
            raise damaged(path, "no SentencePiece model") from None

    @classmethod
    def train(cls, config: SubwordConfig, lines: Iterable[str], *, folder: Path = Path()) -> "SubwordTokenizer":
        written = io.BytesIO()
        counted = _Counted(lines)
        try:
            with _RANDOM:
                sentencepiece.set_random_generator_seed(1)
                sentencepiece.SentencePieceTrainer.train(
                    sentence_iterator=iter(counted),
                    model_writer=written,
                    model_type=config.algorithm,
                    vocab_size=config.vocab_size,
                    hard_vocab_limit=False,
                    character_coverage=config.character_coverage,
                    byte_fallback=config.byte_fallback,
                    user_defined_symbols=[_spell(each) for each in config.user_symbols],
                    input_sentence_size=config.max_sentences,
                    shuffle_input_sentence=True,
                    max_sentence_length=100_000,
                    # What a text is normalised to is the codec's business, and spaces are kept as they are.
                    normalization_rule_name="identity",
                    remove_extra_whitespaces=False,
                    pad_id=PAD_ID,
                    unk_id=UNK_ID,
                    bos_id=BOS_ID,
                    eos_id=EOS_ID,
                    # Under their usual names, such as <unk>, text that has these names in it would not come back.
                    pad_piece="\ue000",
                    unk_piece="\ue001",
                    bos_piece="\ue002",
                    eos_piece="\ue003",
                    unk_surface=UNK_TEXT,
                    num_threads=4,  # fixed: sums in another order could give another vocabulary
                    minloglevel=3,
                )
        except RuntimeError as error:
            if not counted.has_text:
                raise DataError("The training text is empty. Check the data's columns.") from None
            raise ConfigError(
                f"A subword vocabulary of {config.vocab_size} ({config.algorithm}) cannot be trained on this text: "
                f'{str(error).splitlines()[-1]} Try another `vocab_size`, or `kind = "character"`.'
            ) from None
        return cls(written.getvalue(), sampling=config.sampling)


def _sampler(processor: sentencepiece.SentencePieceProcessor, sampling: float) -> UnigramSampler | MergeSampler:
    """Return what draws segmentations from a model, for its kind."""
    ordinary = [
        index
        for index in range(processor.get_piece_size())
        if not (processor.is_control(index) or processor.is_unknown(index) or processor.is_unused(index))
    ]
    byte_ids = [index for index in ordinary if processor.is_byte(index)]  # in the order of the bytes
    names = {processor.id_to_piece(index): index for index in ordinary if not processor.is_byte(index)}
    scores = {name: float(processor.get_score(index)) for name, index in names.items()}
    # A user's own symbol has the score 0, the first of all merges -0.
    own = [name for name, score in scores.items() if score == 0 and math.copysign(1, score) > 0]
    user_symbols = {name: names.pop(name) for name in own}
    scores = {name: scores[name] for name in names}
    words = Words(names, user_symbols, byte_ids or None)
    # The scores of merges are their ranks, those of a unigram model logarithms.
    if all(score.is_integer() for score in scores.values()):
        return MergeSampler({name: -score for name, score in scores.items()}, words, sampling)
    return UnigramSampler(scores, words, sampling)


class _Counted:
    """Lines on their way to the trainer, blank ones left out, and whether any had text."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = lines
        self.has_text = False

    def __iter__(self) -> Iterator[str]:
        for line in self.lines:
            if line.strip():
                self.has_text = True
                yield _hide(line)


def _show(text: str) -> str:
    return text.translate(_SHOW) if _IS_CARRIER.search(text) else text


def _spell(text: str) -> str:
    """Return a text as it stands within SentencePiece."""
    return _hide(text).replace(" ", SPACE)


def _hide(text: str) -> str:
    return text.translate(_HIDE) if _IS_OWN.search(text) else text
