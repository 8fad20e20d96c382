"""How much an exported file may unpack to, by what its directory says, and in which order it is written and read."""

from __future__ import annotations

import errno
import json
import struct
import zipfile
from functools import partial
from pathlib import Path

import pytest
from toy import files_of

from suite.runs import archive as archive_module
from suite.runs.archive import Archive, Layered, export, merge, open_runs, versions
from suite.runs.contest import relation
from suite.runs.store import CHECKSUMS, DamagedRun, Store, StoreError, seal, verified
from suite.spec import RunSpec

SPECS = [RunSpec("toy/draw", {"a": 1}, s) for s in range(6)]
FILES = {spec.id: files_of(spec, value=float(spec.seed)) for spec in SPECS}
FIRST = SPECS[0].id
MIB = 2**20


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    export(FILES, tmp_path / "runs.zip", {"b": 1, "a": 2})
    return tmp_path / "runs.zip"


def telling(path: Path, *sizes: int) -> Path:
    """The first files of runs unpack to these sizes, as the directory has it, which is all that is looked at."""
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02") + 1  # behind the manifest
    for size in sizes:
        at = data.index(b"PK\x01\x02", at) + 24
        data[at : at + 4] = struct.pack("<I", size)
    path.write_bytes(bytes(data))
    return path


def total(path: Path) -> int:
    with zipfile.ZipFile(path) as opened:
        return sum(info.file_size for info in opened.infolist())


def test_a_file_of_a_run_may_have_64_mebibytes(exported: Path):
    assert Archive(telling(exported, 64 * MIB)).ids() == set(FILES)
    with pytest.raises(DamagedRun, match=r"has 67,108,865 bytes; a file of a run may have 67,108,864"):
        Archive(telling(exported, 64 * MIB + 1))


def test_a_small_export_may_unpack_to_256_mebibytes(exported: Path):
    """Four files say most of them, and the fifth what the others leave."""
    telling(exported, *[60 * MIB] * 4, 0)
    rest = 256 * MIB - total(exported)
    assert Archive(telling(exported, *[60 * MIB] * 4, rest)).ids() == set(FILES)
    with pytest.raises(DamagedRun, match=r"unpack to 268,435,457 bytes, far more than runs do"):
        Archive(telling(exported, *[60 * MIB] * 4, rest + 1))


def test_a_large_export_may_unpack_to_thirty_times_its_size(exported: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archive_module, "MOST_SMALL", 0)
    telling(exported, 0)
    rest = 30 * exported.stat().st_size - total(exported)
    assert Archive(telling(exported, rest)).ids() == set(FILES)
    with pytest.raises(DamagedRun, match="far more than runs do"):
        Archive(telling(exported, rest + 1))


@pytest.mark.parametrize("name", ["../escaped", f"{FIRST}/../escaped", f"{FIRST}/.escaped", f"{FIRST}/", "escaped"])
def test_a_name_that_is_no_run_s_is_refused_before_anything_is_read(exported: Path, name: str):
    with zipfile.ZipFile(exported, "a") as opened:
        opened.writestr(name, b"")
    with pytest.raises(DamagedRun, match="is not a file of a run"):
        Archive(exported)


@pytest.mark.parametrize("kind", ["names", "status", "schema"])
def test_what_is_said_of_a_file_has_a_bound(tmp_path: Path, kind: str):
    """Whatever it holds: a hundred thousand foreign names, or a word of a megabyte."""
    files = {name: data for name, data in FILES[FIRST].items() if name != CHECKSUMS}
    if kind == "status":
        files["outcome.json"] = json.dumps({"status": "x" * MIB, "note": "", "results": {}}).encode()
    files[CHECKSUMS] = seal(files)
    if kind == "names":
        files |= {f"{place}.parquet": b"" for place in range(100_000)}
    if kind == "schema":
        files[CHECKSUMS] = json.dumps({"schema": "x" * MIB, "files": {}}).encode()
    with pytest.raises(DamagedRun) as told:
        verified(FIRST, files)
    assert len(str(told.value)) < 500


def test_an_export_bears_no_date_and_no_order_of_files(exported: Path, tmp_path: Path):
    turned = {run_id: dict(reversed(files.items())) for run_id, files in reversed(FILES.items())}
    export(turned, tmp_path / "turned.zip", {"a": 2, "b": 1})
    assert (tmp_path / "turned.zip").read_bytes() == exported.read_bytes()
    with zipfile.ZipFile(exported) as opened:
        assert {info.date_time for info in opened.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        names = [info.filename for info in opened.infolist()]
    assert names == ["manifest.json", *sorted(names[1:])]


def test_a_disk_that_is_full_when_an_export_is_flushed_bears_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(archive_module.os, "fsync", full)
    with pytest.raises(StoreError, match=r"could not write .*runs\.zip: No space left on device"):
        export(FILES, tmp_path / "runs.zip", {})
    assert list(tmp_path.iterdir()) == []


def test_an_archive_is_closed_with_its_block(exported: Path):
    with Archive(exported) as archive:
        read = archive.read(FIRST)
    assert archive.read(FIRST) is read
    with pytest.raises(DamagedRun, match=SPECS[1].id):
        archive.read(SPECS[1].id)


def test_of_a_folder_of_exports_the_first_by_name_answers(tmp_path: Path):
    for number in (3, 0, 5, 1, 4, 2):
        export({FIRST: files_of(SPECS[0], value=float(number))}, tmp_path / f"{number}.zip", {})
    found = open_runs(tmp_path)
    assert found.read(FIRST).results == {"value": 0.0}
    assert [run.results["value"] for run in versions(found, FIRST)] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_versions_come_from_the_sources_that_hold_the_run(exported: Path, tmp_path: Path):
    store = Store(tmp_path / "store", create=True)
    other = RunSpec("toy/draw", {"a": 2})
    store.commit(other.id, files_of(other))
    both = Layered([store, Archive(exported)])
    assert [run.id for run in both.versions(FIRST)] == [FIRST]
    assert [run.id for run in both.versions(other.id)] == [other.id]
    with pytest.raises(KeyError, match="0" * 20):
        both.versions("0" * 20)


def test_an_import_names_what_it_brought_in_order(exported: Path, tmp_path: Path):
    done = merge(Archive(exported), Store(tmp_path / "store", create=True), partial(relation, timed=False))
    assert done.new == sorted(FILES)
