"""Every experiment of the smallest profile runs to its end, at a fraction of its size."""

from __future__ import annotations

from pathlib import Path

import pytest

from suite.commands.planning import plan
from suite.papers.catalogue import experiment, select
from suite.runner.execute import RunnerConfig, execute
from suite.spec import RunSpec

pytestmark = pytest.mark.journeys

ELSEWHERE = {  # run by tests of their own
    "crossbow/engine",
    "crossbow/followed",
    "crossbow/memory",
    "crossbow/throughput",
    "inverse_law/sweep",
    "isgd/update-times",
    "matex_agd/serial_gap",
    "train",
}
FEWER = {"cases": 1, "draws": 4, "repeats": 1, "repetitions": 2, "rounds": 2, "turns": 1, "warm": 1}
SMALLER = {
    "inverse_law/loop": {"hidden": 8, "seeds": [0], "threshold": 1.8},
    "isgd/bound": {"updates": 32},
    "rudra/imagenet-times": {"predict": []},
    "rudra/throughput": {"width": 32},
}


def test_every_experiment_runs(tmp_path: Path):
    """One run of each at the smallest profile, and of Crossbow's engine, which has none there."""
    planned = [*plan(select(["crossbow/engine"]), "reduced"), *plan(select([]), "smoke")]
    for name, settings in {each.spec.experiment: each.spec.settings for each in planned}.items():
        if name not in ELSEWHERE:
            fewer = {key: value for key, value in FEWER.items() if key in settings} | SMALLER.get(name, {})
            report = execute(RunSpec(name, {**settings, **fewer}), experiment, RunnerConfig(tmp_path))
            assert report.state == "stored", f"{name}: {report.why}"
