"""Synchronous model averaging (Crossbow) and elastic averaging SGD as optimisers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from torch import Tensor, nn

from reference_impls import crossbow
from suite.communication.group import Group
from suite.optim import joining
from suite.optim.base import Algorithm
from suite.optim.core import Core
from suite.optim.torch_solver import Base, Wrapped

Rule = partial[Any]  # an algorithm whose learners have weights of their own, of optimizer and collective


class Averaging(Algorithm):
    """Learners with their own weights, batches and batch-norm statistics, held together by averaging.

    The learners of a process take turns in one module: each ``step`` is one learner's batch, and an update happens
    once every learner of every process had its own. ``average()`` is the model to test.
    """

    def __init__(
        self,
        module: nn.Module,
        params: Iterable[Any] | None,
        rule: Rule,
        learners: int | None,
        *,
        settings: dict[str, Any],
        base: Base | None,
        fused: bool | None,
        group: Group | None,
    ):
        group = joining.group() if group is None else group
        if learners is None:
            learners = 2 if group.size == 1 else 1
        if learners < 1:
            raise ValueError(f"{type(self).__name__}: learners={learners} must be at least 1")
        self.learners, self._rule = learners, rule
        super().__init__(module, params, settings=settings, base=base, fused=fused, group=group)

    def _core(self, weights: Tensor | None) -> Core:
        collective = self.collective()
        algorithm = self._rule(self.solver, collective)
        if collective.workers == 1 and getattr(algorithm, "alpha", 1.0) is None:
            raise ValueError(
                f"{type(self).__name__}: with one learner in all, alpha = 1/learners makes it and the centre swap; "
                "give learners=2 or more, start more processes, or give alpha, for example 0.1"
            )
        return Core(algorithm, weights)

    def _facts(self) -> dict[str, Any]:
        return super()._facts() | {"settings": str(self._rule.keywords)}


class SMA(Averaging):
    """Synchronous model averaging: learners with weights of their own, corrected towards a centre with momentum.

    Args:
        module: what is trained, compiled or not; its parameters become views of one vector.
        params: parameters or groups of them; by default all that require a gradient.
        lr: learning rate of every learner's own steps; required unless ``base`` is an instance.
        momentum: of SGD, 0 by default; or of ``base``.
        weight_decay: L2 of SGD, 0 by default; or of ``base``.
        learners: in this process, as many in every other; they take batches in turn. By default 2, or 1 where there
            are several processes.
        alpha: fraction of its distance to the centre that a learner gives up in an update, in (0, 1]; by default
            1 / number of all learners.
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
        learners: int | None = None,
        alpha: float | None = None,
        centre_momentum: float = 0.9,
        tau: int = 1,
        devices: int | None = None,
        base: Base | None = None,
        fused: bool | None = None,
        group: Group | None = None,
        **options: Any,
    ):
        rule = partial(crossbow.SMA, alpha=alpha, momentum=centre_momentum, tau=tau, devices=devices)
        settings = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, **options}
        super().__init__(module, params, rule, learners, settings=settings, base=base, fused=fused, group=group)

    def restart(self) -> None:
        """Let every learner start again from the centre, as section 3.2 does after a change of the rate.

        Every process must call it. Raises ValueError in the middle of an update.
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
        rule = partial(crossbow.elastic_averaging, alpha=alpha, tau=tau)
        settings = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, **options}
        super().__init__(module, params, rule, learners, settings=settings, base=base, fused=fused, group=group)
