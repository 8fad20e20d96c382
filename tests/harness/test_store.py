"""Run folders: committed whole or not at all, verified whenever they are read, refused by name."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path

import pandas as pd
import pytest
from toy import files_of

from suite.runs import store as store_module
from suite.runs.store import CHECKSUMS, DamagedRun, Outcome, Store, StoreError, encode, seal, verified
from suite.spec import RunSpec

SPEC = RunSpec("toy/draw", {"a": 1}, 3)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", create=True)


@pytest.fixture
def folder(store: Store) -> Path:
    """A stored run."""
    table = pd.DataFrame({"x": [1.0, 2.0], "name": ["a", "b"]})
    store.commit(SPEC.id, encode(SPEC, {"machine": {}}, Outcome("finished", {"value": 0.1}, {"curve": table})))
    return store.root / "runs" / SPEC.id


def test_what_is_stored_is_read_back(store: Store, folder: Path):
    run = store.read(SPEC.id)
    assert run.spec == SPEC
    assert run.status == "finished"
    assert run.results == {"value": 0.1}
    assert run.curve("curve").to_dict("list") == {"x": [1.0, 2.0], "name": ["a", "b"]}
    assert store.ids() == {SPEC.id}
    with pytest.raises(KeyError, match=r"no curve 'other'.*'curve'"):
        run.curve("other")
    with pytest.raises(KeyError):
        store.read("0" * 20)


def test_no_results_or_curves_need_no_special_case(store: Store):
    store.commit(SPEC.id, files_of(SPEC, "diverged", value=float("nan")))
    run = store.read(SPEC.id)
    assert run.status == "diverged"
    assert run.results["value"] != run.results["value"]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


DAMAGE = {
    "truncated": lambda f: (f / "curve.parquet").write_bytes((f / "curve.parquet").read_bytes()[:-7]),
    "emptied": lambda f: (f / "outcome.json").write_bytes(b""),
    "edited": lambda f: flip(f / "outcome.json"),
    "removed": lambda f: (f / "environment.json").unlink(),
    "unsealed": lambda f: (f / CHECKSUMS).unlink(),
    "foreign file": lambda f: (f / "extra.json").write_text("{}"),
    "foreign folder": lambda f: (f / "more").mkdir(),
    "link": lambda f: (f / "link.json").symlink_to("/etc/hostname"),
    "broken seal": lambda f: (f / CHECKSUMS).write_text("{"),
    "seal of another shape": lambda f: (f / CHECKSUMS).write_text('{"schema": 1, "files": 7}'),
    "seal of text": lambda f: (f / CHECKSUMS).write_text('"schema files"'),
    "newer seal": lambda f: (f / CHECKSUMS).write_text('{"schema": 99, "files": {}}'),
    "odd seal": lambda f: (f / CHECKSUMS).write_text('{"schema": "one", "files": {}}'),
    "deep seal": lambda f: (f / CHECKSUMS).write_text("[" * 100_000),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_folder_is_refused_by_name(store: Store, folder: Path, damage):
    damage(folder)
    with pytest.raises(DamagedRun, match=SPEC.id):
        store.read(SPEC.id)


@pytest.mark.parametrize("damage", ["broken seal", "seal of another shape", "seal of text", "deep seal"])
def test_a_broken_file_of_checksums_is_named_with_the_way_out(store: Store, folder: Path, damage: str):
    DAMAGE[damage](folder)
    with pytest.raises(DamagedRun, match=r"checksums\.json holds no checksums; `run` computes the run again"):
        store.read(SPEC.id)


def test_a_file_where_a_folder_should_be_is_damage(store: Store):
    (store.root / "runs" / SPEC.id).write_text("not a folder")
    assert store.has(SPEC.id)
    with pytest.raises(DamagedRun, match=SPEC.id):
        store.read(SPEC.id)


RESEALED = {
    "another run's specification": {"spec.json": RunSpec("toy/draw", {"a": 2}, 3).to_json().encode()},
    "unknown outcome": {"outcome.json": b'{"status": "splendid", "results": {}}'},
    "outcome of another shape": {"outcome.json": b"[]"},
    "results of another shape": {"outcome.json": b'{"status": "finished", "results": []}'},
    "environment of another shape": {"environment.json": b"3"},
    "not JSON": {"environment.json": b"\xff\xfe"},
    "a way out": {"../../escaped.parquet": b""},
    "an absolute way out": {"/etc/escaped.parquet": b""},
    "a hidden file": {".hidden": b""},
}


@pytest.mark.parametrize("change", RESEALED.values(), ids=RESEALED)
def test_right_checksums_do_not_make_a_foreign_folder_a_run(store: Store, change):
    files = {name: data for name, data in files_of(SPEC).items() if name != CHECKSUMS} | change
    files[CHECKSUMS] = seal(files)
    with pytest.raises(DamagedRun, match=SPEC.id):
        verified(SPEC.id, files)
    with pytest.raises(DamagedRun):
        store.commit(SPEC.id, files)
    assert store.ids() == set()
    assert not list(store.root.parent.rglob("escaped*"))


def test_a_second_commit_changes_nothing(store: Store, folder: Path):
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert store.commit(SPEC.id, files_of(SPEC, value=2.0)) is False
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    assert list((store.root / "staging").iterdir()) == []


@pytest.mark.parametrize("at", range(1, 7))
def test_a_full_disk_leaves_nothing_half_stored(store: Store, monkeypatch: pytest.MonkeyPatch, at: int):
    """The ``at``-th flush to disk fails; six are needed for four files and two folders."""
    real, calls = os.fsync, []

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) == at:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(store_module.os, "fsync", full)
    with pytest.raises(StoreError, match=f"could not store run {SPEC.id}.*No space left on device"):
        store.commit(SPEC.id, files_of(SPEC))
    monkeypatch.undo()
    assert list((store.root / "staging").iterdir()) == []
    assert list((store.root / "runs").iterdir()) == []
    assert store.commit(SPEC.id, files_of(SPEC)) is True
    assert store.read(SPEC.id).spec == SPEC


def test_a_store_that_cannot_be_written_is_refused_before_anything_is(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StoreError, match=r"cannot write a store at .*file"):
            Store(root, create=True)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_is_no_store_is_not_read_as_an_empty_one(tmp_path: Path):
    with pytest.raises(StoreError, match=r"no store at .*--store"):
        Store(tmp_path)


def test_names_that_are_not_ids_are_not_runs(store: Store, folder: Path):
    (store.root / "runs" / "notes").mkdir()
    (store.root / "runs" / ("g" * 20)).mkdir()
    assert store.ids() == {SPEC.id}


def test_a_refused_folder_is_kept_and_its_name_is_free(store: Store, folder: Path):
    flip(folder / "outcome.json")
    moved = store.refuse(SPEC.id)
    assert moved.parent == store.root / "refused"
    assert (moved / "outcome.json").exists()
    assert not store.has(SPEC.id)
    assert store.commit(SPEC.id, files_of(SPEC)) is True


def test_a_claim_excludes_others_and_ends(store: Store):
    with store.claim(SPEC.id) as mine, store.claim(SPEC.id) as also, store.claim("0" * 20) as other:
        assert [bool(claim) for claim in (mine, also, other)] == [True, False, True]
        assert store.busy(SPEC.id)
    assert not store.busy(SPEC.id)


def test_what_a_killed_process_was_storing_is_swept_away_later(store: Store):
    old, new = store.root / "staging" / "old", store.root / "staging" / "new"
    for path in (old, new):
        path.mkdir()
        (path / "spec.json").write_text("{}")
    past = time.time() - 2 * store_module.ABANDONED
    os.utime(old, (past, past))
    Store(store.root, create=True)
    assert [p.name for p in (store.root / "staging").iterdir()] == ["new"]


def test_run_folders_explain_themselves(folder: Path):
    assert json.loads((folder / "spec.json").read_text())["settings"] == {"a": 1}
    sealed = json.loads((folder / CHECKSUMS).read_text())
    assert set(sealed["files"]) == {p.name for p in folder.iterdir()} - {CHECKSUMS}


def test_unknown_status_is_refused():
    with pytest.raises(ValueError, match="status must be one of"):
        Outcome("splendid")
