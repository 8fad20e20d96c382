"""Sums over workers. A collective moves values; what that costs is a clock's business."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import Tensor

from reference_impls.contract import Collective, Pending

if TYPE_CHECKING:
    from suite.processes import Group


@dataclass(frozen=True)
class Settled:
    """A sum that is already there."""

    value: Tensor

    def wait(self) -> Tensor:
        return self.value

    def done(self) -> bool:
        return True


@dataclass(frozen=True)
class Local:
    """All k workers are rows of this process."""

    workers: int

    def start(self, rows: Tensor) -> Settled:
        """Sum of rows [k, s] as a new tensor [s]."""
        assert rows.shape[0] in (self.workers, 1), (rows.shape, self.workers)
        return Settled(rows.sum(0))

    def sum(self, rows: Tensor) -> Tensor:
        return self.start(rows).wait()


class Flight:
    """A sum over processes under way. The buffer it fills must not be written to until it has landed."""

    def __init__(self, group: Group, total: Tensor, work: object):
        self._group, self._total, self._work = group, total, work

    def wait(self) -> Tensor:
        """The sum [s]. Raises WorkerLost when another worker died or did not answer in time."""
        if self._work is not None:
            with self._group.watched():
                self._work.wait()  # type: ignore[attr-defined]
            self._work = None
        return self._total

    def done(self) -> bool:
        return self._work is None or bool(self._work.is_completed())  # type: ignore[attr-defined]


class Processes:
    """The k workers are spread over processes, ``rows`` of them in each; sums travel as all-reduce.

    ``lanes`` process groups are used in turn, so that as many sums can be under way at once: the "communication
    threads" of MaTEx, which has one per iteration of delay. With ``in_place`` a single row is summed where it
    lies, without a copy: the caller then keeps its hands off that memory until the sum has landed.
    """

    def __init__(self, group: Group, *, rows: int = 1, lanes: int = 1, in_place: bool = False):
        if rows < 1 or lanes < 1:
            raise ValueError(f"a collective needs at least one row and one lane, not rows={rows}, lanes={lanes}")
        self.group, self.rows, self.in_place = group, rows, in_place
        self.workers = group.size * rows
        self.lanes = group.lanes(lanes)
        self._turn = 0

    def start(self, rows: Tensor) -> Flight:
        """Begin summing rows [m, s] over all workers. Every process must start the same sums in the same order."""
        assert rows.shape[0] in (self.rows, 1), (rows.shape, self.rows)
        import torch.distributed as dist

        if rows.shape[0] > 1:
            total = rows.sum(0)
        else:
            total = rows[0] if self.in_place and rows[0].is_contiguous() else rows[0].clone()
        if self.group.size == 1:
            return Flight(self.group, total, None)
        lane = self.lanes[self._turn % len(self.lanes)]
        self._turn += 1
        with self.group.watched():
            work = dist.all_reduce(total, group=lane, async_op=True)
        return Flight(self.group, total, work)

    def sum(self, rows: Tensor) -> Tensor:
        return self.start(rows).wait()


@dataclass
class Counted:
    """Another collective, with the sums it starts counted: how many, and of how many numbers each."""

    inner: Collective
    sizes: list[int] = field(default_factory=list)

    @property
    def workers(self) -> int:
        return self.inner.workers

    def start(self, rows: Tensor) -> Pending:
        self.sizes.append(rows.shape[-1])
        return self.inner.start(rows)

    def sum(self, rows: Tensor) -> Tensor:
        return self.start(rows).wait()
