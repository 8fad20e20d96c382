"""Sums over workers. A collective moves values; what that costs is a clock's business."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from reference_impls.contract import Collective, Pending
from suite.tables import Table

if TYPE_CHECKING:
    from torch.distributed import Work

    from suite.communication.group import Group

A_SUM = "a sum over workers"


@dataclass(frozen=True)
class CompletedSum:
    """A sum that is already there."""

    value: Tensor

    def wait(self) -> Tensor:
        return self.value

    def done(self) -> bool:
        return True


def check_rows(rows: Tensor, held: int, each: int | None) -> None:
    """Raise ValueError unless ``rows`` stand for the workers ``held`` here, ``each`` of them sharing a row."""
    r = rows.shape[0]
    if (r not in (1, held)) if each is None else r * each != held:
        shared = "one row, or a row for each" if each is None else f"{held / each:g} rows for {each} of them each"
        raise ValueError(f"a sum was handed {r} rows for {held} workers; it takes {shared}")


@dataclass(frozen=True)
class Local:
    """All k workers are rows of this process."""

    workers: int

    @property
    def rows(self) -> int:
        return self.workers

    def start(self, rows: Tensor, each: int | None = None) -> CompletedSum:
        """Sum of rows [r, s] as a new tensor [s]. Raises ValueError for rows that do not stand for k workers."""
        check_rows(rows, self.workers, each)
        return CompletedSum(rows.sum(0))

    def sum(self, rows: Tensor, each: int | None = None) -> Tensor:
        return self.start(rows, each).wait()


class Alone(Local):
    """The one worker of a run. A sum used at once is its row itself: adding it up would copy all parameters."""

    def __init__(self) -> None:
        super().__init__(1)

    def sum(self, rows: Tensor, each: int | None = None) -> Tensor:
        """Row 0 of rows [1, s], valid as long as they are; what ``start`` returns is a copy and may be kept."""
        check_rows(rows, 1, each)
        return rows[0]


def in_process(workers: int) -> Local:
    """The collective of workers that are all rows of this process."""
    return Local(workers) if workers > 1 else Alone()


class PendingSum:
    """A sum over processes under way. The buffer it fills must not be written to until it has landed."""

    def __init__(self, group: Group, total: Tensor, work: Work | None):
        self._group, self._total, self._work = group, total, work

    def wait(self) -> Tensor:
        """The sum [s]. Raises WorkerLost when another worker died or did not answer in time."""
        if self._work is not None:
            with self._group.watched(A_SUM):
                self._work.wait()
                self._group.queued()
            self._work = None
        return self._total

    def done(self) -> bool:
        return self._work is None or bool(self._work.is_completed())


class Processes:
    """The k workers are spread over processes, ``rows`` of them in each; sums travel as all-reduce.

    ``lanes`` process groups are used in turn, so that as many sums can be under way at once: the "communication
    threads" of MaTEx, which has one per iteration of delay. With ``in_place`` a single row is summed where it
    lies, without a copy: the caller then keeps its hands off that memory until the sum has landed.
    """

    def __init__(self, group: Group, *, rows: int = 1, lanes: int = 1, in_place: bool = False):
        self.group, self.rows, self.in_place = group, rows, in_place
        self.workers = group.size * rows
        self.lanes = group.lanes(lanes)
        self._turn = 0

    def start(self, rows: Tensor, each: int | None = None) -> PendingSum:
        """Begin summing rows [r, s] over all workers. Every process must start the same sums in the same order.

        Raises ValueError for rows that do not stand for the m workers held here.
        """
        check_rows(rows, self.rows, each)
        import torch.distributed as dist

        if rows.shape[0] > 1:
            total = rows.sum(0)
        else:
            total = rows[0] if self.in_place and rows[0].is_contiguous() else rows[0].clone()
        if self.group.size == 1:
            return PendingSum(self.group, total, None)
        lane = self.lanes[self._turn % len(self.lanes)]
        self._turn += 1
        with self.group.watched(A_SUM):
            work = dist.all_reduce(total, group=lane, async_op=True)
        return PendingSum(self.group, total, work)

    def sum(self, rows: Tensor, each: int | None = None) -> Tensor:
        return self.start(rows, each).wait()


@dataclass
class CountingCollective:
    """Another collective, with what it sends counted.

    ``sent`` are the bytes that each worker has handed to sums so far. A lone worker sends nothing. A collective that
    sends less than the numbers it is given (rounded, compressed) says so by a ``sent`` of its own.
    """

    inner: Collective
    sent: int = 0

    def __post_init__(self) -> None:
        self.workers, self.rows = self.inner.workers, self.inner.rows

    def start(self, rows: Tensor, each: int | None = None) -> Pending:
        inner: Any = self.inner
        before = getattr(inner, "sent", None)
        pending: Pending = inner.start(rows, each)
        if before is not None:
            self.sent += inner.sent - before
        elif self.workers > 1:
            self.sent += rows.shape[-1] * rows.element_size()
        return pending

    def sum(self, rows: Tensor, each: int | None = None) -> Tensor:
        return self.start(rows, each).wait()


# Functions of the number of workers and of their own options that return a Collective.
EXCHANGES: Table[Callable[..., Collective]] = Table("exchange", {"sums": in_process})
