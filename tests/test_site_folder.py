"""A site's folder and its rows: what is left as it is, what is removed, who makes the pages, how they are linked."""

from __future__ import annotations

import json
import os
import time

import pytest
from fake_paper import fill, registered, specs

from suite.report.site import build, page_cache
from suite.report.site.page_cache import NAME, Folder
from suite.runs.archive import Layered
from suite.runs.run import Outcome, encode
from suite.runs.store import Store

A, B = {"a.html": b"a", "deep/a.svg": b"aa"}, {"b.html": b"b"}


@pytest.fixture
def whole(tmp_path):
    """A folder with two groups of files that is complete under the key "all"."""
    folder = Folder(tmp_path / "site")
    folder.put("a", "of a", A)
    folder.put("b", "of b", B)
    folder.close("all", ["a", "b"])
    return tmp_path / "site"


def files(root):
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("harmed", ["a.html", "deep/a.svg"])
@pytest.mark.parametrize("harm", [lambda path: path.unlink(), lambda path: path.write_text("x")])
def test_a_group_is_held_only_while_all_its_files_are_as_they_were_written(whole, harmed, harm):
    harm(whole / harmed)
    folder = Folder(whole)
    assert (folder.holds("a", "of a"), folder.holds("b", "of b")) == (False, True)
    assert not folder.complete("all")
    folder.put("a", "of a", A)
    assert folder.written == [harmed]
    assert folder.holds("a", "of a")


def test_files_that_a_group_no_longer_has_are_removed_and_others_stay(whole):
    (whole / "mine.txt").write_text("mine")
    folder = Folder(whole)
    folder.put("a", "anew", {"a.html": b"a", "c.html": b"c"})
    assert folder.written == ["c.html"]
    assert files(whole) == {"a.html", "b.html", "c.html", "mine.txt", NAME}
    assert folder.holds("a", "anew")


def test_what_a_dead_process_left_of_a_site_s_files_is_removed_and_what_is_being_written_stays(whole):
    hours = {".a.html-01234567": 2, "deep/.a.svg-89abcdef": 2, ".b.html-01234567": 0, ".mine-01234567": 2}
    for name, age in hours.items():
        (whole / name).touch()
        os.utime(whole / name, (time.time() - 3600 * age,) * 2)
    assert Folder(whole).complete("all")
    assert files(whole) == {*A, *B, NAME, ".b.html-01234567", ".mine-01234567"}


@pytest.mark.parametrize("path", ["../a", "/a", "deep/../../a", ".."])
def test_a_stamp_that_names_a_file_elsewhere_is_not_believed(whole, path):
    stamp = json.loads((whole / NAME).read_text())
    stamp["groups"]["a"]["files"][path] = ""
    (whole / NAME).write_text(json.dumps(stamp))
    assert Folder(whole).groups == {}


@pytest.mark.parametrize("stamp", ["", "[]", "{}", '{"key": 3}', '{"key": 3, "groups": {"a": 3}}', "null"])
def test_a_stamp_of_another_shape_counts_as_none(whole, stamp):
    (whole / NAME).write_text(stamp)
    assert (Folder(whole).key, Folder(whole).groups) == ("", {})


# --- rows


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    with registered(tmp_path_factory.mktemp("home")) as made:
        yield made


# --- what a page follows from


def test_a_page_follows_from_those_of_the_user_s_runs_that_it_can_read(paper):
    fig1 = paper.artifact("fake/fig1")
    mine = {spec.id: "seal" for spec in specs("smoke")}
    keys = [page_cache.key_of(fig1, own) for own in ({}, mine, mine | {specs("smoke")[0].id: "another"})]
    assert len(set(keys)) == 3
    assert page_cache.key_of(fig1, {**mine, "0" * 20: "of nobody"}) == keys[1]
    assert page_cache.key_of(fig1, dict(reversed(mine.items()))) == keys[1]
    assert page_cache.key_of(None, mine) == page_cache.key_of(None, {})


def test_a_seal_tells_what_the_user_s_stores_hold_or_what_is_wrong_with_it(paper, tmp_path):
    spec, *_ = specs("smoke")
    one, other = (Store(tmp_path / name, create=True) for name in ("one", "other"))
    one.commit(spec.id, encode(spec, {}, Outcome("finished", {"best": 1.0})))
    other.commit(spec.id, encode(spec, {}, Outcome("finished", {"best": 2.0})))
    sealed = [page_cache.seals(source) for source in (one, other, Layered([one]), Layered([one, other]), Layered([]))]
    assert [set(each) for each in sealed] == [{spec.id}] * 4 + [set()]
    assert sealed[0] == sealed[2]
    assert len({each[spec.id] for each in sealed[:4]}) == 3
    (one.root / "runs" / spec.id / "outcome.json").write_text("{}")
    assert page_cache.seals(one)[spec.id] not in {each[spec.id] for each in sealed[:4]}


# --- the site as a whole


def test_what_was_made_before_a_failure_is_not_made_again(paper, tmp_path, monkeypatch):
    store = fill(tmp_path / "store", note="")

    def failing(which, name, *rest):
        if name == "fake/fig2":
            raise KeyboardInterrupt
        return {f"{name}.html": b"", f"{name}.svg": b""}, ""

    monkeypatch.setattr(build, "files", failing)
    with pytest.raises(KeyboardInterrupt):
        build.write_site(store, tmp_path / "site")
    told = []
    monkeypatch.setattr(build, "files", lambda which, name, *rest: ({f"{name}.html": b""}, ""))
    built = build.write_site(store, tmp_path / "site", told.append)
    assert told == ["2 of 4 artifacts are to be made", "fake: 4 artifacts, 2 made anew"]
    assert (built.artifacts, built.made) == (4, 2)
    assert str(built).startswith("2 of 4 artifacts made anew, ")
