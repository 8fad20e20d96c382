"""Run folders: committed whole or not at all, verified whenever they are read, refused by name."""

from __future__ import annotations

import errno
import io
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from toy import files_of

from suite.runs.run import (
    CHECKSUMS,
    ENVIRONMENT,
    DamagedRun,
    Outcome,
    StoreError,
    digest,
    encode,
    plain_name,
    seal,
    verified,
)
from suite.runs.store import NewRun, Store
from suite.spec import RunSpec

SPEC = RunSpec("toy/draw", {"a": 1}, 3)


def test_numbers_of_other_libraries_are_stored_as_plain_ones_and_other_results_are_refused():
    results = {"one": np.float32(0.5), "two": np.int64(3), "three": torch.tensor(0.25)}
    files = encode(SPEC, {}, Outcome("finished", results))
    assert verified(SPEC.id, files).results == {"one": 0.5, "two": 3, "three": 0.25}
    with pytest.raises(TypeError, match="a result is PosixPath"):
        encode(SPEC, {}, Outcome("finished", {"where": Path("x")}))


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


def test_foreign_files_are_quoted_at_a_length_that_a_person_reads(store: Store):
    files = files_of(RunSpec("toy/draw")) | {f"{number}.parquet": b"" for number in range(10_000)}
    with pytest.raises(DamagedRun, match="files") as refused:
        verified(RunSpec("toy/draw").id, files)
    assert len(str(refused.value)) < 500


def test_a_file_where_a_folder_should_be_is_damage_and_no_run_that_was_there_already(store: Store):
    (store.root / "runs" / SPEC.id).write_text("not a folder")
    assert store.has(SPEC.id)
    with pytest.raises(DamagedRun, match=SPEC.id):
        store.read(SPEC.id)
    with pytest.raises(StoreError, match=f"could not store run {SPEC.id}"):
        store.commit(SPEC.id, files_of(SPEC))
    assert list((store.root / "staging").iterdir()) == []


RESEALED = {
    "another run's specification": {"spec.json": RunSpec("toy/draw", {"a": 2}, 3).text.encode()},
    "unknown outcome": {"outcome.json": b'{"status": "splendid", "results": {}}'},
    "outcome of another shape": {"outcome.json": b"[]"},
    "results of another shape": {"outcome.json": b'{"status": "finished", "results": []}'},
    "environment of another shape": {"environment.json": b"3"},
    **{f"{part} of another shape": {"environment.json": f'{{"{part}": "x"}}'.encode()} for part in ENVIRONMENT},
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

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreError, match=f"could not store run {SPEC.id}.*No space left on device"):
        store.commit(SPEC.id, files_of(SPEC))
    monkeypatch.undo()
    assert list((store.root / "staging").iterdir()) == []
    assert list((store.root / "runs").iterdir()) == []
    assert store.commit(SPEC.id, files_of(SPEC)) is True
    assert store.read(SPEC.id).spec == SPEC


def test_a_folder_that_is_no_store_is_not_read_as_an_empty_one(tmp_path: Path):
    with pytest.raises(StoreError, match=r"no store at .*--store"):
        Store(tmp_path)


def test_names_that_are_not_ids_are_not_runs(store: Store, folder: Path):
    (store.root / "runs" / "notes").mkdir()
    (store.root / "runs" / ("g" * 20)).mkdir()
    assert store.ids() == {SPEC.id}


def test_unknown_status_is_refused():
    with pytest.raises(ValueError, match="status must be one of"):
        Outcome("splendid")


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("a", True),
        ("spec.json", True),
        ("a" * 128, True),
        ("a" * 129, False),
        ("\u00e4" * 64, True),
        ("\u00e4" * 65, False),
        ("", False),
        (".a", False),
        ("a/b", False),
        ("a\\b", False),
        ("a:b", False),
        ("a\nb", False),
        ("a\udcff", False),
    ],
)
def test_a_file_name_is_visible_leads_nowhere_and_has_128_bytes_at_most(name: str, plain: bool):
    assert plain_name(name) is plain


def test_the_same_run_has_the_same_bytes_in_whatever_order_it_was_told():
    spec = files_of(SPEC)
    del spec[CHECKSUMS]
    assert seal(dict(reversed(spec.items()))) == seal(spec)
    where = {"machine": {"cpu": "c"}, "code": "d"}
    assert encode(SPEC, where, Outcome("finished")) == encode(
        SPEC, dict(reversed(where.items())), Outcome("finished")
    )


def test_curves_are_tables_of_their_own_columns_named_in_order():
    tables = {name: pd.DataFrame({"x": [1.0]}, index=[7]) for name in ("c", "a", "b")}
    run = verified(SPEC.id, encode(SPEC, {}, Outcome("finished", {}, tables)))
    assert run.curves == ["a", "b", "c"]
    assert pq.read_schema(io.BytesIO(run.files["a.parquet"])).names == ["x"]


def test_a_link_to_the_very_same_bytes_is_no_file_of_a_run(store: Store, folder: Path, tmp_path: Path):
    (folder / "outcome.json").rename(tmp_path / "elsewhere.json")
    (folder / "outcome.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(DamagedRun, match=r"'outcome\.json' is not a plain file"):
        store.read(SPEC.id)


def test_of_several_runs_each_is_said_to_be_new_or_not(store: Store, folder: Path):
    other = RunSpec("toy/draw", {"a": 2})
    entries = [NewRun(verified(spec.id, files_of(spec))) for spec in (other, SPEC)]
    assert store.commit_all(entries) == [True, False]
    assert store.commit_all(entries) == [False, False]


def test_a_run_that_replaces_another_moves_it_aside_and_one_that_does_not_leaves_it(store: Store, folder: Path):
    for times in (1, 2):
        run = verified(SPEC.id, files_of(SPEC, value=float(times)))
        assert store.commit_all([NewRun(run, replaces=True)]) == [True]
        assert store.read(SPEC.id).results == {"value": float(times)}
        assert len(list((store.root / "refused").iterdir())) == times


def test_versions_come_after_the_stored_one_by_their_checksums(store: Store, folder: Path):
    brought = sorted((files_of(SPEC, value=float(i)) for i in range(6)), key=lambda files: digest(files[CHECKSUMS]))
    for files in reversed(brought):
        store.commit_all([NewRun(verified(SPEC.id, files), contests=True)])
    values = [run.results["value"] for run in store.versions(SPEC.id)]
    assert values == [0.1, *(verified(SPEC.id, files).results["value"] for files in brought)]
    assert store.ids() == {SPEC.id}


def test_what_stages_for_an_hour_is_a_dead_process_s_and_no_file_stops_the_sweep(store: Store):
    staging = store.root / "staging"
    for minutes in (50, 70):
        (staging / f"{minutes} minutes").mkdir()
    (staging / "file").touch()
    for path in staging.iterdir():
        past = time.time() - 60 * int(path.name.partition(" ")[0] if path.is_dir() else 99)
        os.utime(path, (past, past))
    Store(store.root, create=True)
    assert [path.name for path in staging.iterdir()] == ["50 minutes"]
