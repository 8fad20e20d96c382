"""Frames made by hand, for tests of quantities whose answer is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pandas as pd
from scipy import stats

from suite.papers.panel import Frame


def frame_of(groups: Mapping[str, Iterable[Mapping[str, Any] | None]], profile: str = "paper") -> Frame:
    """A frame of groups of runs, one per seed: results, with tables under ``tables``; None for a run not stored."""
    rows, stored = [], dict[str, Any]()
    for group, runs in groups.items():
        for seed, results in enumerate(runs):
            about: dict[str, Any] = {"group": group, "seed": seed, "run": "", "fault": None}
            if results is not None:
                tables = results.get("tables", {})
                about["run"] = f"{group} seed {seed}"
                curve = lambda name, tables=tables: pd.DataFrame(tables[name])
                stored[about["run"]] = SimpleNamespace(curve=curve)
            rows.append({**(results or {}), **about})
    return Frame(pd.DataFrame(rows), profile, stored)


def student(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean of a few values and the ends of its 95% interval, by scipy."""
    mean, half = fmean(values), float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
    return mean, mean - half, mean + half
