"""Subword vocabularies: SentencePiece, trained on the training text and kept by the hash of that text."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable

import numpy as np
import sentencepiece

from suite.data.cache import cached
from suite.data.catalogue import DataError, cache_folder

PAD, UNKNOWN, BEGIN, END = range(4)
SAMPLE = 200_000  # sentences that training reads at most; more change a vocabulary of some thousand little


def train_vocabulary(sentences: Iterable[str], size: int) -> sentencepiece.SentencePieceProcessor:
    """The byte-pair vocabulary of ``size`` pieces of the text, from the cache if it was trained before.

    Its ``encode`` closes each sentence of a list by ``END``; ``PAD``, ``BEGIN`` and ``END`` decode to nothing.

    Byte-pair merges involve no chance, and one thread is used, so the same text gives the same vocabulary. Of
    more than 200,000 sentences every so-manieth is read.

    Raises:
        DataError: the text cannot yield ``size`` pieces, or the cache cannot be written.
    """
    lines = list(sentences)
    lines = lines[:: -(-len(lines) // SAMPLE)] if lines else lines
    digest = hashlib.sha256(f"1 {sentencepiece.__version__} {size}".encode())
    for line in lines:
        digest.update(hashlib.sha256(line.encode()).digest())
    # kept like decoded data: the bytes of the model, without targets
    train = lambda: (np.frombuffer(_train(lines, size), np.uint8), np.empty(0, np.int64))
    model = cached(cache_folder() / "vocabularies", digest.hexdigest(), train).inputs.tobytes()
    return sentencepiece.SentencePieceProcessor(model_proto=model, add_eos=True)


def _train(lines: list[str], size: int) -> bytes:
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            character_coverage=1.0,
            pad_id=PAD,
            unk_id=UNKNOWN,
            bos_id=BEGIN,
            eos_id=END,
            num_threads=1,
            max_sentence_length=1 << 20,
            minloglevel=3,
        )
    except (RuntimeError, ValueError, OSError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"no vocabulary of size={size} can be trained on {len(lines):,} sentences ({reason}); choose another size"
        ) from error
    return model.getvalue()
