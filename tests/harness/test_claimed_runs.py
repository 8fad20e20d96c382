"""A claim on a run and the folder that goes with it, in one process; what a store's leases are."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from suite.runs import lease
from suite.runs.lease import Lease, Locks, lease_seconds, probe
from suite.spec import RunSpec

RUN = RunSpec("toy/draw", {"a": 1}).id
ANY = lambda left: True


@pytest.fixture
def claim(tmp_path: Path) -> Lease:
    return Lease(tmp_path / "partial" / RUN, lambda: False)


def test_a_claim_is_gone_when_another_has_it_or_has_taken_its_folder(claim: Lease):
    claim.open(ANY)
    assert not claim.gone
    assert Lease(claim.root, lambda: True).lost
    assert Lease(claim.root, lambda: True).gone
    claim.folder.rename(claim.root / "another's")
    assert claim.gone
    assert not claim.lost


def test_a_claim_that_is_opened_again_keeps_its_own_work(claim: Lease):
    folder = claim.open(ANY)
    (folder / "checkpoint").write_text("mine")
    (claim.root / "leftover").mkdir()
    assert claim.open(ANY) == folder
    assert (folder / "checkpoint").read_text() == "mine"
    assert list(claim.root.iterdir()) == [folder]


def test_what_was_never_opened_is_forgotten_without_a_word(claim: Lease):
    claim.forget()
    assert not claim.root.parent.exists()
    (claim.root / "another's").mkdir(parents=True)
    claim.open(ANY)
    (claim.root / "later").mkdir()
    claim.forget()
    assert [path.name for path in claim.root.iterdir()] == ["later"]


@pytest.mark.parametrize(("text", "seconds"), [(None, 60.0), ("0.1", 0.1), ("7", 7.0), ("86400", 86_400.0)])
def test_a_lease_lasts_a_minute_unless_a_store_has_another(monkeypatch, text: str | None, seconds: float):
    monkeypatch.delenv("SGD_SUITE_LEASE_SECONDS", raising=False)
    if text is not None:
        monkeypatch.setenv("SGD_SUITE_LEASE_SECONDS", text)
    assert lease_seconds() == seconds


@pytest.mark.parametrize("text", ["0.0999", "86400.5", "-1", "nan", "inf", "", "a minute"])
def test_no_lease_is_shorter_than_a_tenth_of_a_second_or_longer_than_a_day(monkeypatch, text: str):
    monkeypatch.setenv("SGD_SUITE_LEASE_SECONDS", text)
    with pytest.raises(ValueError, match=r"must be a number of seconds from 0\.1 to 86400"):
        lease_seconds()


def test_where_leases_are_used_nobody_goes_back_to_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    locks = Locks(tmp_path, tmp_path / "partial")
    for named, kind in (("flock", "flock"), ("lease", "lease"), ("flock", "lease"), ("", "lease")):
        monkeypatch.setenv("SGD_SUITE_LOCKS", named)
        assert locks.kind() == kind


@pytest.mark.parametrize("system", [*sorted(lease.LOCAL), "nfs4", "gpfs", "lustre", ""])
def test_only_a_file_system_that_is_known_to_be_of_one_machine_needs_no_leases(tmp_path, monkeypatch, system: str):
    monkeypatch.delenv("SGD_SUITE_LOCKS", raising=False)
    monkeypatch.setattr(lease, "file_system", lambda folder: system)
    assert Locks(tmp_path, tmp_path / "partial").kind() == ("flock" if system in lease.LOCAL else "lease")
    assert bool(list(tmp_path.iterdir())) is (system not in lease.LOCAL)


def test_whichever_thread_asks_a_holder_it_knows_that_its_lease_is_gone(tmp_path: Path, monkeypatch):
    """Found out by the next sign of life, which comes from a thread of its own."""
    monkeypatch.setenv("SGD_SUITE_LOCKS", "lease")
    monkeypatch.setenv("SGD_SUITE_LEASE_SECONDS", "0.3")
    with ThreadPoolExecutor(1) as other, Locks(tmp_path, tmp_path / "partial").claim(RUN) as mine:
        assert not other.submit(lambda: mine.lost).result()
        (tmp_path / f"{RUN}.lease").unlink()
        until = time.monotonic() + 60
        while not mine.lost and time.monotonic() < until:
            time.sleep(0.01)
        assert mine.lost
        assert other.submit(lambda: mine.lost).result()


def test_a_file_system_is_that_of_the_innermost_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    part = lambda place, kind: SimpleNamespace(mountpoint=place, fstype=kind)
    parts = [part("/", "Ext4"), part(str(tmp_path), "NFS"), part(str(tmp_path / "x"), "xfs")]
    monkeypatch.setattr("psutil.disk_partitions", lambda all: parts if all else [])
    assert lease.file_system.__wrapped__(tmp_path / "deep" / "down") == "nfs"
    assert lease.file_system.__wrapped__(tmp_path.parent) == "ext4"
    monkeypatch.setattr("psutil.disk_partitions", lambda all: [])
    assert lease.file_system.__wrapped__(tmp_path) == ""


def test_a_second_process_that_fails_is_a_finding_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    found = probe(tmp_path)
    assert [name for name in (*lease.PROBED, "ok") if found[name]] == ["keeps_the_first"]
