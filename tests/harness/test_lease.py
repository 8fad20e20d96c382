"""Claims across machines: one holder at a time, taken over from the dead and the frozen, without harm from either."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import held
import pytest
import toy

from suite.commands.run import let_go
from suite.runs import lease
from suite.runs.lease import Locks, file_system, probe
from suite.runs.store import Store
from suite.spec import RunSpec

pytestmark = pytest.mark.processes

SPEC = RunSpec("toy/draw", {"a": 1})
RUN = SPEC.id


@contextmanager
def another(store: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the claim."""
    process = subprocess.Popen(
        [sys.executable, held.__file__, str(store), RUN],
        env=toy.environment(SGD_SUITE_LOCKS="lease", **variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ask(process: subprocess.Popen[str], word: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    print(word, file=process.stdin, flush=True)
    return process.stdout.readline().strip()


@pytest.fixture
def leased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGD_SUITE_LOCKS", "lease")


def test_a_claim_ends_even_where_a_child_process_still_has_the_file_open(tmp_path: Path):
    """As one that was forked meanwhile does: a lock lasts until every copy of its file is closed, or it is undone."""
    store = Store(tmp_path, create=True)
    with store.claim(RUN):
        held = [fd for fd in os.listdir("/proc/self/fd") if _leads_to(fd, tmp_path / "locks" / RUN)]
        copies = [os.dup(int(fd)) for fd in held]
    assert copies
    assert not store.busy(RUN)
    for copy in copies:
        os.close(copy)


def _leads_to(fd: str, path: Path) -> bool:
    with contextlib.suppress(OSError):  # one that listed them
        return os.readlink(f"/proc/self/fd/{fd}") == str(path)
    return False


@pytest.mark.parametrize("kind", ["flock", "lease"])
def test_a_claim_excludes_others_ends_and_leaves_nothing(tmp_path: Path, monkeypatch, kind: str):
    monkeypatch.setenv("SGD_SUITE_LOCKS", kind)
    store = Store(tmp_path, create=True)
    assert store.locks.kind() == kind
    with store.claim(RUN) as mine, store.claim(RUN) as also, Store(tmp_path).claim(RUN) as third:
        assert [bool(claim) for claim in (mine, also, third)] == [True, False, False]
        assert store.busy(RUN)
        assert not mine.lost
    assert not store.busy(RUN)
    assert not list((tmp_path / "locks").glob("*.lease"))


def test_leases_of_different_length_are_refused(tmp_path: Path, leased, monkeypatch: pytest.MonkeyPatch):
    store = Store(tmp_path, create=True)
    with another(tmp_path) as process:
        assert process.stdout.readline().startswith("held")
        monkeypatch.setenv("SGD_SUITE_LEASE_SECONDS", "7")
        with pytest.raises(ValueError, match="must agree"), store.claim(RUN):
            pass


def test_a_frozen_holder_loses_its_claim_and_harms_nothing(tmp_path: Path, leased, monkeypatch: pytest.MonkeyPatch):
    """The clock is the contender's own: it runs ahead by hand while the holder stands still."""
    store = Store(tmp_path, create=True)
    ahead, real = [0.0], time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + ahead[0])
    with another(tmp_path) as process:
        before = Path(process.stdout.readline().split()[1])
        assert ask(process, "write") == "wrote"
        assert ask(process, "lost") == "False"
        assert store.busy(RUN)
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        ahead[0] = 0.7 * lease.LEASE
        assert store.busy(RUN)
        ahead[0] += 1.1 * lease.LEASE
        with store.claim(RUN) as mine:
            assert mine
            folder = mine.open(lambda left: True)
            assert folder != before
            assert [path.name for path in folder.parent.iterdir()] == [folder.name]
            assert (folder / "checkpoint").read_text() == "mine"
            process.send_signal(signal.SIGCONT)
            assert ask(process, "write") == "FileNotFoundError"
            assert not mine.lost
            assert store.busy(RUN)
            assert (folder / "checkpoint").read_text() == "mine"


def test_who_does_not_wait_watches_a_lease_that_looks_forsaken_and_no_other(tmp_path: Path, leased, monkeypatch):
    store, naps, real = Store(tmp_path, create=True), [], time.monotonic
    monkeypatch.setattr(time, "sleep", naps.append)
    monkeypatch.setattr(time, "monotonic", lambda: real() + sum(naps))
    path = tmp_path / "locks" / f"{RUN}.lease"
    with another(tmp_path) as process:
        assert process.stdout.readline().startswith("held")
        assert (let_go([SPEC], store, lambda: False), naps) == ([], [])
        process.send_signal(signal.SIGSTOP)  # as a node that is gone: no process of this machine has died
        os.waitpid(process.pid, os.WUNTRACED)
        os.utime(path, (0, path.stat().st_mtime - 2 * lease.LEASE))
        assert let_go([SPEC], store, lambda: True) == []
        assert let_go([SPEC], store, lambda: False) == [SPEC]


def test_a_dead_holder_of_this_machine_is_found_out_at_once(tmp_path: Path, leased):
    with another(tmp_path) as process:
        assert process.stdout.readline().startswith("held")
        process.kill()
        process.wait()
        with Store(tmp_path).claim(RUN) as mine:
            assert mine


@pytest.mark.parametrize("kept", [0.0, 0.5, None], ids=["nothing", "half", "zeros"])
def test_a_lease_that_a_power_cut_has_torn_is_taken_over(tmp_path: Path, leased, monkeypatch, kept: float | None):
    """Its file keeps none of its bytes, the first half of them, or zeros; all clocks go by hand."""
    store, naps, real = Store(tmp_path, create=True), [], time.monotonic
    monkeypatch.setattr(time, "sleep", naps.append)
    monkeypatch.setattr(time, "monotonic", lambda: real() + sum(naps))
    path = tmp_path / "locks" / f"{RUN}.lease"
    with store.claim(RUN):
        whole = path.read_bytes()
    path.write_bytes(bytes(len(whole)) if kept is None else whole[: int(kept * len(whole))])
    assert store.busy(RUN)
    past = time.time() - 2 * lease.LEASE
    os.utime(path, (past, past))
    assert let_go([SPEC], store, lambda: False) == [SPEC]


def test_a_holder_that_has_been_frozen_learns_it_and_stops(tmp_path: Path, started, sgd):
    """Real clocks, leases of a second: the first process stands still until the second has stored the run."""
    command = ["run", "toy/fig1", "--profile", "smoke", "--store", "s"]
    variables = {"SGD_SUITE_LOCKS": "lease", "SGD_SUITE_LEASE_SECONDS": "3", "SGD_SUITE_CHECKPOINT_SECONDS": "0"}
    variables["TOY_UPDATES"] = "120"
    first = started(*command, **variables)
    while not list((tmp_path / "s" / "partial").glob("*/*/checkpoint")):
        assert first.poll() is None, first.told
        time.sleep(0.01)
    first.send(signal.SIGSTOP)
    second = sgd(*command, **variables)
    assert second.returncode == 0, second.stderr
    assert "waiting for 1 run that" in second.stderr
    assert "1 run stored" in second.stderr
    stored = {p: p.read_bytes() for p in (tmp_path / "s" / "runs").rglob("*") if p.is_file()}
    first.send(signal.SIGCONT)
    assert first.wait() == 0, first.told
    assert "0 runs stored, 1 already there, 0 left for later, 0 failed" in first.told
    assert {p: p.read_bytes() for p in (tmp_path / "s" / "runs").rglob("*") if p.is_file()} == stored
    assert list((tmp_path / "s" / "partial").iterdir()) == []
    assert len(Store(tmp_path / "s").ids()) == 1


def test_an_opened_claim_takes_up_the_newest_work_it_may(tmp_path: Path):
    locks = Locks(tmp_path, tmp_path / "partial")
    for place, (name, source) in enumerate([("old", "x"), ("new", "x"), ("foreign", "y")]):
        folder = tmp_path / "partial" / RUN / name
        folder.mkdir(parents=True)
        (folder / "source").write_text(source)
        os.utime(folder, (place, place))
    (tmp_path / "partial" / RUN / "stray").write_text("")
    with locks.claim(RUN) as mine:
        (tmp_path / "partial" / RUN / "new" / "mark").touch()
        os.utime(tmp_path / "partial" / RUN / "new", (9, 9))
        folder = mine.open(lambda left: (left / "source").read_text() == "x")
        assert (folder / "mark").exists()
        assert list(folder.parent.iterdir()) == [folder]
        mine.forget()
    assert list((tmp_path / "partial").iterdir()) == []


@pytest.mark.parametrize("kind", ["flock", "lease"])
def test_two_processes_test_a_stores_file_system(tmp_path: Path, monkeypatch, kind: str):
    monkeypatch.setenv("SGD_SUITE_LOCKS", kind)
    found = probe(tmp_path)
    about = {"file_system": file_system(tmp_path.resolve()) or "unknown", "claims": kind}
    assert found == about | dict.fromkeys((*lease.PROBED, "ok"), True)
    assert list(tmp_path.iterdir()) == []


def test_doctor_tests_the_file_system_of_a_store(sgd, tmp_path: Path):
    (tmp_path / "s").mkdir()
    done = sgd("doctor", "--store", "s", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["store"]["ok"] is True
    there = sorted(tmp_path.rglob("*"))
    new = sgd("doctor", "--store", "new/store", "--json")
    assert (new.returncode, json.loads(new.stdout)["store"]["ok"]) == (0, True)
    assert sorted(tmp_path.rglob("*")) == there
    assert "store" not in json.loads(sgd("doctor", "--json").stdout)
    assert not sgd("doctor").stdout.startswith("{")
