"""Every cell of the support matrix, and the committed page."""

from __future__ import annotations

from pathlib import Path

import optim_bodies as bodies
import pytest
import torch.distributed as dist
from features import OPTIMISERS, Job
from matrix import FEATURES, REFUSALS, page, tried

from suite.communication.group import Group
from suite.communication.launch import spawn

PAGE = Path(__file__).parents[2] / "docs" / "support-matrix.md"


def check(said: str, name: str, processes: int, feature: str) -> None:
    message, _ = REFUSALS.get((name, processes, feature), ("", ""))
    assert message in said if message else said == "works"


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("name", OPTIMISERS)
def test_one_process(name: str, feature: str):
    check(tried(Job(name, Group(dist.HashStore(), 0, 1, 30.0, "gloo")), feature), name, 1, feature)


@pytest.fixture(scope="module")
def said() -> list[dict[str, str]]:
    """What came of every cell in each of two processes, started once for all."""
    return spawn(bodies.every_cell, 2, timeout=20)


@pytest.mark.processes
@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("name", OPTIMISERS)
def test_two_processes(said: list[dict[str, str]], name: str, feature: str):
    refused = ("Softsync", 2, feature) in REFUSALS and name == "Softsync"
    for worker in said[1:] if refused else said:  # a server whose learner was refused says that it is gone
        check(worker[f"{name}/{feature}"], name, 2, feature)


def test_the_committed_page_is_the_present_one():
    """``python tests/optim/matrix.py > docs/support-matrix.md`` makes it anew."""
    assert PAGE.read_text() == page()
