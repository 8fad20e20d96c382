"""Elastic averaging SGD as an optimiser."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from torch import nn

from reference_impls import crossbow
from suite.communication.group import Group
from suite.optim.sma import Averaging
from suite.optim.wrapped import Base


class EASGD(Averaging):
    """Elastic averaging: :class:`~suite.optim.SMA` whose centre has no momentum.

    Args:
        module: what is trained.
        alpha: fraction of its distance to the centre that a learner gives up in an update, in (0, 1].
        tau: updates from one averaging to the next.
        params, lr, momentum, weight_decay, learners, base, fused, group, options: as of SMA.

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
