"""Local SGD, post-local SGD and DiLoCo as optimisers: many local steps, then one exchange."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from torch import nn

from reference_impls import local_sgd
from suite.communication.group import Group
from suite.optim.joining import whole
from suite.optim.sma import Averaging
from suite.optim.solver import Base


class LocalSGD(Averaging):
    """Learners that take local steps by themselves and become their mean after every ``local_steps`` of them.

    ``average()`` is the mean of all learners at any moment, and every process must ask for it.

    Args:
        module: what is trained, compiled or not; its parameters become views of one vector.
        params: parameters or groups of them; by default all that require a gradient.
        lr: rate of every learner's own steps; required unless ``base`` is an instance or groups have their own.
        momentum: of SGD, 0 by default; or of ``base``. It stays with its learner and is never averaged.
        weight_decay: L2 of SGD, 0 by default; or of ``base``.
        learners: in this process, as many in every other; they take batches in turn. By default 2, or 1 where there
            are several processes.
        local_steps: H, updates from one mean to the next; 1 is synchronous SGD.
        base: the learners' own optimiser, a class of ``torch.optim`` or an instance, instead of SGD.
        fused: False is the solver of the papers' figures, several times slower; by default torch's fused SGD.
        group: processes to train with; by default all of ``torchrun``.
        options: further settings of ``base``, such as ``betas``.

    Raises:
        ValueError: a setting out of its range, a module that cannot be trained this way, processes that differ.
        TypeError: no ``lr``, or a setting that neither SGD nor ``base`` has.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(2, 1)
        >>> opt = LocalSGD(model, lr=0.1, learners=2, local_steps=4)
        >>> for _ in range(8):  # the two learners take batches in turn
        ...     opt.zero_grad()
        ...     model(torch.ones(3, 2)).square().mean().backward()
        ...     opt.step()
        >>> opt.t  # updates made; after the fourth the learners became their mean
        4

    Source: Sebastian U. Stich, "Local SGD Converges Fast and Communicates Little", ICLR 2019, Algorithm 1;
    ``reference_impls.local_sgd``.
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
        local_steps: int = 8,
        base: Base | None = None,
        fused: bool | None = None,
        group: Group | None = None,
        **options: Any,
    ):
        rule = partial(local_sgd.LocalSGD, h=whole("local_steps", local_steps, 1))
        settings = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, **options}
        super().__init__(module, params, rule, learners, settings=settings, base=base, fused=fused, group=group)


class PostLocalSGD(Averaging):
    """Synchronous SGD up to an update, :class:`~suite.optim.LocalSGD` from there on.

    Args:
        module: what is trained.
        switch: updates after which the learners become their mean every ``local_steps`` updates only; the paper
            switches at the first drop of the learning rate.
        params: parameters or groups of them, as of LocalSGD.
        lr: as of LocalSGD.
        momentum: as of LocalSGD.
        weight_decay: as of LocalSGD.
        learners: as of LocalSGD.
        local_steps: as of LocalSGD.
        base: as of LocalSGD.
        fused: as of LocalSGD.
        group: as of LocalSGD.
        options: as of LocalSGD.

    Raises:
        ValueError, TypeError: as LocalSGD.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(2, 1)
        >>> opt = PostLocalSGD(model, lr=0.1, switch=100, local_steps=16, learners=2)
        >>> for _ in range(2):
        ...     model(torch.ones(3, 2)).square().mean().backward()
        ...     opt.step()
        >>> opt.t
        1

    Source: Tao Lin, Sebastian U. Stich, Kumar Kshitij Patel and Martin Jaggi, "Don't Use Large Mini-Batches, Use
    Local SGD", ICLR 2020; ``reference_impls.local_sgd``.
    """

    def __init__(
        self,
        module: nn.Module,
        params: Iterable[Any] | None = None,
        *,
        switch: int,
        lr: float | None = None,
        momentum: float | None = None,
        weight_decay: float | None = None,
        learners: int | None = None,
        local_steps: int = 8,
        base: Base | None = None,
        fused: bool | None = None,
        group: Group | None = None,
        **options: Any,
    ):
        rule = partial(local_sgd.PostLocalSGD, h=whole("local_steps", local_steps, 1), switch=whole("switch", switch))
        settings = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, **options}
        super().__init__(module, params, rule, learners, settings=settings, base=base, fused=fused, group=group)


class DiLoCo(Averaging):
    """Local steps, after which an outer Nesterov step moves the common model along the mean of the learners' ways.

    ``average()`` is the common model of the last outer step. The paper's inner optimiser is
    ``base=torch.optim.AdamW``.

    Args:
        module: what is trained.
        params: parameters or groups of them, as of LocalSGD.
        lr: learning rate of the local steps.
        momentum: of the local steps, as of LocalSGD.
        weight_decay: as of LocalSGD.
        learners: as of LocalSGD.
        local_steps: H, updates from one outer step to the next; the paper has 500.
        outer_lr: alpha, above 0; with 1, and no outer momentum, this is LocalSGD.
        outer_momentum: mu, in [0, 1).
        base: as of LocalSGD.
        fused: as of LocalSGD.
        group: as of LocalSGD.
        options: as of LocalSGD.

    Raises:
        ValueError, TypeError: as LocalSGD.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(2, 1)
        >>> opt = DiLoCo(model, base=torch.optim.AdamW, lr=1e-3, local_steps=2, learners=2)
        >>> for _ in range(4):
        ...     model(torch.ones(3, 2)).square().mean().backward()
        ...     opt.step()
        >>> opt.t  # one outer step
        2

    Source: Arthur Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models", 2023,
    Algorithm 1; ``reference_impls.local_sgd``.
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
        local_steps: int = 500,
        outer_lr: float = 0.7,
        outer_momentum: float = 0.9,
        base: Base | None = None,
        fused: bool | None = None,
        group: Group | None = None,
        **options: Any,
    ):
        rule = partial(
            local_sgd.DiLoCo, h=whole("local_steps", local_steps, 1), alpha=outer_lr, momentum=outer_momentum
        )
        settings = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, **options}
        super().__init__(module, params, rule, learners, settings=settings, base=base, fused=fused, group=group)
