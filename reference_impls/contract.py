"""What a paper's algorithm may assume of the world, and what the world may assume of it.

No logic stands here. An algorithm is a set of pure functions over flat parameters. It *names* the batch it
wants and the points it wants gradients at, and is *told* sums of gradients; it never sees autograd, data,
devices or clocks. It may branch on a :class:`Turn` (plain integers known before any gradient exists), never
on the value of a tensor, so the same file runs eagerly, under ``vmap``, inside a captured CUDA graph, under
virtual time and over several processes.

Shapes use: ``k`` workers in all, ``m`` worker rows held by this process, ``d`` parameters, ``p`` distinct
points asked for, ``n`` gradients asked for (entries of the turn).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from torch import Tensor


class Entry(NamedTuple):
    """One gradient that an update consumes; integers only, known before any gradient is computed."""

    worker: int  # whose gradient, 0 <= worker < k
    read: int  # timestamp of the weights it is computed on: number of updates applied to them
    number: int  # which batch of the worker's stream, unless the algorithm names another in Ask.batch


class Turn(NamedTuple):
    """One update, fixed before any of its gradients exists; no entries: nothing new arrives (drain)."""

    t: int  # updates applied before this one
    entries: tuple[Entry, ...]  # the m (or n) entries held here; a server orders them by read


class Ask(NamedTuple):
    """Where the algorithm wants gradients."""

    points: Tensor  # [p, d] distinct points
    shares: tuple[int, ...]  # entries evaluated at each point, in order; sums to n
    batch: Tensor  # [n] int64 batch numbers, on the device: they may depend on earlier losses


class Told(NamedTuple):
    """What the gradients turned out to be."""

    losses: Tensor  # [n] mean loss of each entry's batch at its point
    sums: Tensor  # [p, d] sum of the gradients of the entries that share each point
    sent: tuple[tuple[slice, Pending], ...] = ()  # (segment of d, its sum under way), in backward order


class Pending(Protocol):
    """A sum under way over all workers. A checkpoint stores its settled value."""

    def wait(self) -> Tensor:
        """Block until the sum [s] is there and return it; every later call returns the same tensor."""
        ...

    def done(self) -> bool:
        """Whether ``wait`` would return at once."""
        ...


class Collective(Protocol):
    """Moves values between workers. Charging time for it is a clock's business."""

    workers: int  # k

    def start(self, rows: Tensor, each: int | None = None) -> Pending:
        """Begin summing ``rows`` [r, s] over all processes; returns at once with a Pending of [s].

        The rows stand for the m workers held here: ``each`` of them share a row, so that r x each = m. By default
        a row stands for one worker, and a lone row for all m.
        """
        ...

    def sum(self, rows: Tensor, each: int | None = None) -> Tensor:
        """``start(rows, each).wait()``: [r, s] -> [s]."""
        ...


class Descent(Protocol):
    """The local solver. Momentum convention, weight decay and per-parameter multipliers live here only.

    Memory keeps the parameters on its last axis and the points' leading axes first: [..., d], or [..., r, d]
    where a solver needs r values per parameter. It starts as zeros; ``memory[..., part]`` is that of a part.
    """

    def init(self, points: Tensor) -> Tensor:
        """Memory for points [..., d]: zeros, [..., d] or [..., r, d]."""
        ...

    def step(
        self, memory: Tensor, points: Tensor, grads: Tensor, lr: Tensor, part: slice = ...
    ) -> tuple[Tensor, Tensor]:
        """New (points, memory) from memory and gradients [..., s], where ``part`` selects s of the d."""
        ...


class Algorithm(Protocol):
    """A paper's module satisfies this. State is a NamedTuple of tensors whose shapes never change
    (or of Pending, or tuples of these), so that it can be stacked, captured and checkpointed."""

    def init(self, config: Any, x0: Tensor, workers: int, rows: int, descent: Descent) -> Any:
        """State at the initial weights x0 [d] for ``workers`` k of which ``rows`` m are held here."""
        ...

    def ask(self, config: Any, state: Any, turn: Turn) -> Ask:
        """Points and batches of this turn. Pure; may be called ahead for entries whose ``read`` exists."""
        ...

    def tell(
        self,
        config: Any,
        state: Any,
        turn: Turn,
        told: Told,
        *,
        collective: Collective,
        descent: Descent,
        lr: Tensor,
    ) -> Any:
        """State after the update. ``lr`` is a 0-d tensor. Nothing passed in is modified."""
        ...

    def model(self, config: Any, state: Any, collective: Collective) -> Tensor:
        """[d] the parameters that the paper evaluates."""
        ...

    # Optional, found with getattr:
    #   send(config, rows [m, s], collective) -> Pending      once per segment while backward produces it
    #   resize(config, state, rows) -> State                  learners come or go, between two turns
    #   restart(config, state) -> State                       after a change of the learning rate
    #   observe(config, before, after) -> {name: 0-d tensor}  what of a turn is worth a curve
    #   summary(config, state) -> {name: number}              read once, when the run has ended


class Server(Protocol):
    """A parameter server's protocol in integers: the same object under virtual time or behind a socket."""

    def push(self, worker: int) -> Turn | None:
        """A worker's gradient arrives; returns the update it completes, if it completes one."""
        ...

    def may_pull(self, worker: int) -> bool:
        """Whether the worker may fetch weights now (a barrier protocol makes it wait)."""
        ...

    def pull(self, worker: int) -> int:
        """The worker fetches weights; returns their timestamp."""
        ...
