"""Frames made by hand, for tests of quantities whose answer is known, and what a paper's judge says of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pandas as pd
from scipy import stats

from suite.claims.estimate import Estimate
from suite.claims.judge import judge
from suite.papers.artifact import Frame
from suite.papers.catalogue import entries, paper


def frame_of(groups: Mapping[str, Iterable[Mapping[str, Any] | None]], profile: str = "paper") -> Frame:
    """A frame of groups of runs, one per seed: results by name; None for a run not stored.

    A run's ``tables``, ``settings``, ``environment`` and ``status`` may be given beside its results.
    """
    rows, stored = [], dict[str, Any]()
    for group, runs in groups.items():
        for seed, results in enumerate(runs):
            about: dict[str, Any] = {"group": group, "seed": seed, "run": "", "fault": None}
            if results is not None:
                tables = results.get("tables", {})
                about["run"] = f"{group} seed {seed}"
                stored[about["run"]] = SimpleNamespace(
                    curve=lambda name, tables=tables: pd.DataFrame(tables[name]),
                    spec=SimpleNamespace(settings=results.get("settings", {}), seed=seed),
                    environment=results.get("environment", {}),
                    status=results.get("status", "finished"),
                    results=results,
                )
            rows.append({"status": "finished", **(results or {}), **about})
    return Frame(rows, profile, stored)


def measured(name: str, frame: Frame) -> Estimate:
    """A quantity of a panel, named in full, in a frame."""
    artifact, _, quantity = name.rpartition("/")
    panel: Any = paper(name.partition("/")[0]).artifact(artifact)
    return panel.quantities[quantity].of(frame)


def verdict(name: str, frame: Frame) -> str:
    """What a claim's rule says in a frame at the paper's profile, were nothing undetermined or contradicted."""
    (claim,) = (each for each in entries(name.partition("/")[0]) if each.id == name)
    ours = measured(f"{claim.artifact}/{claim.quantity}", frame)
    return judge(
        replace(claim, undetermined="", doubt=""), replace(ours, proxy=False), "paper", rests_on="modelled"
    ).verdict


def student(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean of a value per seed with Student's interval, written down apart from the suite's."""
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    half = stats.t.ppf(0.975, len(values) - 1) * deviation / math.sqrt(len(values))
    return mean, mean - half, mean + half
