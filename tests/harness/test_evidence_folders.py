"""Where evidence lies: beside the papers, in the working folder, in a named store; and how it is written out."""

from __future__ import annotations

import pandas as pd
import pytest
import toy

from suite.commands.export import export_selection, table_beside
from suite.papers import catalogue
from suite.papers.catalogue import ids_of_user, of_user, with_committed
from suite.runs.archive import Archive, export
from suite.runs.run import StoreError
from suite.runs.store import Store
from suite.spec import RunSpec

SPECS = [RunSpec("toy/draw", {"n": n}) for n in range(3)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A paper's folder of evidence with two exported files; an empty folder to work in."""
    place = tmp_path / "home" / "evidence"
    place.mkdir(parents=True)
    for name, spec in zip("ba", SPECS, strict=False):
        export({spec.id: toy.files_of(spec, value=1.0)}, place / f"{name}.zip", {})
    monkeypatch.setattr(catalogue, "folders", lambda: [place])
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return place


def store(path, *specs):
    made = Store(path, create=True)
    for spec in specs:
        made.commit(spec.id, toy.files_of(spec, value=2.0))
    return made


def values(source, *specs):
    return [source.read(spec.id).results["value"] for spec in specs]


def test_the_unnamed_store_lies_in_the_working_folder_and_comes_first(folder):
    store("runs.store", *SPECS[1:])
    found = with_committed(None)
    assert values(found, *SPECS) == [1.0, 2.0, 2.0]
    assert of_user(None).ids() == ids_of_user(None) == {SPECS[1].id, SPECS[2].id}


def test_a_named_store_comes_first_and_must_be_one(folder, tmp_path):
    store(tmp_path / "mine", SPECS[0])
    assert values(with_committed(tmp_path / "mine"), *SPECS[:2]) == [2.0, 1.0]
    for asked in (with_committed, of_user, ids_of_user):
        with pytest.raises(StoreError):
            asked(tmp_path / "absent")
    assert ids_of_user(None) == ids_of_user(tmp_path / "absent", new=True) == set()


def test_without_runs_of_any_kind_the_wheel_that_has_them_is_named(folder):
    for path in folder.glob("*.zip"):
        path.unlink()
    with pytest.raises(StoreError, match="sgd_scaling_suite_evidence"):
        with_committed(None)


def test_the_stored_runs_of_a_selection_are_written_out(papers, tmp_path):
    smoke, paper = (toy.runs(profile)["draws"] for profile in ("smoke", "paper"))
    made, out = store(tmp_path / "store", *smoke, paper[0], SPECS[0]), tmp_path / "new" / "folder" / "runs.zip"
    said = export_selection(["toy/table1"], made.root, out, None)
    size = f"{out.stat().st_size / 1e6:.2f} MB"
    assert said == f"4 runs written to {out} ({size}), as one table to {out.with_suffix('.parquet')}"
    ids = {spec.id for spec in (*smoke, paper[0])}
    assert Archive(out).ids() == ids
    table = pd.read_parquet(out.with_suffix(".parquet"))
    assert list(dict.fromkeys(table["run"])) == sorted(ids)
    assert export_selection(["toy/table1"], made.root, out, "smoke").startswith("3 runs written")
    assert Archive(out).ids() == {spec.id for spec in smoke}


@pytest.mark.parametrize(
    ("there", "out", "why"),
    [
        ((), "x.parquet", r"x\.parquet is the name of the table beside the exported file; name the file \.zip"),
        (("x.parquet",), "x.zip", r"x\.parquet is there without .*x\.zip, and would be replaced"),
        (("x.zip/",), "x.zip", r"x\.zip is there and no plain file"),
        (("x.zip", "x.parquet/"), "x.zip", r"x\.parquet is there and no plain file"),
    ],
)
def test_a_table_replaces_nothing_but_the_table_of_an_export(tmp_path, there, out, why):
    for name in there:
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).write_text("")
    with pytest.raises(StoreError, match=why):
        table_beside(tmp_path / out)
