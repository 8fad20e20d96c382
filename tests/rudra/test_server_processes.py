"""Server and learners as real processes: the same protocol, the same values, and no hanging.

A learner that is killed is lost in the tests of :mod:`suite.optim.parameter_server`, which has the same server.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import server_bodies as bodies
import torch

from reference_impls.contract import GradientRef, Turn
from suite.communication.launch import WorkersFailed, spawn

pytestmark = pytest.mark.processes


def turns_of(served: dict[str, Any]) -> list[Turn]:
    return [Turn(t, tuple(GradientRef(*entry) for entry in entries)) for t, entries in served["turns"]]


def replayed(turns: list[Turn]) -> torch.Tensor:
    """The recorded vector clocks, followed one gradient at a time in this process."""
    versions = [bodies.start()]
    velocity = torch.zeros_like(versions[0])
    for turn in turns:
        total = sum(bodies.gradient(versions[entry.read], entry.worker, entry.number)[1] for entry in turn.entries)
        velocity = bodies.MOMENTUM * velocity + bodies.RATE * total / len(turn.entries)
        versions.append(versions[-1] - velocity)
    return versions[-1]


def test_hardsync_ends_when_a_learner_is_silent(tmp_path: Path) -> None:
    with pytest.raises(WorkersFailed) as caught:
        spawn(bodies.serve_and_lose, 3, 0, 60, str(tmp_path / "served"), timeout=5)
    errors = caught.value.errors
    kind, text = errors[0]
    assert kind == "WorkerLost"
    assert "stops after update 3: learner 1 is gone" in text
    assert errors[1] == ("WorkerLost", "learner 0 stops after gradient 4: learner 1 is gone")
    assert not list(tmp_path.glob("served?"))


def test_async_survives_a_silent_learner(tmp_path: Path) -> None:
    with pytest.raises(WorkersFailed):  # the lost learner has no answer
        spawn(bodies.serve_and_lose, 3, 2, 90, str(tmp_path / "served"), timeout=5)
    assert sorted(path.name for path in tmp_path.glob("served?")) == ["served0", "served1"]
    served = json.loads((tmp_path / "served0").read_text())
    turns = turns_of(served)
    assert len(turns) == 90
    assert set(served["lost"]) == {"1"}
    assert sum(entry.worker == 1 for turn in turns for entry in turn.entries) == 3
    assert (torch.tensor(served["x"], dtype=torch.float64) - replayed(turns)).abs().max() < 1e-12


def test_processes_that_disagree_do_not_start() -> None:
    with pytest.raises(WorkersFailed, match="has n = 1 where worker 0 has 0"):
        spawn(bodies.disagree, 2, timeout=20)
