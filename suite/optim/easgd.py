"""Elastic averaging SGD as an optimiser."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from torch import nn

from reference_impls import crossbow
from suite.communication.group import Group
from suite.optim.sma import Averaging


class EASGD(Averaging):
    """Sixin Zhang, Anna Choromanska and Yann LeCun, "Deep learning with Elastic Averaging SGD", NeurIPS 2015.

    SMA whose centre has no momentum, with ``alpha`` constant: as :class:`~suite.optim.SMA` otherwise.
    """

    def __init__(
        self,
        module: nn.Module,
        params: Iterable[Any] | None = None,
        *,
        lr: float,
        alpha: float,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        learners: int = 2,
        tau: int = 1,
        fused: bool | None = None,
        group: Group | None = None,
    ):
        rule = partial(crossbow.elastic_averaging, alpha=alpha, tau=tau)
        solver = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(module, params, rule, learners, **solver, fused=fused, group=group)
