"""The tree of servers as processes: the same clock gives the same weights, and a lost server is named by all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import server_bodies as bodies
import torch

from reference_impls import rudra
from reference_impls.contract import GradientRef, Turn
from suite.communication.collectives import Local
from suite.communication.launch import WorkersFailed, spawn
from suite.training.optimizers import CaffeSGD

pytestmark = pytest.mark.processes

LEARNERS, UPDATES = 4, 6


def followed(turns: list[Turn], n: int) -> list[torch.Tensor]:
    """The weights that the algorithm of the simulation comes to by these vector clocks, from the start on."""
    algorithm = rudra.Softsync(CaffeSGD(0.5), Local(LEARNERS), LEARNERS, n)
    state = algorithm.init(torch.zeros(4, dtype=torch.float64))
    versions = [state.x]
    for turn in turns:
        sums: dict[int, Any] = {}
        for entry in turn.entries:
            gradient = bodies.dyadic(versions[entry.read], bodies.dyadic_rows(entry.worker, entry.number))[1]
            sums[entry.read] = sums.get(entry.read, 0) + gradient
        rate = torch.tensor(0.125, dtype=torch.float64)
        state = algorithm.update(state, turn, torch.zeros(1), torch.stack([sums[at] for at in sorted(sums)]), rate)
        versions.append(state.x)
    return versions


@pytest.mark.parametrize(("architecture", "n"), [("base", 0), ("adv", 2), ("adv*", 2)])
def test_weights_are_those_of_the_recorded_clocks_to_the_bit(architecture: str, n: int) -> None:
    servers = 1 if architecture == "base" else 3
    found = spawn(bodies.serve_tree, servers + LEARNERS + 1, architecture, n, UPDATES, timeout=30)
    served, *others, (losses, tests) = found
    turns = [Turn(t, tuple(GradientRef(*entry) for entry in entries)) for t, entries in served["turns"]]
    assert [turn.t for turn in turns] == list(range(UPDATES))
    versions = followed(turns, n)
    assert served["x"] == versions[-1].tolist()
    # The statistics server has tested the weights of every second update, and has heard every gradient's loss.
    assert tests == [(t, bodies.size(versions[t])) for t in range(2, UPDATES + 1, 2)]
    assert len(losses) == sum(others[servers - 1 :])
    assert all(
        loss == bodies.dyadic(versions[read], bodies.dyadic_rows(learner, number))[0]
        for learner, number, read, loss in losses
    )
    heard = {entry.worker for turn in turns for entry in turn.entries}
    assert heard == set(range(LEARNERS)) or n > 0  # under softsync nobody waits for a learner that is late
    for learner, pushed in enumerate(others[servers - 1 :]):
        applied = [entry.number for turn in turns for entry in turn.entries if entry.worker == learner]
        assert sorted(applied) == list(range(len(applied)))  # each once, none left out
        assert pushed >= len(applied)
    if architecture == "adv":  # what a leaf relays comes whole, one gradient for each of its learners
        for turn in turns:
            workers = [entry.worker for entry in turn.entries]
            assert workers.count(0) == workers.count(1)
            assert workers.count(2) == workers.count(3)
    if n == 0:
        assert {turn.t - entry.read for turn in turns for entry in turn.entries} == {0}


@pytest.mark.parametrize(
    ("architecture", "which", "name"), [("adv", 1, "leaf 0"), ("adv*", 2, "leaf 1"), ("adv", 0, "root")]
)
def test_a_killed_server_is_named_by_every_learner(architecture: str, which: int, name: str, tmp_path: Path) -> None:
    with pytest.raises(WorkersFailed) as caught:
        spawn(bodies.lose_a_server, 3 + LEARNERS, architecture, which, str(tmp_path / "said"), timeout=10)
    for learner in range(LEARNERS):
        assert f"server {name!r} is gone" in (tmp_path / f"said{3 + learner}").read_text()
    assert not any(kind == "Killed" for kind, _ in caught.value.errors.values())
