"""Crossbow's auto-tuner (section 3.4): how many learners a process has, chosen by throughput while they train."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from reference_impls.crossbow_tuner import Settling, settling
from suite.communication.collectives import Processes
from suite.communication.group import Group

clock = time.perf_counter  # seconds


class Tuner:
    """The number of learners of every process, at most ``most``.

    It begins with one. A learner is added as long as the last one has raised the batches per second by a tenth, by
    the median of five updates; else the last one leaves, and the number stays.
    """

    def __init__(self, most: int, group: Group):
        if most < 1:
            raise ValueError(f"SMA: max_learners={most} must be at least 1")
        self.most, self.group = most, group
        self.rule = Settling()
        self._since: float | None = None  # when the last update ended

    def after_update(self, device: torch.device) -> int:
        """The number of learners from the next update on. All processes must ask, and get the same."""
        if self.rule.holding:
            return self.rule.learners
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        since, self._since = self._since, clock()
        if since is None:  # an update with what is new takes longer
            return self.rule.learners
        throughput = self.rule.learners / (self._since - since)
        if self.group.size > 1:
            here = torch.tensor([[throughput]], dtype=torch.float64, device=device)
            throughput = Processes(self.group).sum(here).item()
        before = self.rule.learners
        self.rule = settling(self.rule, throughput, most=self.most)
        if self.rule.learners != before:
            self._since = None
        return self.rule.learners

    def state(self) -> list[Any]:
        """What ``load`` goes on from, in plain values."""
        learners, last, readings, holding = self.rule
        return [learners, last, list(readings), holding]

    def load(self, state: Sequence[Any]) -> None:
        """Go on from what ``state`` returned; the time since then is not counted."""
        learners, last, readings, holding = state
        self.rule = Settling(learners, last, tuple(readings), holding)
        self._since = None


def check_learners(name: str, learners: object) -> None:
    """Raise ValueError for what is no number of learners."""
    if not isinstance(learners, int) or learners < 1:
        raise ValueError(
            f"{name}: learners={learners!r} must be a whole number of at least 1 (SMA also takes 'auto')"
        )
