"""Where a run came from: the processor, the card, the revision, each as the system names it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from suite.runs import environment
from suite.runs.environment import describe, device_facts, machine_class, revision, versions


def repository(folder: Path) -> Path:
    run = lambda *words: subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)
    run("init", "-q")
    (folder / "file").touch()
    run("add", "file")
    run("-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "m")
    return folder


def test_a_revision_is_that_of_the_checkout_and_unknown_outside_of_one(tmp_path: Path, monkeypatch):
    (tmp_path / "a").mkdir()
    checkout, revision_of = repository((tmp_path / "a").resolve()), revision.__wrapped__
    monkeypatch.setattr(environment, "ROOT", checkout)
    monkeypatch.setitem(environment.CODE_PACKAGES, "suite", checkout)
    assert len(revision_of()["revision"]) >= 40
    assert revision_of()["dirty"] is False
    for name, counts in (("docs/new.md", False), ("suite/report/new.py", False), ("suite/data/new.py", True)):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).touch()
        assert revision_of()["dirty"] is counts
    for elsewhere in (checkout / "below", tmp_path / "outside", tmp_path / "gone"):
        if elsewhere.name != "gone":
            elsewhere.mkdir()
            monkeypatch.chdir(elsewhere)
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
        monkeypatch.setattr(environment, "ROOT", elsewhere)
        assert revision_of() == {"revision": "unknown", "dirty": None}


class Nvml:
    """What stands for ``pynvml``: it answers once it has been initialised."""

    def __init__(self):
        self.ready = False

    def nvmlInit(self) -> None:
        self.ready = True

    def nvmlSystemGetDriverVersion(self) -> str:
        if not self.ready:
            raise ValueError("Uninitialized")
        return "570.86.15"


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cards, of which runs use the first."""
    cards = [SimpleNamespace(name=f"NVIDIA T{i}", total_memory=i) for i in (4, 5)]
    monkeypatch.setattr(torch.cuda, "get_device_properties", cards.__getitem__)


def test_a_card_is_the_first_with_its_driver(monkeypatch: pytest.MonkeyPatch, card):
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    facts = device_facts("cuda")
    assert (facts["device"], facts["name"], facts["memory_bytes"]) == ("cuda", "NVIDIA T4", 4)
    assert facts["driver"] == "570.86.15"
    assert machine_class("cuda") == "gpu-nvidia-t4-driver-570"


def test_a_run_s_device_is_described_by_torch_where_that_is_loaded(monkeypatch: pytest.MonkeyPatch):
    execution = {"device": "cpu", "threads": 1}
    found = describe(execution, {"started": "now"})
    assert found["device"] == {"device": "cpu", "capability": torch.backends.cpu.get_cpu_capability()}
    assert (found["execution"], found["started"]) == (execution, "now")
    assert found["versions"] == versions()
    monkeypatch.delitem(sys.modules, "torch")
    assert describe({}, {})["device"] == {"device": "cpu"}
