"""Synchronous model averaging (Crossbow) and elastic averaging SGD as optimisers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from reference_impls import crossbow
from reference_impls.crossbow_tuner import Settling, settling
from suite.communication.collectives import Processes
from suite.communication.group import Group
from suite.optim import joining
from suite.optim.base import Algorithm
from suite.optim.core import Core
from suite.optim.solver import Base, Wrapped

clock = time.perf_counter  # seconds
Rule = partial[Any]  # an algorithm whose learners have weights of their own, of optimizer and collective


class Averaging(Algorithm):
    """Learners with their own weights, batches and batch-norm statistics, held together by averaging.

    The learners of a process take turns in one module: each ``step`` is one learner's batch, and an update happens
    once every learner of every process had its own. ``average()`` is the model to test.
    """

    def __init__(
        self, module: nn.Module, params: Any, rule: Rule, learners: int | None, *, group: Group | None, **more: Any
    ):
        """``more`` is what all optimisers share."""
        group = joining.group() if group is None else group
        if learners is None:
            learners = 2 if group.size == 1 else 1
        self.learners, self._rule = joining.number_of_learners(type(self).__name__, learners), rule
        super().__init__(module, params, group=group, **more)

    def _core(self, weights: Tensor | None) -> Core:
        collective = self._collective()
        algorithm = self._rule(self.solver, collective)
        if collective.workers == 1 and getattr(algorithm, "alpha", 1.0) is None:
            raise ValueError(
                f"{type(self).__name__}: with one learner in all, alpha = 1/learners makes it and the centre swap; "
                "give learners=2 or more, start more processes, or give alpha, for example 0.1"
            )
        return Core(algorithm, weights)

    def _facts(self) -> dict[str, Any]:
        return super()._facts() | {"settings": str(self._rule.keywords)}


class Tuner:
    """Crossbow's auto-tuner (section 3.4): the number of learners of every process, at most ``most``.

    It begins with one. A learner is added as long as the last one has raised the batches per second by a tenth, by
    the median of five updates; else the last one leaves, and the number stays, where Algorithm 2 as printed would
    cycle around it.
    """

    def __init__(self, most: int):
        self.most = joining.whole("max_learners", most, 1)
        self.rule = Settling()
        self._since: float | None = None  # when the last update ended

    def after_update(self, group: Group, device: torch.device) -> int:
        """The number of learners from the next update on. All processes must ask, and get the same."""
        if self.rule.holding:
            return self.rule.learners
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        since, self._since = self._since, clock()
        if since is None:  # an update with what is new takes longer
            return self.rule.learners
        throughput = self.rule.learners / (self._since - since)
        if group.size > 1:
            here = torch.tensor([[throughput]], dtype=torch.float64, device=device)
            throughput = Processes(group).sum(here).item()
        before = self.rule.learners
        self.rule = settling(self.rule, throughput, most=self.most)
        if self.rule.learners != before:
            self._since = None
        return self.rule.learners

    def load(self, state: Sequence[Any]) -> None:
        """Go on from the rule as plain values; the time since then is not counted."""
        self.rule, self._since = Settling(*state), None


class SMA(Averaging):
    """Synchronous model averaging: learners with weights of their own, corrected towards a centre with momentum.

    Args:
        module: what is trained, compiled or not; its parameters become views of one vector.
        params: parameters or groups of them; by default all that require a gradient.
        lr: rate of every learner's own steps; required unless ``base`` is an instance or groups have their own.
        momentum: of SGD, 0 by default; or of ``base``.
        weight_decay: L2 of SGD, 0 by default; or of ``base``.
        learners: in this process, as many in every other; they take batches in turn. By default 2, or 1 where there
            are several processes. "auto" begins with one and adds learners, each at the centre, while that raises
            the batches per second by a tenth (section 3.4); ``opt.learners`` is the number now.
        max_learners: the largest number that "auto" tries.
        alpha: fraction of its distance to the centre that a learner gives up in an update, in (0, 1]; by default
            1 / number of all learners. A lone process with "auto" needs it.
        centre_momentum: mu of Algorithm 1, in [0, 1).
        tau: updates from one averaging to the next; 0 is never.
        devices: groups of this process's learners that share a reference model (section 3.3); None is flat.
        base: the learners' own optimiser, a class of ``torch.optim`` or an instance, instead of SGD. The paper shows
            nothing about another than SGD.
        fused: False is the solver of the papers' figures, several times slower; by default torch's fused SGD.
        group: processes to train with; by default all of ``torchrun``.
        options: further settings of ``base``, such as ``betas``.

    Raises:
        ValueError: a setting out of its range, a module that cannot be trained this way, processes that differ.
        TypeError: no ``lr``, or a setting that neither SGD nor ``base`` has.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(2, 1)
        >>> opt = SMA(model, lr=0.1, momentum=0.9, learners=4)
        >>> for _ in range(8):  # the four learners take batches in turn
        ...     opt.zero_grad()
        ...     model(torch.ones(3, 2)).square().mean().backward()
        ...     opt.step()
        >>> opt.t, type(opt.average()).__name__  # updates made; the centre, to test and to save
        (2, 'Linear')

    Source: Alexandros Koliousis et al., "Crossbow", PVLDB 12(11), 2019, Algorithm 1; ``reference_impls.crossbow``.
    """

    def __init__(
        self,
        module: nn.Module,
        params: Iterable[Any] | None = None,
        *,
        lr: float | None = None,
        momentum: float | None = None,
        weight_decay: float | None = None,
        learners: int | Literal["auto"] | None = None,
        max_learners: int = 8,
        alpha: float | None = None,
        centre_momentum: float = 0.9,
        tau: int = 1,
        devices: int | None = None,
        base: Base | None = None,
        fused: bool | None = None,
        group: Group | None = None,
        **options: Any,
    ):
        self._tuner = Tuner(max_learners) if learners == "auto" else None
        count = 1 if learners == "auto" else learners
        rule = partial(
            crossbow.SMA, alpha=alpha, momentum=centre_momentum, tau=joining.whole("tau", tau), devices=devices
        )
        settings = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, **options}
        super().__init__(module, params, rule, count, settings=settings, base=base, fused=fused, group=group)

    def _facts(self) -> dict[str, Any]:
        tuned = {} if self._tuner is None else {"learners": f"auto, at most {self._tuner.most}"}
        return super()._facts() | tuned

    def _tell(self, *arguments: Any) -> None:
        super()._tell(*arguments)
        if self._tuner is not None:
            self._set_learners(self._tuner.after_update(self.group, self.vector.x.device))

    def _set_learners(self, learners: int) -> None:
        """Let learners join at the centre, without momentum and with the mean of all buffers, or the last leave."""
        if learners == self.learners:
            return
        self.learners = learners
        self.core = self._core(self.core.weights)
        self.core_state = self.core.own(self.core.algorithm.resize(self.core_state))
        if isinstance(self.solver, Wrapped):
            self.solver.set_learners(learners)
        self.solver.lay_out(self.vector)
        self.buffers.set_learners(learners)

    def _further_state(self) -> dict[str, Any]:
        tuned = {} if self._tuner is None else {"tuner": tuple(self._tuner.rule)}
        return super()._further_state() | tuned

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._check_state(state["state"])
        if self._tuner is not None:
            self._tuner.load(state["state"]["tuner"])
            self._set_learners(self._tuner.rule.learners)
        super().__setstate__(state)

    def restart(self) -> None:
        """Let every learner start again from the centre, as section 3.2 does after a change of the rate.

        Every process must call it.

        Raises:
            ValueError: in the middle of an update.
        """
        self._require_rest("restart")
        if isinstance(self.solver, Wrapped):
            self.solver.forget()
        state = self.core.algorithm.restart(self.core_state)
        state = state._replace(previous=state.previous.clone())  # the next update writes to it
        self.core_state = self.core.own(state)
        self._load()


class EASGD(Averaging):
    """Elastic averaging: :class:`~suite.optim.SMA` whose centre has no momentum.

    Args:
        module: what is trained.
        alpha: fraction of its distance to the centre that a learner gives up in an update, in (0, 1].
        tau: updates from one averaging to the next.
        params: parameters or groups of them, as of SMA.
        lr: as of SMA.
        momentum: as of SMA.
        weight_decay: as of SMA.
        learners: as of SMA.
        base: as of SMA.
        fused: as of SMA.
        group: as of SMA.
        options: as of SMA.

    Raises:
        ValueError, TypeError: as SMA.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(2, 1)
        >>> opt = EASGD(model, base=torch.optim.AdamW, lr=0.1, alpha=0.2, learners=2)
        >>> for _ in range(2):
        ...     model(torch.ones(3, 2)).square().mean().backward()
        ...     opt.step()
        >>> opt.t
        1

    Source: Sixin Zhang, Anna Choromanska and Yann LeCun, "Deep learning with Elastic Averaging SGD", NeurIPS 2015,
    Eqs. 5 and 6.
    """

    def __init__(
        self,
        module: nn.Module,
        params: Iterable[Any] | None = None,
        *,
        alpha: float,
        lr: float | None = None,
        momentum: float | None = None,
        weight_decay: float | None = None,
        learners: int | None = None,
        tau: int = 1,
        base: Base | None = None,
        fused: bool | None = None,
        group: Group | None = None,
        **options: Any,
    ):
        rule = partial(crossbow.elastic_averaging, alpha=alpha, tau=joining.whole("tau", tau))
        settings = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, **options}
        super().__init__(module, params, rule, learners, settings=settings, base=base, fused=fused, group=group)
