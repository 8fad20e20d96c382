"""Mini-batches counted in words, as the translation experiments of "inverse_law" count them (section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from suite.data import counter


def word_batches(lengths: Tensor | Sequence[int], words: int, seed: int | None, epoch: int = 0) -> list[Tensor]:
    """The batches of one epoch, each a list of sentences [b] int64.

    Sentences are added, in a permutation drawn for the epoch, until their target words reach ``words`` or
    exceed it: a batch holds at least ``words`` target words and, without its last sentence, fewer. The last
    batch of an epoch takes what is left and may be short. Every sentence stands in exactly one batch.

    Args:
        lengths: target words of each sentence [N], all at least 1.
        words: target words per batch, M of the paper: 100, 200, ..., 6400.
        seed: of the permutations; None keeps the stored order.
        epoch: which permutation.

    Raises:
        ValueError: no sentence, a sentence without words, or ``words`` below 1.
    """
    counts = torch.as_tensor(lengths, dtype=torch.int64)
    if words < 1:
        raise ValueError(f"words={words} must be at least 1")
    if not len(counts):
        raise ValueError("word batches need at least one sentence")
    if int(counts.min()) < 1:
        empty = int(counts.argmin())
        raise ValueError(f"sentence {empty} has {int(counts[empty])} target words; leave it out")
    order = torch.arange(len(counts))
    if seed is not None:
        order = torch.randperm(len(counts), generator=counter.generator(seed, epoch))
    ends = counts[order].cumsum(0)  # words up to and including each sentence
    cuts, filled = [0], 0
    while cuts[-1] < len(counts):
        # first place at which the words since the last cut reach the batch size
        cut = int(torch.searchsorted(ends, filled + words)) + 1
        cuts.append(min(cut, len(counts)))
        filled = int(ends[cuts[-1] - 1])
    return list(order.split([after - before for before, after in pairwise(cuts)]))


class WordOrder:
    """Batches by number over all epochs. Epochs differ in their number of batches."""

    def __init__(self, lengths: Tensor | Sequence[int], words: int, seed: int) -> None:
        self.lengths, self.words, self.seed = torch.as_tensor(lengths, dtype=torch.int64), words, seed
        self._starts = [0]  # number of the first batch of each epoch known so far
        self._latest: tuple[int, list[Tensor]] = (-1, [])

    def sentences(self, number: int) -> Tensor:
        """Sentences [b] int64 of batch ``number``; the epochs before it are counted once, on first use."""
        if number < 0:
            raise ValueError(f"batch number {number} must not be negative")
        while self._starts[-1] <= number:
            self._starts.append(self._starts[-1] + len(self._epoch(len(self._starts) - 1)))
        epoch = self.epoch_of(number)
        return self._epoch(epoch)[number - self._starts[epoch]]

    def epoch_of(self, number: int) -> int:
        """Epoch in which batch ``number`` falls, once :meth:`sentences` has come so far."""
        starts = torch.tensor(self._starts)
        return int(torch.searchsorted(starts, number, right=True)) - 1

    def _epoch(self, epoch: int) -> list[Tensor]:
        if self._latest[0] != epoch:
            self._latest = epoch, word_batches(self.lengths, self.words, self.seed, epoch)
        return self._latest[1]


def padded(rows: Sequence[Sequence[int]], pad: int) -> Tensor:
    """Rows of unequal length as one tensor [b, longest] int64, filled up with ``pad`` on the right."""
    longest = max(map(len, rows), default=0)
    return torch.tensor([[*row, *([pad] * (longest - len(row)))] for row in rows], dtype=torch.int64)
