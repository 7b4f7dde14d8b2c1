"""Multi30k English to German as ids: 8,000 joint subwords learned from its training lines, kept in the cache folder."""

import gzip
from pathlib import Path

import numpy as np
import sentencepiece

from exchange import BOS, EOS, PAD, UNK, Pairs, group_by_length
from record import CACHE, data_folder

SPLITS = {"train": "train", "dev": "val", "test": "test_2016_flickr"}


def lines(split: str, language: str) -> list[str]:
    """Return the raw lines of a split, lower-cased."""
    path = data_folder("multi30k", f"{SPLITS[split]}.{language}.gz")
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n").lower() for line in file]


def tokenizer(vocabulary: int = 8000) -> sentencepiece.SentencePieceProcessor:
    """Return the joint subword model, trained at the first call."""
    path = CACHE / f"multi30k-{vocabulary}.model"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines("train", "en") + lines("train", "de")),
            model_prefix=str(path.with_suffix("")),
            vocab_size=vocabulary,
            character_coverage=1.0,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            num_threads=1,
            minloglevel=2,
        )
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def pairs(split: str, *, batch_tokens: int, seed: int = 1, vocabulary: int = 8000, limit: int | None = None) -> Path:
    """Return the file of a split's ids and length-grouped batches, made at the first call."""
    path = CACHE / f"multi30k-{vocabulary}-{split}-{batch_tokens}-{seed}-{limit or 'all'}.npz"
    if not path.exists():
        model = tokenizer(vocabulary)
        source = [np.array([*ids, EOS], dtype=np.int32) for ids in model.encode(lines(split, "en")[:limit])]
        target = [np.array([BOS, *ids, EOS], dtype=np.int32) for ids in model.encode(lines(split, "de")[:limit])]
        Pairs(source, target, group_by_length(source, target, batch_tokens, seed)).save(path)
    return path
