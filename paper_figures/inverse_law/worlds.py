"""Searches that say something else than they found: what the counterfeits of several artifacts are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean
from typing import Any

from paper_figures.inverse_law.readings import size_of
from suite.papers.artifact import Evidence
from suite.papers.counterfeits import edited, forged
from suite.runs.store import Run

LONGER = 1.7  # updates to a threshold over those to the one above it


def following(evidence: Evidence, updates: Callable[[int], float]) -> Evidence:
    """Every curve's updates as if N(M) were ``updates``; seeds scatter about it as they did."""
    changed = evidence
    for name in (name for name in evidence.groups if "/" in name):
        runs = [evidence.source.read(s.id) for s in evidence.groups[name] if s.id in evidence.source.ids()]
        usual = {key: _middle([run.results[key] for run in runs]) for key in _counts(runs)}

        def retold(run: Run, usual: dict[str, list[float]] = usual) -> Run:
            law = updates(size_of(run))
            return forged(run, {key: _about(run.results[key], middles, law) for key, middles in usual.items()})

        changed = edited(changed, retold, name)
    return changed


def scaled(evidence: Evidence, factor: float, curve: str) -> Evidence:
    """The updates of one curve times a factor."""

    def times(run: Run) -> Run:
        return forged(run, {k: [n if n < 0 else factor * n for n in run.results[k]] for k in _counts([run])})

    return edited(evidence, times, *(name for name in evidence.groups if name.startswith(f"{curve}/")))


def _counts(runs: list[Run]) -> list[str]:
    return [key for key in (runs[0].results if runs else ()) if key.startswith("crossed_")]


def _middle(found: list[Any]) -> list[float]:
    """Mean logarithm, over seeds, of the updates to each threshold; 0 where none was reached."""
    return [fmean([math.log(n) for n in each if n > 0] or [0.0]) for each in zip(*found, strict=True)]


def _about(seen: list[float], middles: list[float], law: float) -> list[float]:
    """The law times what this seed was above or below its fellows; nothing is censored."""
    return [
        law * LONGER**place * (n / math.exp(middle) if n > 0 else 1.0)
        for place, (n, middle) in enumerate(zip(seen, middles, strict=True))
    ]
