"""Runs that were never made, at the paper's sizes: trainings and links from numbers written down in a test."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from paper_figures.matex_agd import settings
from paper_figures.matex_agd.link_readings import LINK, METHODS, SPEEDS
from suite.papers.artifact import Evidence
from suite.papers.counterfeits import Forged
from suite.runs.store import Run
from suite.spec import RunSpec

REPEATS = 5


def run_of(spec: RunSpec, results: Mapping[str, Any], **tables: pd.DataFrame) -> Run:
    outcome = {"status": "finished", "results": dict(results)}
    files = {"spec.json": spec.to_json().encode(), "outcome.json": json.dumps(outcome).encode()}
    return Forged(spec.id, {**files, **{f"{name}.parquet": b"" for name in tables}}, {}, tables)


class Source:
    """Runs by id, made when they are read; those made as None are not stored."""

    def __init__(self, groups, make: Callable[[str, RunSpec], Run | None]):
        made = {spec.id: make(name, spec) for name, specs in groups.items() for spec in specs}
        self._made = {run_id: run for run_id, run in made.items() if run is not None}

    def ids(self) -> set[str]:
        return set(self._made)

    def read(self, run_id: str) -> Run:
        return self._made[run_id]


def evidence(groups, make: Callable[[str, RunSpec], Run | None], profile: str = "paper") -> Evidence:
    return Evidence(Source(groups, make), groups, profile)


def training(spec: RunSpec, accuracies: list[float]) -> Run:
    """A training whose checkpoints had these accuracies; fewer than planned where it diverged."""
    every = spec.settings["evaluate"]["every"]
    table = pd.DataFrame(
        {
            "update": every * np.arange(len(accuracies) + 1),
            "test_error": 1 - np.array([0.001, *accuracies]),
        }
    )
    return run_of(spec, {"updates": spec.settings["updates"]}, evaluations=table)


def gap(apart: float) -> Run:
    """Five serial seeds whose log accuracies lie -2, -1, 0, 1 and 2 times ``apart`` from the middle one."""
    rows = [
        (arm, seed, update, 0.2 * np.exp(apart * (seed - 2)))
        for arm in ("serial", "split", "partitioned")
        for seed in range(5)
        for update in range(settings.CHECKPOINTS + 1)
    ]
    table = pd.DataFrame(rows, columns=["arm", "seed", "update", "accuracy"])
    return run_of(settings.GAP, {}, gap=table)


def link(rates: Mapping[str, tuple[float, float, float]], noise: float = 0.01, skipped: str = "") -> Run:
    """A run over the link in which LeNet's rates over no comm, by method and speed, were these; 0.8 elsewhere."""
    draw = np.random.default_rng(0)
    rows: dict[str, list[dict[str, Any]]] = {"sleeping": [], "computing": []}
    for workload, made in rows.items():
        for place, speed in enumerate(SPEEDS):
            for repeat in range(1, REPEATS + 1):
                alone = 0.05 * np.exp(draw.normal(0, 0.2))  # a repetition is slow as a whole
                seconds = {"no comm": alone, "empty sum": 0.001}
                for method in METHODS:
                    rate = rates.get(method, (0.8,) * 3)[place] if workload == "computing" else 0.9
                    seconds[method] = alone / rate * np.exp(draw.normal(0, noise))
                made += [
                    {"speed": speed, "repeat": repeat, "method": method, "seconds": value}
                    for method, value in seconds.items()
                ]
    return run_of(LINK, {"skipped": skipped}, **{name: pd.DataFrame(made) for name, made in rows.items()})
