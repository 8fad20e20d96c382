"""Training runs that were never made: at the paper's sizes, from curves written down in a test."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pandas as pd

from suite.papers.artifact import Evidence, Groups
from suite.papers.counterfeits import Forged
from suite.runs.store import Run
from suite.spec import RunSpec


def training(
    spec: RunSpec,
    *,
    losses: np.ndarray | None = None,
    chasing: np.ndarray | None = None,
    status: str = "finished",
    **tests: np.ndarray,
) -> Run:
    """A run of ``train`` with the loss of each update and columns of its tests, one before training among them."""
    updates, every = spec.settings["updates"], spec.settings["evaluate"]["every"]
    table = pd.DataFrame({"update": np.arange(updates), "loss": np.ones(updates) if losses is None else losses})
    if spec.settings["algorithm"]["name"] == "isgd":
        table["chasing"] = np.zeros(updates) if chasing is None else chasing
    at = np.unique([*range(0, updates + 1, every), updates])
    shown = {name: np.broadcast_to(column, at.shape) for name, column in tests.items()}
    evaluations = pd.DataFrame({"update": at, "seconds": 0.02 * at, **shown})
    outcome = {"status": status, "results": {"updates": updates, "parameters": 431_080}}
    files = {"spec.json": spec.to_json().encode(), "outcome.json": json.dumps(outcome).encode()}
    return Forged(spec.id, files, {}, {"updates": table, "evaluations": evaluations})


class Fabricated:
    """A source of runs that are made when they are read."""

    def __init__(self, groups: Groups, make: Callable[[str, RunSpec], Run]):
        self._made = {spec.id: (name, spec) for name, specs in groups.items() for spec in specs}
        self._make = make

    def ids(self) -> set[str]:
        return set(self._made)

    def read(self, run_id: str) -> Run:
        return self._make(*self._made[run_id])


def evidence(groups: Groups, make: Callable[[str, RunSpec], Run], profile: str = "paper") -> Evidence:
    """Evidence in which ``make(group, spec)`` is what each run came to."""
    return Evidence(Fabricated(groups, make), groups, profile)
