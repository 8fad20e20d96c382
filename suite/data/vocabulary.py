"""Subword vocabularies: SentencePiece, trained on the training text and kept by the hash of that text."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Sequence

import numpy as np
import sentencepiece

from suite.data.cache import cached
from suite.data.catalogue import DataError, cache_folder

PAD, UNKNOWN, BEGIN, END = range(4)
SAMPLE = 200_000  # sentences that training reads at most; more change a vocabulary of some thousand little


class Vocabulary:
    """Text to piece numbers and back. ``PAD``, ``UNKNOWN``, ``BEGIN`` and ``END`` are pieces 0 to 3."""

    def __init__(self, model: bytes) -> None:
        """``model`` is a serialised SentencePiece model, as :func:`train_vocabulary` makes it."""
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    def __len__(self) -> int:
        return self._processor.get_piece_size()

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Pieces of each sentence, closed by ``END``."""
        return self._processor.encode(list(sentences), out_type=int, add_eos=True)

    def decode(self, pieces: Sequence[Sequence[int]]) -> list[str]:
        """Sentences of piece numbers; ``PAD``, ``BEGIN`` and ``END`` say nothing."""
        return self._processor.decode([list(row) for row in pieces])


def train_vocabulary(sentences: Iterable[str], size: int) -> Vocabulary:
    """The byte-pair vocabulary of ``size`` pieces of the text, from the cache if it was trained before.

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
    return Vocabulary(cached(cache_folder() / "vocabularies", digest.hexdigest(), train).inputs.tobytes())


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
