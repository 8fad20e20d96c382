"""The experiment ``inverse_law/words``: by how much batches counted in words exceed their size."""

from __future__ import annotations

import math

from suite.data.text import load_pairs
from suite.data.word_batches import word_batches
from suite.experiment import Context
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed


def overshoot(spec: RunSpec, context: Context) -> Outcome:
    """How far word batches exceed their size, in last sentences: 0 is an exact fit, 1 a sentence too many.

    ``worst`` is over all full batches of all ``words``; ``short`` counts full batches below their size.
    """
    pairs = load_pairs(spec.settings["corpus"], "train", root=context.data)
    lengths = [len(english.split()) for _, english in pairs]
    worst, short, sizes = -math.inf, 0, []
    for words in spec.settings["words"]:
        batches = word_batches(lengths, words, seed(spec.seed, "order"))
        for batch in batches[:-1]:
            counts = [lengths[i] for i in batch.tolist()]
            worst = max(worst, (sum(counts) - words) / counts[-1])
            short += sum(counts) < words
        sizes.append(len(batches))
    return Outcome("finished", {"worst": worst, "short": short, "batches": sizes})
