"""The shaped link: what it lets through, and that nothing of it stays behind."""

from __future__ import annotations

import subprocess

import bodies
import pytest

from suite.communication import link as netlab
from suite.communication.launch import spawn

WHY_NOT = netlab.probe()
needs_lab = pytest.mark.skipif(bool(WHY_NOT), reason=f"no shaped link here: {WHY_NOT}")


def namespaces() -> str:
    return subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("lacking", "delay"), [("tbf", False), ("netem", True)])
def test_a_machine_that_cannot_shape_a_link_says_what_it_lacks(monkeypatch, lacking: str, delay: bool):
    """Network namespaces alone are not enough, and what is not asked for is not missed."""

    def call(*command: str) -> None:
        if lacking in command:
            raise netlab.NoLab(f"tc knows no {lacking}")

    monkeypatch.setattr(netlab, "_call", call)
    monkeypatch.setattr(netlab.shutil, "which", lambda name: name)
    monkeypatch.setattr(netlab.os, "geteuid", lambda: 0)
    assert netlab.probe(delay=delay) == f"tc knows no {lacking}"
    assert netlab.probe(delay=not delay) == ""


@pytest.mark.processes
def test_workers_start_behind_a_command_of_their_own():
    found = spawn(bodies.place, 2, timeout=30, prefix=lambda rank: ["env", f"SGD_TEST_PLACE=node {rank}"])
    assert found == [(0, "node 0"), (1, "node 1")]


@needs_lab
@pytest.mark.processes
def test_a_sum_takes_what_the_rate_allows():
    """Two workers on a ring send 2 MB once: at 100 Mbit/s no faster than the wire, less what the bucket holds."""
    with netlab.lab() as lab:
        slow, fast = spawn(
            bodies.timed_exchange,
            2,
            lab.interfaces,
            (1e8, 2e9),
            timeout=30,
            prefix=lab.prefix,
            environment=lab.environment,
        )[0]
        inside = lab.names[0]
        assert inside in namespaces()
    assert slow > 0.9 * (2e6 - 128_000) * 8 / 1e8
    assert fast < slow / 2
    assert inside not in namespaces()


@needs_lab
def test_the_lab_is_removed_after_an_error():
    with pytest.raises(KeyError), netlab.lab() as lab:
        raise KeyError
    assert lab.names[0] not in namespaces()
    assert lab.names[1] not in namespaces()


def test_a_full_frame_carries_1448_of_its_1514_bytes():
    assert round(netlab.PAYLOAD, 4) == 0.9564
