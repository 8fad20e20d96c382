"""Rudra's parameter server and its learners as processes, with the lines of one's own loop.

    with parameter_server(model, lr=0.05, n=1, updates=2000) as opt:
        for inputs, targets in opt.batches(loader):
            opt.zero_grad()
            loss_of(model(inputs), targets).backward()
            opt.step()  # push, and pull what is newer
    test(opt.average())

Under ``torchrun --nproc-per-node 5`` process 0 is the server, which sees no batch, and the others are four learners.
In one process ``learners`` take turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from reference_impls import rudra
from reference_impls.contract import Turn
from suite.communication.collectives import Local
from suite.communication.group import Group
from suite.optim import joining
from suite.optim.core import Core
from suite.optim.module import tested
from suite.optim.softsync import Softsync
from suite.optim.solver import SETTINGS, Grouped
from suite.optim.vector import Loss
from suite.parameter_server.processes import Learner, Observed, Reports, connect, observe
from suite.parameter_server.servers import Layout, Root, Served

Evaluate = Callable[[nn.Module], float]


@contextmanager
def parameter_server(
    module: nn.Module,
    params: Iterable[Any] | None = None,
    *,
    updates: int,
    learners: int = 2,
    evaluate: Evaluate | None = None,
    epoch: int = 1,
    timeout: float | None = None,
    group: Group | None = None,
    **settings: Any,
) -> Iterator[Softsync]:
    """A :class:`~suite.optim.Softsync` over all processes, of which process 0 is the server.

    A learner that is killed, or does not answer in time, is lost: under hardsync all end with WorkerLost, otherwise
    the others go on. The loss of the server ends all. (``torchrun`` itself ends all processes when one has failed; a
    launcher that does not, such as ``srun --no-kill``, lets the others go on.)

    Args:
        module: what is trained.
        params: parameters or groups of them; by default all that require a gradient.
        updates: that the server makes.
        learners: in one process; of several, all but process 0 are learners.
        evaluate: makes the last of three or more processes a statistics server, which tests the model by this after
            every ``epoch`` updates while the others go on; ``opt.observed`` has there the tests at the end, and the
            losses that ``opt.step(closure)`` gave, NaN without a closure.
        epoch: updates from one test to the next.
        timeout: seconds within which a learner answers, longer than a batch takes; by default the group's, a minute.
        group: processes to train with; by default all of ``torchrun``.
        settings: those of Softsync.

    Returns:
        A context that gives the optimiser; ``opt.batches(loader)`` ends with the last update.

    Raises:
        WorkerLost: the training cannot go on.
        ValueError: as Softsync, where processes differ, where ``evaluate`` has no process or buffers to test, and for
            an ``epoch`` below 1.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(2, 1)
        >>> with parameter_server(model, lr=0.05, n=1, updates=3) as opt:
        ...     for inputs in opt.batches([torch.ones(3, 2)]):
        ...         opt.zero_grad()
        ...         model(inputs).square().mean().backward()
        ...         opt.step()  # push, and pull what is newer
        >>> opt.t
        3

    Source: as of Softsync, section 3.2.
    """
    learners = joining.number_of_learners("parameter_server", learners)
    found = joining.group(timeout) if group is None else group
    if group is not None and timeout is not None:
        group.wait_for(timeout)
    if evaluate and found.size < 3:
        raise ValueError("evaluate needs a server, a learner and a process of its own, so three processes or more")
    if epoch < 1:
        raise ValueError(f"epoch must be one update or more, not {epoch}")
    if found.size == 1:
        yield Softsync(module, params, learners=learners, updates=updates, group=found, **settings)
    else:
        opt = Remote(module, params, evaluate, epoch, updates=updates, group=found, **settings)
        try:
            yield opt
        except BaseException:
            opt.fail()
            raise
        finally:
            opt.reports.close()


class Remote(Softsync):
    """Softsync over processes: the server in process 0, the statistics server, if any, in the last, else learners.

    Schedulers and groups' settings are the learners' own; an update happens with the rates, momentum and decay that
    came with its last gradient.
    ``t`` counts the updates behind the weights held here, ``served`` is what the server saw, ``observed`` what the
    statistics server did.
    """

    _no_loss = math.nan
    _no_join = "learners of a parameter server wait for nobody; leave join() out"

    def __init__(self, module: nn.Module, params: Any, evaluate: Evaluate | None, epoch: int, **settings: Any):
        super().__init__(module, params, learners=settings["group"].size - 1 - (evaluate is not None), **settings)
        facts = {"settings": str(self._chosen), "updates": self.updates}
        x = self.vector.x
        left = self.buffers.total().numel()
        if evaluate and left:
            raise ValueError("evaluate cannot test batch norm: its statistics stay with the learners until the end")
        layout = Layout(self._chosen["workers"], tested=evaluate is not None)
        connections, told = connect(self.group, facts, x, layout.pushes, layout.reports)
        self.served, self.observed = Served(x), Observed()
        self.reports = Reports(told, self.group)
        self._mean_buffers: Tensor | None = None
        self._observe: Callable[[], Observed] | None = None
        if evaluate and self.group.rank == layout.processes - 1:
            self._observe = lambda: observe(told[0], told[1:], partial(self._test, evaluate), x)
        elif self.group.rank:
            learner, leaves = self.group.rank - 1, lambda: self.buffers.total().to(x)
            self._learner_side = Learner(connections[learner], learner, layout, leaves if left else None)
        else:
            self._root = Root(
                connections, layout, self._chosen["n"], x.clone(), self._apply, self.updates or 0,
                notes=self._notes().numel(), leaves=left,
                tell=self.reports.every(epoch),
            )  # fmt: skip

    def _test(self, evaluate: Evaluate, weights: Tensor) -> float:
        """What ``evaluate`` says of the weights [d], which ``average()`` has from then on."""
        with torch.no_grad():
            self.vector.load(weights)
        return evaluate(self.average())

    @property
    def is_server(self) -> bool:
        """Whether this process serves, and so sees no batch."""
        return self.group.rank == 0

    def _learners_here(self, learners: int) -> int:
        return 1

    def _core(self, weights: Tensor | None) -> Core:
        solver = cast(Grouped, self.solver)
        solver.divisor = self._divisor
        solver.fused = self._fused = False  # what was sent may not be written to
        return Core(rudra.Softsync(solver, Local(self._chosen["workers"]), **self._chosen))

    def fail(self) -> None:
        """Let the server know that an error ends this learner."""
        if not self.is_server and not self._observe and not self._learner_side.stopped:
            self._learner_side.fail()

    def batches(self, loader: Iterable[Any]) -> Iterator[Any]:
        """What ``loader`` yields, over and over, until the server has made its updates; nothing on a server.

        There it returns once all are made, and on the statistics server once all models are tested.

        Args:
            loader: of batches, this learner's own.

        Returns:
            An iterator over its batches.

        Raises:
            WorkerLost: the training cannot go on.
        """
        if self._observe:
            self.observed = self._observe()
            self.t = self.observed.tests[-1][0] if self.observed.tests else 0
            return
        if self.is_server:
            self._root.run()
            self.served = self._root.served
            self.t = len(self.served.turns)
            self.vector.load(self.served.x)
            if self.served.left:
                self._mean_buffers = torch.stack(self.served.left).double().mean(0)
            return
        yield from super().batches(loader)

    @property
    def _finished(self) -> bool:
        return self._learner_side.stopped

    def _overflowed(self) -> bool:
        return self._unscaled(getattr(self, "found_inf", None))

    @torch.no_grad()
    def _take(self, loss: Loss) -> None:
        """Push the gradient with its loss and this learner's settings, and pull."""
        if self.is_server:
            raise ValueError(
                "the server steps by itself; take batches from opt.batches(loader), which yields none to it"
            )
        self._check()
        self._reserve(1)
        self.vector.gradient(self._views[0])
        x = self.vector.x
        value = torch.as_tensor(loss).detach().to(x).reshape(1)
        self.reports.tell(self._learner_side.number, self._learner_side.timestamp, value)
        pushed = torch.cat([self._gradients[0], value, self._notes()])
        self.vector.load(self._learner_side.exchange(self._learner_side.push(pushed), x))
        self.t = self._learner_side.timestamp

    def _notes(self) -> Tensor:
        """The groups' settings, of which the float64 bits lie in [e] numbers of the weights' type."""
        settings = [[float(group[name]) for name in SETTINGS] for group in self.param_groups]
        return torch.tensor(settings, dtype=torch.float64).view(-1).view(self.vector.x.dtype).to(self.vector.x.device)

    def _load(self) -> None:
        """The module holds what was pulled."""

    def _follow(self) -> None:
        raise ValueError(
            "weights were written into the module since the last step (by load_state_dict, clamping, an embedding's "
            "max_norm?), and the next pull would undo that; write them before parameter_server is entered"
        )

    def take_up(self) -> None:
        """Refused with ValueError."""
        raise ValueError(
            "take_up cannot be: the server has the weights; write them before parameter_server is entered"
        )

    def _apply(self, turn: Turn, sums: Tensor, losses: list[float], notes: Tensor) -> Tensor:
        """The server's update, with the settings that came with the last gradient."""
        settings = notes.clone().view(torch.float64).view(len(self.param_groups), -1)
        for group, values in zip(self.param_groups, settings.tolist(), strict=True):
            group.update(zip(SETTINGS, values, strict=True))
        with torch.no_grad():
            self._tell(turn, list(losses), sums)
        if self._watch is not None:
            self._watch(turn)
        return self.core_state.x

    @torch.no_grad()
    def average(self) -> nn.Module:
        """The model to test, with the mean of the learners' batch-norm statistics on the server, else its own.

        On the statistics server it is the model tested last.

        Returns:
            A copy of the module in evaluation mode.
        """
        buffers = self.buffers.total() if self._mean_buffers is None else self._mean_buffers
        return tested(self.module, self.vector.parameters, self.vector.views(self.vector.x), buffers)

    def state_dict(self) -> dict[str, Any]:
        """Refused with ValueError."""
        raise ValueError(
            "softsync over processes cannot go on to the same bits, as arrivals do not repeat themselves; keep "
            "opt.average().state_dict() and start again from there"
        )
