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


@pytest.mark.parametrize("rate", [0, 1e5, 1e12])
def test_refuses_rates_out_of_range(rate):
    with pytest.raises(ValueError, match="must lie between"):
        netlab.shape("none", rate)


def test_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(netlab.shutil, "which", lambda name: None)
    assert "iproute2" in netlab.probe()
    monkeypatch.undo()
    monkeypatch.setattr(netlab.os, "geteuid", lambda: 1000)
    if not WHY_NOT:
        assert "root" in netlab.probe()


def test_a_kernel_without_netem_is_told_apart():
    """Either latency can be shaped, or the reason names netem's command."""
    if WHY_NOT:
        pytest.skip(f"no shaped link here: {WHY_NOT}")
    why = netlab.probe(delay=True)
    assert not why or "netem" in why
