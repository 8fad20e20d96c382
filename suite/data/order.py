"""Which examples make up batch number n: functions from batch numbers to examples, without state.

Every order answers for any batch number directly, so a resumed run needs to know nothing but the number, and
an algorithm may name the batch it wants. Numbers may lie on an accelerator (ISGD's next batch depends on a
loss); unless stated otherwise they are never read on the host.

Every batch holds exactly ``batch`` examples. Where N examples do not divide into batches, an epoch has
ceil(N / batch) of them, and the last is completed with the first examples of the same permutation.

:class:`WordOrder` counts mini-batches in words, as the translation experiments of "inverse_law" do (section 5.2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Self

import torch
from torch import Tensor

from suite.data import counter


class Order(ABC):
    """What every order offers."""

    batch: int
    batches_per_epoch: int

    @abstractmethod
    def indices(self, numbers: Tensor, workers: Tensor | None = None) -> Tensor:
        """Examples [n, batch] int64 of the batches ``numbers`` [n] int64 of ``workers`` [n] int64.

        Orders that serve all workers from one stream ignore ``workers``; the others need it.
        """

    def to(self, device: torch.device | str) -> Self:
        """The order itself, answering on ``device``: its tensors, and an order inside it, are moved there.

        Numbers must then lie there too.
        """
        for name, part in vars(self).items():
            if isinstance(part, Tensor | Order):
                setattr(self, name, part.to(device))
        return self


def _check(examples: int, batch: int) -> None:
    if examples < 1:
        raise ValueError(f"an order needs at least one example, not examples={examples}")
    if not 1 <= batch <= examples:
        raise ValueError(f"batch={batch} does not fit {examples:,} examples; choose 1..{examples:,}")


def _permutation(examples: int, seed: int | None, *coordinates: int) -> Tensor:
    if seed is None:
        return torch.arange(examples)
    return torch.randperm(examples, generator=counter.generator(seed, *coordinates))


def _batches(order: Tensor, batch: int) -> Tensor:
    """An epoch's batches [ceil(N / batch), batch] of a permutation [N], the last completed with its first."""
    per_epoch = -(-len(order) // batch)
    missing = per_epoch * batch - len(order)
    return torch.cat([order, order[:missing]]).view(per_epoch, batch) if missing else order.view(per_epoch, batch)


class _FixedBatches(Order):
    """A few batches made beforehand, [batches, batch] examples, in a cycle."""

    def __init__(self, table: Tensor) -> None:
        self._table = table
        self.batches_per_epoch, self.batch = table.shape

    def indices(self, numbers: Tensor, workers: Tensor | None = None) -> Tensor:
        return self._table[numbers % self.batches_per_epoch]


class FixedCycle(_FixedBatches):
    """Fixed cycle pseudo random sampling (ISGD, section 3.1): permute once, then go round.

    Batch t is batch t mod ceil(N / batch), so each returns after exactly that many iterations.
    """

    def __init__(self, examples: int, batch: int, seed: int | None) -> None:
        """``seed`` None keeps the examples in their stored order, as Caffe's cursor and Crossbow do."""
        _check(examples, batch)
        super().__init__(_batches(_permutation(examples, seed), batch))


class Shuffled(Order):
    """A new permutation for each epoch of ceil(N / batch) batches.

    Permutations are drawn on the CPU when first needed and the last few are kept. To know which are needed,
    ``indices`` reads its numbers on the host: pass them on the CPU, and nothing waits for a device.
    """

    KEPT = 4  # epochs; workers of an asynchronous run may stand in neighbouring ones

    def __init__(self, examples: int, batch: int, seed: int) -> None:
        _check(examples, batch)
        self.examples, self.batch, self.seed = examples, batch, seed
        self.batches_per_epoch = -(-examples // batch)
        self._device = torch.device("cpu")
        self._epoch = lru_cache(self.KEPT)(self._drawn)

    def indices(self, numbers: Tensor, workers: Tensor | None = None) -> Tensor:
        places = [divmod(number, self.batches_per_epoch) for number in numbers.tolist()]
        rows = [self._epoch(epoch)[place] for epoch, place in places]
        return torch.stack(rows) if rows else torch.empty(0, self.batch, dtype=torch.int64, device=self._device)

    def _drawn(self, epoch: int) -> Tensor:
        return _batches(_permutation(self.examples, self.seed, epoch), self.batch).to(self._device)

    def to(self, device: torch.device | str) -> Self:
        self._device = torch.device(device)
        self._epoch.cache_clear()
        return self


class WithReplacement(Order):
    """Every example of every batch drawn uniformly and independently, by counter.

    Given ``workers``, each has a stream of its own; without them all share that of worker 0. On the CPU a worker's
    small batches are drawn many at a time: a draw of four examples costs as much as one of ``DRAWN``.
    """

    DRAWN = 256  # examples, of as many batches as they make

    def __init__(self, examples: int, batch: int, seed: int) -> None:
        self.examples, self.batch, self.seed = examples, batch, seed
        self.batches_per_epoch = -(-examples // batch)
        self._together = max(1, self.DRAWN // batch)  # batches of a draw
        self._drawn: dict[int, tuple[int, Tensor]] = {}  # by worker: which draw it made last, and its batches

    def indices(self, numbers: Tensor, workers: Tensor | None = None) -> Tensor:
        worker = torch.zeros_like(numbers) if workers is None else workers
        if self._together == 1 or numbers.device.type != "cpu" or not len(numbers):
            return self._draw(worker, numbers)
        return torch.stack([self._batch(*pair) for pair in zip(worker.tolist(), numbers.tolist(), strict=True)])

    def _draw(self, worker: Tensor, numbers: Tensor) -> Tensor:
        place = torch.arange(self.batch, device=numbers.device)
        return counter.below(self.examples, self.seed, worker[:, None], numbers[:, None], place)

    def _batch(self, worker: int, number: int) -> Tensor:
        """The examples [batch] of one batch, out of the worker's draw that holds it."""
        draw, place = divmod(number, self._together)
        known, batches = self._drawn.get(worker, (-1, None))
        if batches is None or known != draw:
            numbers = torch.arange(draw * self._together, (draw + 1) * self._together)
            batches = self._draw(torch.full_like(numbers, worker), numbers)
            self._drawn[worker] = draw, batches
        return batches[place]


class Partitioned(Order):
    """One contiguous part of the data per worker; examples never move between workers (MaTEx, section 3).

    The parts are disjoint, cover everything and differ by at most one example. Each worker cycles through
    its own part in a fixed permutation of it (stored order if ``seed`` is None). All workers have the period
    of the largest part, ceil(ceil(N / workers) / batch) batches.
    """

    def __init__(self, examples: int, workers: int, batch: int, seed: int | None) -> None:
        if workers < 1 or examples < workers:
            raise ValueError(f"workers={workers} cannot share {examples} examples; choose 1..{examples}")
        _check(examples // workers, batch)
        bounds = [worker * examples // workers for worker in range(workers + 1)]
        sizes = [after - before for before, after in pairwise(bounds)]
        self.examples, self.workers, self.batch = examples, workers, batch
        self.batches_per_epoch = -(-max(sizes) // batch)
        self._starts, self._sizes = torch.tensor(bounds[:-1]), torch.tensor(sizes)
        parts = [_permutation(size, seed, worker) + bounds[worker] for worker, size in enumerate(sizes)]
        self._order = torch.cat(parts)

    def indices(self, numbers: Tensor, workers: Tensor | None = None) -> Tensor:
        assert workers is not None
        first = (numbers % self.batches_per_epoch)[:, None] * self.batch  # of a batch in its worker's permutation
        places = (first + torch.arange(self.batch, device=numbers.device)) % self._sizes[workers][:, None]
        return self._order[self._starts[workers][:, None] + places]


class ByClass(Partitioned):
    """Shards that are not alike: one part of the data per worker, in which some classes are frequent and some rare.

    The data are sorted by class, then the examples at a share 1 - ``skew`` of the places, drawn at random, are mixed;
    each worker holds a contiguous part. At ``skew`` 1 a worker has classes of its own, at 0 all parts are alike.
    """

    def __init__(self, targets: Tensor, workers: int, batch: int, seed: int, skew: float = 1.0) -> None:
        """Raises ValueError for a ``skew`` outside [0, 1], and as :class:`Partitioned` does."""
        super().__init__(len(targets), workers, batch, seed)
        if not 0 <= skew <= 1:
            raise ValueError(f"skew={skew} must lie in [0, 1], the share of the data that stays sorted by class")
        examples = torch.cat(_members(targets, seed))
        places = _permutation(len(examples), seed, workers)[round(skew * len(examples)) :]
        examples[places] = examples[places[_permutation(len(places), seed, workers + 1)]]
        # The order inside each part is that of a partitioned order of the same seed.
        self._order = examples[self._order]


class SharedPool(Order):
    """All workers take turns at one common order: batch n of worker w is its batch number n * workers + w.

    For schedules that count each worker's batches apart. Where numbers already count over all workers, use
    the common order itself.
    """

    def __init__(self, order: Order, workers: int) -> None:
        self.order, self.workers, self.batch = order, workers, order.batch
        # the epoch ends, for every worker, with the round in which the common order's does
        self.batches_per_epoch = -(-order.batches_per_epoch // workers)

    def indices(self, numbers: Tensor, workers: Tensor | None = None) -> Tensor:
        assert workers is not None
        return self.order.indices(numbers * self.workers + workers)


class SplitBatch(Order):
    """Data parallelism: each batch of a common order is cut into equal consecutive shares, one per worker."""

    def __init__(self, order: Order, workers: int) -> None:
        """``workers`` divide the order's batch."""
        self.order, self.workers, self.batch = order, workers, order.batch // workers
        self.batches_per_epoch = order.batches_per_epoch

    def indices(self, numbers: Tensor, workers: Tensor | None = None) -> Tensor:
        assert workers is not None
        shares = self.order.indices(numbers).view(len(numbers), self.workers, self.batch)
        return shares[torch.arange(len(numbers), device=numbers.device), workers]


class SingleClass(_FixedBatches):
    """Batch t holds distinct examples of class t mod classes only (ISGD, Fig. 1b: total sampling bias)."""

    def __init__(self, targets: Tensor, batch: int, seed: int, batches: int | None = None) -> None:
        """``batches`` in the cycle, by default one per class. No example stands in two of them."""
        members = _members(targets, seed)
        count = len(members) if batches is None else batches
        _check_stock(members, [len(range(label, count, len(members))) * batch for label in range(len(members))])
        rows = []
        for t in range(count):
            round_, label = divmod(t, len(members))
            rows.append(members[label][round_ * batch : (round_ + 1) * batch])
        super().__init__(torch.stack(rows))


class Balanced(_FixedBatches):
    """Batches with equally many examples of each class, class by class (ISGD, Fig. 1a: "i.i.d." batches)."""

    def __init__(self, targets: Tensor, batch: int, seed: int, batches: int) -> None:
        """``batches`` in the cycle, ten in the paper. No example stands in two of them.

        Raises:
            ValueError: the classes do not divide ``batch``, or a class has too few examples.
        """
        members = _members(targets, seed)
        if batch % len(members):
            raise ValueError(f"batch={batch} cannot hold {len(members)} classes equally; choose a multiple")
        share = batch // len(members)
        _check_stock(members, [share * batches] * len(members))
        parts = [member[: share * batches].view(batches, share) for member in members]
        super().__init__(torch.cat(parts, dim=1))


class LeftOut(Order):
    """An order of which some batches of every epoch are left out for a while: the epochs are then shorter."""

    def __init__(self, order: Order, batches: Sequence[int], since: int, until: int) -> None:
        """``batches``: their places in an epoch; left out from epoch ``since`` to the last one before ``until``.

        Raises:
            ValueError: a place outside an epoch, named twice, or none that stays; epochs out of order.
        """
        places = range(order.batches_per_epoch)
        stay = [place for place in places if place not in batches]
        if not stay or len(stay) + len(batches) != len(places) or not 0 <= since <= until:
            raise ValueError(
                f"cannot leave out batches {list(batches)} of {len(places)} in epochs {since} to {until}"
            )
        self.order, self.batch, self.batches_per_epoch = order, order.batch, order.batches_per_epoch
        self._stay, self._since, self._until = torch.tensor(stay), since, until

    def indices(self, numbers: Tensor, workers: Tensor | None = None) -> Tensor:
        whole, short = self.batches_per_epoch, len(self._stay)
        over = numbers - self._since * whole  # batches since the first short epoch
        after = over - (self._until - self._since) * short  # batches since the last
        inside = (self._since + over // short) * whole + self._stay[over % short]
        there = torch.where(after < 0, inside, self._until * whole + after)
        return self.order.indices(torch.where(over < 0, numbers, there), workers)


def _members(targets: Tensor, seed: int) -> list[Tensor]:
    """The examples of each class that occurs, ascending by class, each list in a permutation of its own."""
    found = [torch.nonzero(targets == label).flatten() for label in targets.unique(sorted=True)]
    return [rows[_permutation(len(rows), seed, place)] for place, rows in enumerate(found)]


def _check_stock(members: Sequence[Tensor], needed: Sequence[int]) -> None:
    if not any(needed):
        raise ValueError("a cycle needs at least one batch of at least one example")
    for label, (rows, need) in enumerate(zip(members, needed, strict=True)):
        if need > len(rows):
            raise ValueError(
                f"class number {label} has {len(rows)} examples and the batches need {need}; "
                f"choose a smaller batch or fewer batches"
            )


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
        ValueError: ``words`` below 1.
    """
    counts = torch.as_tensor(lengths, dtype=torch.int64)
    if words < 1:
        raise ValueError(f"words={words} must be at least 1")
    order = _permutation(len(counts), seed, epoch)
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
        counts = torch.as_tensor(lengths, dtype=torch.int64)
        self._starts = [0]  # number of the first batch of each epoch known so far
        self._epoch = lru_cache(1)(partial(word_batches, counts, words, seed))

    def sentences(self, number: int) -> Tensor:
        """Sentences [b] int64 of batch ``number``; the epochs before it are counted once, on first use."""
        while self._starts[-1] <= number:
            self._starts.append(self._starts[-1] + len(self._epoch(len(self._starts) - 1)))
        epoch = bisect_right(self._starts, number) - 1
        return self._epoch(epoch)[number - self._starts[epoch]]


def padded(rows: Sequence[Sequence[int]], pad: int) -> Tensor:
    """Rows of unequal length as one tensor [b, longest] int64, filled up with ``pad`` on the right."""
    longest = max(map(len, rows), default=0)
    return torch.tensor([[*row, *([pad] * (longest - len(row)))] for row in rows], dtype=torch.int64)
