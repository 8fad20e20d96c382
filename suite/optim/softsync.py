"""Rudra's parameter server as an optimiser, its learners taking turns in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, cast

import torch
from torch import Tensor, nn

from reference_impls import rudra, rudra_protocol
from reference_impls.contract import Turn
from suite.communication.group import Group
from suite.optim import joining
from suite.optim.base import Algorithm
from suite.optim.core import Core
from suite.optim.solver import Grouped
from suite.optim.vector import Loss


class Softsync(Algorithm):
    """Rudra's parameter server and its learners, which take turns in one process.

    Each learner computes on the weights that it pulled after its last gradient, so gradients are as stale as a
    server with equally fast learners makes them. Over processes use :func:`~suite.optim.parameter_server`.

    Args:
        module: what is trained; its parameters become views of one vector.
        params: parameters or groups of them; by default all that require a gradient.
        lr: the rate of the server's SGD; required unless groups have their own.
        momentum: of the server's SGD.
        weight_decay: of the server's SGD, coupled.
        n: 0 is hardsync, 1 to ``learners`` is n-softsync, ``learners`` asynchronous.
        learners: that push and pull in turn.
        modulate: divide the rate by n, the mean staleness (Eq. 6).
        per_gradient: divide each gradient by its own staleness instead.
        updates: after which ``batches`` ends; None is never.
        watch: is called with the vector clock of every update.
        fused: False is the solver of the papers' figures, several times slower; by default torch's fused SGD.
        group: of this process alone.

    Raises:
        ValueError: a setting out of its range, several processes, a module that cannot be trained this way.
        TypeError: a setting that it has not.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(2, 1)
        >>> opt = Softsync(model, lr=0.05, n=1, learners=4)
        >>> for _ in range(8):  # the learners push and pull in turn
        ...     opt.zero_grad()
        ...     model(torch.ones(3, 2)).square().mean().backward()
        ...     opt.step()
        >>> opt.t  # an update takes the gradients of four
        2

    Source: Suyog Gupta, Wei Zhang and Josh Milthorpe, "Model Accuracy and Runtime Tradeoff in Distributed Deep
    Learning", 2015, Eqs. 3 to 6; ``reference_impls.rudra``.
    """

    def __init__(
        self,
        module: nn.Module,
        params: Iterable[Any] | None = None,
        *,
        lr: float | None = None,
        n: int = 1,
        learners: int = 2,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        modulate: bool = True,
        per_gradient: bool = False,
        updates: int | None = None,
        watch: Callable[[Turn], Any] | None = None,
        fused: bool | None = None,
        group: Group | None = None,
        **unknown: Any,
    ):
        learners, n = joining.number_of_learners(type(self).__name__, learners), joining.whole("n", n)
        if updates is not None:
            joining.whole("updates", updates, 1, ", or None for no end")
        self.learners, self.updates = self._learners_here(learners), updates
        self._chosen: dict[str, Any] = {"workers": learners, "n": n, "per_gradient": per_gradient}
        self._server = rudra_protocol.Server(learners, n)
        self._divisor = max(n, 1) if modulate and not per_gradient else 1
        self._watch, self._at_once = watch, not per_gradient
        self._versions: dict[int, Tensor] = {}  # weights that learners hold, by timestamp
        self._spare: Tensor | None = None  # a version that none of them holds any more
        self._learner = 0  # whose turn it is
        settings = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, **unknown}
        super().__init__(module, params, settings=settings, fused=fused, group=group)

    def _learners_here(self, learners: int) -> int:
        return learners

    def _core(self, weights: Tensor | None) -> Core:
        if self.group.size > 1:
            raise ValueError(
                "Softsync over several processes needs one of them as the server: use `with parameter_server(model, "
                "...) as opt`, or give every process a group of its own"
            )
        cast(Grouped, self.solver).divisor = self._divisor
        if weights is not None and self.learners > 1:
            weights = torch.empty_like(weights)  # the module holds what its learner pulled
        return Core(rudra.Softsync(self.solver, self._collective(), **self._chosen), weights)

    def _facts(self) -> dict[str, Any]:
        return super()._facts() | {"settings": f"{self._chosen} divided by {self._divisor}"}

    def _lay_out(self) -> None:
        """A row for the gradients of each timestamp that wait for an update."""
        super()._lay_out()
        self._rows: dict[int, int] = {}  # timestamp -> row

    def _require_rest(self, what: str) -> None:
        raise ValueError(
            f"{what} cannot be: the learners of Softsync hold weights of several ages, and new ones would have one; "
            "make a new optimiser"
        )

    def batches(self, loader: Iterable[Any]) -> Iterator[Any]:
        """What ``loader`` yields, over and over, until ``updates`` updates are made.

        Args:
            loader: of batches; an iterator, such as a generator, must not end before the updates are made.

        Returns:
            An iterator over its batches.

        Raises:
            ValueError: the loader is empty, or an iterator that has ended.
        """
        while not self._finished:
            given = 0
            for batch in loader:
                given += 1
                yield batch
                if self._finished:
                    return
            if isinstance(loader, Iterator):
                raise ValueError(
                    f"the loader has ended after {given} batches, with updates still to make, and cannot begin anew, "
                    "as it is an iterator (a generator?); hand over what can be gone through again, such as the "
                    "DataLoader or a list"
                )
            if not given:
                raise ValueError("the loader is empty")

    @property
    def _finished(self) -> bool:
        return self.updates is not None and self.t >= self.updates

    @torch.no_grad()
    def _take(self, loss: Loss) -> None:
        """Push the gradient, let the server update if that completes one, and pull."""
        self._check()
        pieces = self._pieces()
        if pieces is None:
            self._add(self._server.read[self._learner])
        self._losses.append(loss.detach() if isinstance(loss, Tensor) else loss)
        self.buffers.keep(self._learner)
        turn = self._server.push(self._learner)
        if turn is not None:
            losses, self._losses = self._losses, []
            self._tell(turn, losses, self._sums() if pieces is None else pieces)
            self._rows.clear()
            if self._watch is not None:
                self._watch(turn)
        for learner in range(self.learners) if turn is not None and self._server.n == 0 else (self._learner,):
            if self._server.may_pull(learner):
                self._server.pull(learner)
        self._learner = (self._learner + 1) % self.learners
        self._load()

    def _add(self, read: int) -> None:
        """Add the parameters' gradients to those of the same timestamp ``read``."""
        if read in self._rows:
            self.vector.gradient(self._views[self._rows[read]], add=True)
            return
        row = self._rows[read] = len(self._rows)
        self._reserve(max(row + 1, len(self._gradients)))
        self.vector.gradient(self._views[row])

    def _sums(self) -> Tensor:
        """Gradients [p, d] summed by the timestamp of the weights they were computed on, oldest first."""
        rows = [self._rows[read] for read in sorted(self._rows)]
        if rows == sorted(rows):
            return self._gradients[: len(rows)]
        return self._gradients[rows]

    @torch.no_grad()
    def _load(self) -> None:
        """The weights that the next learner holds, with its buffers."""
        self.vector.load(self._point())
        self.buffers.load(self._learner)

    def _point(self) -> Tensor:
        newest, x = self._server.timestamp, self.core_state.x
        if self.learners == 1:
            return x
        held = set(self._server.read)
        for at in set(self._versions) - held:
            self._spare = self._versions.pop(at)
        if newest in held and newest not in self._versions:
            self._versions[newest] = self._copied(x) if self._fused else x
        return self._versions[self._server.read[self._learner]]

    def _copied(self, x: Tensor) -> Tensor:
        """A copy of the weights [d], where a version lay that no learner holds any more: new memory takes longer."""
        spare, self._spare = self._spare, None
        return x.clone() if spare is None else spare.copy_(x)

    def take_up(self) -> None:
        """As if every learner had pulled these weights: gradients that wait for their update are dropped."""
        server = self._server
        server.buffer, server.read = [], [server.timestamp] * self.learners
        if server.n == 0:
            server.number = list(server.read)  # all are awaited again
        self._versions, self._rows, self._learner = {}, {}, 0
        super().take_up()

    def _waiting(self) -> Tensor:
        return self._gradients[:0]  # sums by timestamp are kept instead

    def _further_state(self) -> dict[str, Any]:
        versions = {str(at): version.clone() for at, version in self._versions.items()}
        sums = {str(read): self._gradients[row].clone() for read, row in self._rows.items()}
        server = asdict(self._server)
        server["buffer"] = [list(entry) for entry in server["buffer"]]  # torch.load refuses types of ours
        return {"server": server, "learner": self._learner, "versions": versions, "sums": sums}

    def _restore(self, held: Mapping[str, Any]) -> None:
        self._server, self._learner = rudra_protocol.Server(**held["server"]), held["learner"]
        device = self.vector.x.device
        self._versions = {int(at): version.to(device, copy=True) for at, version in held["versions"].items()}
        self._rows = {}
        for read, sums in held["sums"].items():
            self._add(int(read))
            self._gradients[self._rows[int(read)]] = sums.to(device)
