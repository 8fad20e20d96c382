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
    """Sixin Zhang, Anna Choromanska and Yann LeCun, "Deep learning with Elastic Averaging SGD", NeurIPS 2015.

    SMA whose centre has no momentum, with ``alpha`` constant: as :class:`~suite.optim.SMA` otherwise.
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
