"""Every cell of the support matrix, and the committed page."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import optim_bodies as bodies
import pytest
import torch.distributed as dist
from features import OPTIMISERS, Job
from matrix import FEATURES, REFUSALS, page, tried

from suite.communication.group import Group
from suite.communication.launch import spawn

PAGE = Path(__file__).parents[2] / "docs" / "support-matrix.md"


def as_stated(said: str, name: str, processes: int, feature: str) -> bool:
    message, _ = REFUSALS.get((name, processes, feature), ("", ""))
    return message in said if message else said == "works"


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("name", OPTIMISERS)
def test_one_process(name: str, feature: str):
    said = tried(Job(name, Group(dist.HashStore(), 0, 1, 30.0, "gloo")), feature)
    assert as_stated(said, name, 1, feature), f"{said}\nIf that is meant: a refusal with its reason in matrix.py"


@pytest.mark.processes
def test_two_processes():
    """All cells in one test, for which two processes are started once."""
    server, learner = spawn(bodies.every_cell, 2, timeout=20)
    wrong = []
    for name, feature in product(OPTIMISERS, FEATURES):
        refused = ("Softsync", 2, feature) in REFUSALS and name == "Softsync"
        for worker in [learner] if refused else [server, learner]:  # a server whose learner was refused says so
            said = worker[f"{name}/{feature}"]
            wrong += [] if as_stated(said, name, 2, feature) else [f"{name}, {feature}: {said}"]
    assert not wrong


def test_the_committed_page_is_the_present_one():
    assert PAGE.read_text() == page(), "sgd-suite refresh makes it anew"
