"""Exported files: the same bytes for the same runs, taken whole or refused whole."""

from __future__ import annotations

import errno
import json
import zipfile
from datetime import datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hostile import table, understated
from toy import CHECKOUT, files_of

from suite.runs.archive import MANIFEST, Archive, Layered, export, merge, open_runs, pack, take
from suite.runs.comparison import relation
from suite.runs.crate import described
from suite.runs.run import CHECKSUMS, DamagedRun, Outcome, StoreError, digest, encode, seal, verified
from suite.runs.store import Store
from suite.spec import RunSpec

SPECS = [RunSpec("toy/draw", {"a": 1}, s) for s in range(3)]
FILES = {spec.id: files_of(spec, value=float(spec.seed)) for spec in SPECS}


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    path = tmp_path / "runs.zip"
    export(FILES, path, {"machine": "none"})
    return path


def taken(path: Path, store: Store) -> dict[str, int]:
    """Merge an exported file; how many runs came to what."""
    done = merge(Archive(path), store, partial(relation, timed=False))
    return {name: len(ids) for name, ids in vars(done).items() if ids}


def rewritten(path: Path, change=list, packing: int = zipfile.ZIP_STORED) -> None:
    """Pass the export's entries through ``change(entries)``."""
    with zipfile.ZipFile(path) as old:
        entries = [(name, old.read(name)) for name in old.namelist()]
    with zipfile.ZipFile(path, "w") as new:
        for name, data in change(entries):
            new.writestr(zipfile.ZipInfo(name), data, packing)


def test_export_and_merge_carry_every_byte(exported: Path, store: Store):
    assert taken(exported, store) == {"new": 3}
    assert {run_id: store.files(run_id) for run_id in store.ids()} == FILES
    assert taken(exported, store) == {"present": 3}
    assert not list((store.root / "partial").iterdir())


def test_an_ro_crate_describes_what_the_export_holds(tmp_path: Path, store: Store):
    """Every run is part of it, digests are those of the files, and software is named as it is to be cited."""
    path = tmp_path / "crate.zip"
    export(FILES, path, {"machine": "none"}, ro_crate=True)
    with zipfile.ZipFile(path) as held:
        entities = {each["@id"]: each for each in json.loads(held.read("ro-crate-metadata.json"))["@graph"]}
        files = [name for name, each in entities.items() if each["@type"] == "File"]
        assert [entities[name]["sha256"] for name in files] == [digest(held.read(name)) for name in files]
    root = entities[entities["ro-crate-metadata.json"]["about"]["@id"]]
    assert {"description", "datePublished", "license"} < set(root)
    assert root["name"] == f"{len(SPECS)} runs of sgd-scaling-suite"
    alone = json.loads(described([verified(SPECS[0].id, FILES[SPECS[0].id])], MANIFEST, b""))
    assert "1 run of sgd-scaling-suite" in [each.get("name") for each in alone["@graph"]]
    assert {part["@id"] for part in root["hasPart"]} == {MANIFEST, *(f"{spec.id}/" for spec in SPECS)}
    assert {entities[each["@id"]]["result"]["@id"] for each in root["mentions"]} == {f"{s.id}/" for s in SPECS}
    suite, cited = entities["#suite"], (CHECKOUT / "CITATION.cff").read_text(encoding="utf-8")
    for line in (f"title: {suite['name']}", f"version: {suite['version']}"):
        assert f"\n{line}\n" in cited
    assert f"\nlicense: {entities[suite['license']['@id']]['name']}\n" in cited
    assert f"authors:\n  - name: {entities[suite['author']['@id']]['name']}\n" in cited
    assert taken(path, store) == {"new": 3}


def test_the_same_runs_give_the_same_bytes(exported: Path, tmp_path: Path):
    export(dict(reversed(FILES.items())), tmp_path / "again.zip", {"machine": "none"})
    assert (tmp_path / "again.zip").read_bytes() == exported.read_bytes()
    with zipfile.ZipFile(exported) as held:
        assert {datetime(*info.date_time).year for info in held.infolist()} == {1980}, "a date that there is"


def test_a_run_that_does_not_verify_is_not_exported(tmp_path: Path):
    broken = dict(FILES) | {SPECS[0].id: FILES[SPECS[0].id] | {"outcome.json": b"{}"}}
    with pytest.raises(DamagedRun, match=SPECS[0].id):
        export(broken, tmp_path / "runs.zip", {})
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_cannot_be_written_leaves_nothing(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="could not write"):
        export(FILES, tmp_path / "file" / "runs.zip", {})
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def with_manifest(entries, change):
    manifest = json.loads(dict(entries)[MANIFEST])
    change(manifest)
    return [(MANIFEST, json.dumps(manifest).encode()), *(e for e in entries if e[0] != MANIFEST)]


def resealed(entries):
    """An edited result whose run's checksums were made again, the manifest not."""
    target = SPECS[1].id
    files = {n.partition("/")[2]: d for n, d in entries if n.startswith(target)}
    files["outcome.json"] = files["outcome.json"].replace(b"1.0", b"9.0")
    del files[CHECKSUMS]
    files[CHECKSUMS] = seal(files)
    return [(n, files[n.partition("/")[2]] if n.startswith(target) else d) for n, d in entries]


SPOILED = {
    "edited": lambda es: [(n, d.replace(b"1.0", b"9.0")) for n, d in es],
    "edited and resealed": resealed,
    "run left out": lambda es: [e for e in es if not e[0].startswith(SPECS[1].id)],
    "file left out": lambda es: [e for e in es if e[0] != f"{SPECS[1].id}/outcome.json"],
    "run added": lambda es: [*es, ("0" * 20 + "/spec.json", b"{}")],
    "file added": lambda es: [*es, (f"{SPECS[1].id}/more.json", b"{}")],
    "file twice": lambda es: [*es, es[-1]],
    "way out": lambda es: [*es, ("../escaped", b"")],
    "way out of a run": lambda es: [*es, (f"{SPECS[1].id}/../../escaped", b"")],
    "absolute": lambda es: [*es, ("/escaped", b"")],
    "backslash": lambda es: [*es, (f"{SPECS[1].id}/..\\escaped", b"")],
    "hidden": lambda es: [*es, (f"{SPECS[1].id}/.escaped", b"")],
    "no manifest": lambda es: [e for e in es if e[0] != MANIFEST],
    "list for manifest": lambda es: [(MANIFEST, b"[]"), *es[1:]],
    "manifest of another shape": lambda es: with_manifest(es, lambda m: m.update(runs=3)),
    "manifest without runs": lambda es: with_manifest(es, lambda m: m.pop("runs")),
    "newer schema": lambda es: with_manifest(es, lambda m: m.update(schema=99)),
    "name too long for a disk": lambda es: sealed_anew(es, lambda f: f.update({"x" * 308 + ".parquet": b""})),
    "control characters in a name": lambda es: sealed_anew(es, lambda f: f.update({"\x1b[31m.parquet": b""})),
    "no table": lambda es: sealed_anew(es, lambda f: f.update({"curve.parquet": b"PAR1 is no table PAR1"})),
    "a table that lies": lambda es: sealed_anew(es, lambda f: f.update({"curve.parquet": lying()})),
    "a table that unfolds": lambda es: sealed_anew(es, lambda f: f.update({"curve.parquet": unfolding()})),
}


def sealed_anew(entries, change):
    """All three runs, the last changed and sealed again, manifest included: nothing but the change is wrong."""
    target = max(FILES)
    files = {n.partition("/")[2]: d for n, d in entries if n.startswith(target)}
    del files[CHECKSUMS]
    change(files)
    files[CHECKSUMS] = seal(files)
    others = [(n, d) for n, d in entries if not n.startswith(target)]
    changed = with_manifest(others, lambda m: m["runs"].update({target: digest(files[CHECKSUMS])}))
    return [*changed, *((f"{target}/{name}", data) for name, data in files.items())]


def lying() -> bytes:
    """210 MB of text in 20 kB, which say that they unpack to a thousand bytes."""
    packed = {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
    return understated(table({"x": pa.repeat("y" * 100_000, 2100)}, **packed))


def unfolding() -> bytes:
    """A table of 30 million equal numbers: some hundred kilobytes."""
    return table({"x": pa.DictionaryArray.from_arrays(pa.array(np.zeros(30_000_000, np.int8)), pa.array([1.0]))})


@pytest.mark.parametrize("change", SPOILED.values(), ids=SPOILED)
@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_a_spoiled_file_changes_nothing(exported: Path, store: Store, change):
    rewritten(exported, change)
    before = sorted(store.root.rglob("*"))
    with pytest.raises(StoreError):
        taken(exported, store)
    assert sorted(store.root.rglob("*")) == before
    assert not list(exported.parent.rglob("*escaped*"))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.99])
def test_a_truncated_file_is_refused(exported: Path, store: Store, share: float):
    data = exported.read_bytes()
    exported.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(StoreError, match=r"runs\.zip"):
        taken(exported, store)
    assert store.ids() == set()


def test_any_flipped_byte_is_harmless_or_refused(exported: Path, tmp_path: Path):
    """One byte in 97 is flipped, each in a copy: what verifies must be what was exported."""
    data = exported.read_bytes()
    refused = 0
    for i, position in enumerate(range(0, len(data), 97)):
        changed = bytearray(data)
        changed[position] ^= 0x10
        path = tmp_path / f"{i}.zip"
        path.write_bytes(bytes(changed))
        try:
            archive = Archive(path)
            read = {run_id: archive.read(run_id).files for run_id in archive.ids()}
        except StoreError:
            refused += 1
        else:
            assert read == FILES
    assert refused > 10


def test_merge_replaces_a_damaged_run(exported: Path, store: Store):
    taken(exported, store)
    (store.root / "runs" / SPECS[0].id / "outcome.json").write_text("{}")
    assert taken(exported, store) == {"new": 1, "present": 2}
    assert store.read(SPECS[0].id).results == {"value": 0.0}
    assert len(list((store.root / "refused").iterdir())) == 1


def test_merge_leaves_the_checkpoint_of_a_run_that_is_being_computed(exported: Path, store: Store):
    for spec in SPECS[:2]:
        (store.partial(spec.id) / "left").mkdir(parents=True)
    with store.claim(SPECS[0].id):
        taken(exported, store)
    # flock belongs to the open file, so this process counts as another one
    assert [p.name for p in (store.root / "partial").iterdir()] == [SPECS[0].id]


def test_open_runs_takes_a_store_a_file_or_a_folder_of_files(exported: Path, store: Store, tmp_path: Path):
    assert open_runs(exported).ids() == set(FILES)
    assert open_runs(exported.parent).ids() == set(FILES)
    assert open_runs(store.root).ids() == set()
    for nothing in (tmp_path / "absent", store.root / "locks"):
        with pytest.raises(StoreError, match="no store at"):
            open_runs(nothing)


def test_layers_answer_in_order(exported: Path, store: Store):
    store.commit(SPECS[0].id, files_of(SPECS[0], value=7.0))
    both = Layered([store, Archive(exported)])
    assert both.ids() == set(FILES)
    assert both.read(SPECS[0].id).results == {"value": 7.0}
    assert both.read(SPECS[2].id).results == {"value": 2.0}
    with pytest.raises(KeyError):
        both.read("0" * 20)
    (store.root / "runs" / SPECS[0].id / "outcome.json").write_text("{}")
    with pytest.raises(DamagedRun, match=SPECS[0].id):
        both.read(SPECS[0].id)


@pytest.mark.parametrize(("at_once", "at"), [(True, 1), (True, 2), (False, 6), (False, 16)])
def test_a_disk_that_fills_up_during_an_import_keeps_nothing_of_it(
    exported: Path, store: Store, monkeypatch, at_once: bool, at: int
):
    """The ``at``-th flush fails: 15 write three runs of four files, or one the file system; the last their names."""
    store.commit(SPECS[0].id, {**FILES[SPECS[0].id]})
    (store.root / "runs" / SPECS[0].id / "outcome.json").write_text("{}")
    before = {p: p.read_bytes() for p in store.root.rglob("*") if p.is_file()}
    calls = []

    def full(handle: object) -> bool:
        calls.append(handle)
        if len(calls) == at:
            raise OSError(errno.ENOSPC, "No space left on device")
        return True

    monkeypatch.setattr("suite.files._sync_file_system", full if at_once else lambda folder: False)
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        taken(exported, store)
    monkeypatch.undo()
    assert {p: p.read_bytes() for p in store.root.rglob("*") if p.is_file()} == before
    assert taken(exported, store) == {"new": 3}


@pytest.mark.parametrize("packing", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2], ids=["lzma", "bzip2"])
@pytest.mark.parametrize("spoiled", [False, True], ids=["whole", "spoiled"])
def test_only_what_export_packs_is_unpacked(exported: Path, store: Store, packing: int, spoiled: bool):
    rewritten(exported, packing=packing)
    if spoiled:
        data = bytearray(exported.read_bytes())
        data[60:70] = bytes(10)
        exported.write_bytes(bytes(data))
    with pytest.raises(StoreError, match="packed in a way"):
        taken(exported, store)


def test_a_bomb_is_refused_before_it_unfolds(exported: Path, store: Store, monkeypatch: pytest.MonkeyPatch):
    """Its checksums are right; only its size tells, of one file or of all together."""
    bomb = bytes(2**20)
    bombs = lambda es: sealed_anew(es, lambda f: f.update({"a.parquet": bomb, "b.parquet": bomb}))
    rewritten(exported, bombs, zipfile.ZIP_DEFLATED)
    assert exported.stat().st_size < 20_000
    monkeypatch.setattr("suite.runs.archive.MOST_FILE", 2**19)
    with pytest.raises(DamagedRun, match="a file of a run may have"):
        Archive(exported)
    monkeypatch.undo()
    monkeypatch.setattr("suite.runs.archive.MOST_SMALL", 2**20)
    with pytest.raises(DamagedRun, match="far more than runs do"):
        Archive(exported)


def test_what_another_made_of_a_run_is_told_from_what_contests_it(tmp_path: Path, store: Store):
    """The store's version decides; of what it contests a copy is kept, and read beside it."""
    here = {"source": "s", "versions": {"torch": "1"}, "execution": {"path": "looped"}, "machine": {"cpu": "c"}}
    made = lambda where, value, seconds: encode(
        SPECS[0],
        where,
        Outcome("finished", {"value": value}, {"t": pd.DataFrame({"x": [value], "seconds": [seconds]})}),
    )
    store.commit(SPECS[0].id, made(here, 1.0, 3.0))
    measured = here["execution"] | {"reason": "measured"}
    cases = {
        "timed again": (made(here, 1.0, 4.0), {"present": 1}),
        "another processor": (made(here | {"machine": {"cpu": "d"}}, 2.0, 3.0), {"others": 1}),
        "chosen for another reason": (made(here | {"execution": measured}, 2.0, 3.0), {"contested": 1}),
        "contested": (made(here, 2.0, 3.0), {"contested": 1}),
    }
    for name, (files, expected) in cases.items():
        export({SPECS[0].id: files}, tmp_path / "brought.zip", {})
        assert taken(tmp_path / "brought.zip", store) == expected, name
        assert store.read(SPECS[0].id).results == {"value": 1.0}
    assert [run.results["value"] for run in store.versions(SPECS[0].id)] == [1.0, 2.0, 2.0]


def test_what_is_under_way_goes_on_in_a_store_that_has_not_begun_it(tmp_path: Path, store: Store, monkeypatch):
    """Checkpoints of up to eight gigabytes together are taken."""
    begun, stored = SPECS[0].id, SPECS[1].id
    for spec in SPECS[:2]:
        (store.partial(spec.id) / "claim").mkdir(parents=True)
        (store.partial(spec.id) / "claim" / "checkpoint").write_bytes(spec.id.encode())
    store.commit(stored, FILES[stored])
    assert pack(store.root, tmp_path / "unfinished.zip") == [begun]
    assert take(tmp_path / "unfinished.zip", tmp_path / "next") == [begun]
    assert Store(tmp_path / "next").partial(begun).joinpath("claim", "checkpoint").read_bytes() == begun.encode()
    assert take(tmp_path / "unfinished.zip", tmp_path / "next") == [], "begun there: left as it is"
    sized = lambda size: [SimpleNamespace(filename=f"{begun}/claim/checkpoint", file_size=size)]
    monkeypatch.setattr(zipfile.ZipFile, "infolist", lambda held: sized(8 * 2**30))
    assert take(tmp_path / "unfinished.zip", tmp_path / "next") == []
    monkeypatch.setattr(zipfile.ZipFile, "infolist", lambda held: sized(8 * 2**30 + 1))
    with pytest.raises(DamagedRun, match="unpack to more than"):
        take(tmp_path / "unfinished.zip", tmp_path / "next")
