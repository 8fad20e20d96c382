"""What a paper's algorithm may assume of the world, and what the world may assume of it.

No update rule stands here. An algorithm is a frozen object whose methods are pure functions over flat parameters. It
*names* the batches it wants and the points it wants gradients at, and is handed losses and sums of gradients; it
never sees autograd, data, devices or clocks. It may branch on a :class:`Turn` (plain integers known before any
gradient exists), never on the value of a tensor, so the same class runs eagerly, under ``vmap``, inside a CUDA graph,
under virtual time and over several processes.

Shapes use: ``k`` workers in all, ``m`` worker rows held by this process, ``d`` parameters, ``p`` distinct
points asked for, ``n`` gradients asked for (entries of the turn).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:  # a server's protocol needs the turns alone, and no torch
    from torch import Tensor


class GradientRef(NamedTuple):
    """One gradient that an update consumes; integers only, known before any gradient is computed."""

    worker: int  # whose gradient, 0 <= worker < k
    read: int  # timestamp of the weights it is computed on: number of updates applied to them
    number: int  # which batch of the worker's stream, unless the algorithm names another in Points.batch


class Turn(NamedTuple):
    """One update, fixed before any of its gradients exists; no entries: nothing new arrives (drain)."""

    t: int  # updates applied before this one
    entries: tuple[GradientRef, ...]  # the m (or n) entries held here; a server orders them by read


class Points(NamedTuple):
    """Where the algorithm wants gradients."""

    parameters: Tensor  # [p, d], a row for each distinct point
    shares: tuple[int, ...]  # entries evaluated at each point, in order; sums to n
    batch: Tensor  # [n] int64 batch numbers, on the device: they may depend on earlier losses


class Pending(Protocol):
    """A sum under way over all workers. A checkpoint stores its settled value."""

    def wait(self) -> Tensor:
        """Block until the sum [s] is there and return it; every later call returns the same tensor."""
        ...

    def done(self) -> bool:
        """Whether ``wait`` would return at once."""
        ...


Sent: TypeAlias = tuple[tuple[slice, Pending], ...]  # (bucket of d, its sum under way), in backward order


class Collective(Protocol):
    """Moves values between workers. Charging time for it is a clock's business."""

    @property
    def workers(self) -> int:
        """k, in all processes together."""
        ...

    @property
    def rows(self) -> int:
        """m, held by this process."""
        ...

    def start(self, rows: Tensor, each: int | None = None) -> Pending:
        """Begin summing ``rows`` [r, s] over all processes; returns at once with a Pending of [s].

        The rows stand for the m workers held here: ``each`` of them share a row, so that r x each = m. By default
        a row stands for one worker, and a lone row for all m.
        """
        ...

    def sum(self, rows: Tensor, each: int | None = None) -> Tensor:
        """``start(rows, each).wait()``: [r, s] -> [s]."""
        ...


class Optimizer(Protocol):
    """The local solver. Momentum convention, weight decay and per-parameter multipliers live here only.

    Memory keeps the parameters on its last axis and leading axes first: [..., d], or [..., r, d] where a solver needs
    r values per parameter. It starts as zeros; ``memory[..., part]`` is that of a part.

    A solver whose rule differs by layer has a field ``layers: tuple[slice, ...]``, the place of each parameter
    tensor in [d]: whoever builds it hands them over.
    """

    def init(self, parameters: Tensor) -> Tensor:
        """Memory for parameters [..., d]: zeros, [..., d] or [..., r, d]."""
        ...

    def step(
        self, memory: Tensor, parameters: Tensor, gradients: Tensor, lr: Tensor, part: slice = ...
    ) -> tuple[Tensor, Tensor]:
        """New (parameters, memory) from memory and gradients [..., s], where ``part`` selects s of the d."""
        ...


State = TypeVar("State")


@dataclass(frozen=True)
class Algorithm(ABC, Generic[State]):
    """A paper's update rule with all that does not change from turn to turn.

    A subclass is a frozen dataclass whose own fields are the rule's settings. Its ``State`` is a NamedTuple of
    tensors whose shapes never change (or of Pending, or tuples of these), so that it can be stacked, captured and
    checkpointed. Nothing passed in is ever modified.
    """

    optimizer: Optimizer = field(repr=False)
    collective: Collective = field(repr=False)

    # Facts that decide how updates may be executed, never what they are.
    reads_turn: ClassVar[bool] = True  # False: ``update`` does the same at every turn, so one recording serves all
    keeps_parameters: ClassVar[bool] = True  # False: reads no parameters of the old state after the optimizer's step
    keeps_memory: ClassVar[bool] = True  # False: nor its memory
    replicated: ClassVar[bool] = False  # every worker has parameters of its own, so p = m
    sends: ClassVar[bool] = False  # True: gradients leave by ``send``, by bucket; ``update`` reads ``sent`` alone

    @abstractmethod
    def init(self, x0: Tensor) -> State:
        """State at the initial weights x0 [d], the same for all workers."""

    @abstractmethod
    def points(self, state: State, turn: Turn) -> Points:
        """Points and batches of this turn. May be called ahead for entries whose ``read`` exists."""

    @abstractmethod
    def update(
        self, state: State, turn: Turn, losses: Tensor, gradients: Tensor, lr: Tensor, sent: Sent = ()
    ) -> State:
        """State after a turn.

        Args:
            losses: [n] mean loss of each entry's batch at its point.
            gradients: [p, d] sum of the gradients of the entries that share each point.
            lr: learning rate, 0-d.
            sent: what ``send`` returned for each bucket, for an algorithm that ``sends``.
        """

    @abstractmethod
    def model(self, state: State) -> Tensor:
        """[d] the parameters that the paper evaluates."""

    def send(self, rows: Tensor) -> Pending:
        """Begin exchanging gradients [m, s] of a bucket."""
        return self.collective.start(rows)

    def under_way(self, state: State) -> int:
        """Turns without entries that it takes until every exchange that was started has been applied."""
        return 0

    def resize(self, state: State) -> State:
        """A state of another number of workers as one of ``collective.rows``: some join or leave between two turns.

        Raises ValueError where the algorithm has no rule for that.
        """
        raise ValueError(f"{type(self).__name__} has no rule for workers that come or go")

    def restart(self, state: State) -> State:
        """After a change of the learning rate. Raises ValueError where the algorithm has no rule for that."""
        raise ValueError(f"{type(self).__name__} has no rule for a restart after a change of the learning rate")

    def observe(self, before: State, after: State) -> Mapping[str, Tensor]:
        """What of a turn is worth a curve beside the loss: 0-d tensors by name."""
        return {}

    def summary(self, state: State) -> Mapping[str, float]:
        """Numbers by name, read once, when the run has ended."""
        return {}
