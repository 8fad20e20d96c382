"""Where a run came from: the processor, the card, the revision, each as the system names it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from suite.runs import environment
from suite.runs.environment import cpu_name, describe, device_facts, machine, machine_class, revision, versions


def told(monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    """The processor's name where the kernel tells this of it."""
    monkeypatch.setattr(environment.Path, "read_text", lambda path: text)
    return cpu_name()


def test_a_processor_is_named_as_the_kernel_does_whatever_its_name_holds(monkeypatch: pytest.MonkeyPatch):
    assert told(monkeypatch, "processor\t: 0\nmodel name\t: A: B  @ 2 GHz\nmodel name\t: C\n") == "A: B  @ 2 GHz"


@pytest.mark.parametrize(("processor", "name"), [("a Power9", "a Power9"), ("", "ppc64le")])
def test_where_the_kernel_does_not_python_names_it(monkeypatch: pytest.MonkeyPatch, processor: str, name: str):
    monkeypatch.setattr(platform, "processor", lambda: processor)
    monkeypatch.setattr(platform, "machine", lambda: "ppc64le")
    assert told(monkeypatch, "cpu : POWER9\n") == name


def test_the_cores_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "sched_getaffinity", {0: {1, 5, 7}}.__getitem__, raising=False)
    assert machine()["cores"] == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert machine()["cores"] == os.cpu_count()


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
    assert len(revision_of()["revision"]) >= 40
    assert revision_of()["dirty"] is False
    (checkout / "new").touch()
    assert revision_of()["dirty"] is True
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


def test_a_driver_that_nobody_can_ask_is_unknown(monkeypatch: pytest.MonkeyPatch, card):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert device_facts("cuda")["driver"] == "unknown (ModuleNotFoundError)"
    assert machine_class("cuda") == "gpu-nvidia-t4-driver-unknown-modulenotfounderror"


def test_a_run_s_device_is_described_by_torch_where_that_is_loaded(monkeypatch: pytest.MonkeyPatch):
    execution = {"device": "cpu", "threads": 1}
    found = describe(execution, {"started": "now"})
    assert found["device"] == {"device": "cpu", "capability": torch.backends.cpu.get_cpu_capability()}
    assert (found["execution"], found["started"]) == (execution, "now")
    assert found["versions"] == versions()
    monkeypatch.delitem(sys.modules, "torch")
    assert describe({}, {})["device"] == {"device": "cpu"}
