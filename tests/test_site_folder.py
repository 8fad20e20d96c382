"""A site's folder and its rows: what is left as it is, what is removed, who makes the pages, how they are linked."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from functools import partial

import pytest
from fake_paper import fig1_draw, fig1_measures, fill, registered, specs

from suite.claims.judge import Claim, Verdict
from suite.claims.measured import EXACT, REDUCED
from suite.papers.artifact import Artifact
from suite.report.site import build, changed, rows
from suite.report.site.exhibit import Judged, first_panel, module_of, text_of, thumbnail
from suite.report.site.rows import Row, make, rows_of
from suite.report.site.stamp import NAME, Folder, digest_of
from suite.report.speed_figures import Figured, Speed
from suite.runs.archive import Layered
from suite.runs.store import Outcome, Store, encode

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


def test_a_new_folder_holds_nothing_and_is_not_complete(tmp_path):
    folder = Folder(tmp_path)
    assert (folder.key, folder.groups, folder.written) == ("", {}, [])
    assert not folder.complete("")
    assert not folder.holds("a", "of a")


def test_what_was_written_is_known_again(whole):
    folder = Folder(whole)
    assert folder.complete("all")
    assert not folder.complete("another")
    assert (folder.holds("a", "of a"), folder.holds("a", "of b"), folder.holds("c", "of c")) == (True, False, False)
    assert folder.groups["b"].files == {"b.html": digest_of(b"b")}


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


def test_groups_that_are_not_kept_go_with_their_files_but_for_shared_ones(whole):
    folder = Folder(whole)
    folder.put("shared", "s", {"b.html": b"b", "s.html": b"s"})
    folder.close("fewer", ["b"])
    assert files(whole) == {"b.html", NAME}
    again = Folder(whole)
    assert (again.key, set(again.groups), again.complete("fewer")) == ("fewer", {"b"}, True)


def test_what_was_put_is_known_after_a_save_without_the_site_being_whole(whole):
    folder = Folder(whole)
    folder.put("b", "anew", {"b.html": b"other"})
    assert not Folder(whole).holds("b", "anew")
    folder.save()
    assert Folder(whole).holds("b", "anew")


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


def verdict(said="reproduced", needs="gpu", rests_on="", says="It is so"):
    return Verdict(Claim("fake/x/y", says, "1", "holds", "smoke", needs, "why"), said, "", rests_on=rests_on)


def test_a_row_sums_up_its_claims_in_the_order_of_the_boards():
    row = Row("fake/x", "X", None)
    row.verdicts = [
        verdict("not run", "cluster"),
        verdict("reproduced", "cpu-small", EXACT, "Two are four"),
        verdict("reproduced", "gpu", REDUCED),
        verdict("reproduced", "gpu", REDUCED),
    ]
    assert list(row.tally.items()) == [("reproduced", 2), ("not run", 1), ("holds", 1)]
    assert (row.needs, row.grades) == (["cpu-small", "gpu", "cluster"], [REDUCED, EXACT])
    assert row.triples == "not run|nothing measured|cluster;holds|exact|cpu-small;reproduced|reduced|gpu"
    assert row.words == "It is so Two are four It is so It is so"


def test_a_row_knows_the_pictures_there_are():
    row = Row("fake/x", "X", None)
    row.found_in(["fake/x.panel.png", "fake/x.svg", "fake/y.thumb.png"])
    assert (row.panel, row.figure, row.thumbnail) == ("fake/x.panel.png", "fake/x.svg", "")
    row.found_in(iter(["fake/x.thumb.png"]))
    assert (row.panel, row.thumbnail) == ("", "fake/x.thumb.png")


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    with registered(tmp_path_factory.mktemp("home"), build) as made:
        yield made


def test_artifacts_come_before_those_that_nothing_measures(paper):
    found = [(row.id, row.title, row.artifact is not None) for row in rows_of(paper)]
    assert [name for name, *_ in found] == ["fake/fig1", "fake/table1", "fake/fig2", "fake/fig3"]
    assert found[-1] == ("fake/fig3", "fig3", False)
    assert all(measured for *_, measured in found[:-1])


def test_each_page_leads_to_its_neighbours_alone(paper, monkeypatch):
    around = []
    monkeypatch.setattr(rows, "files", lambda *given: around.append(given[-1]) or {})
    for place in range(4):
        make(("fake", place), Layered([]))
    ids = [tuple(row.id if row else None for row in (each["before"], each["after"])) for each in around]
    fig1, table1, fig2, fig3 = (f"fake/{name}" for name in ("fig1", "table1", "fig2", "fig3"))
    assert ids == [(None, table1), (fig1, fig2), (table1, fig3), (fig2, None)]


class Pool:
    """Stands for a pool of processes: notes how many it has, and makes everything here."""

    seen = ()

    def __init__(self, processes, context, begin, given):
        self.seen.append((processes, context.get_start_method()))
        self.begin, self.given = begin, given

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def map(self, function, todo):
        return (f"made {place}" for place in todo)

    def shutdown(self, **how):
        self.seen.append(how)


@pytest.fixture
def pool(monkeypatch):
    monkeypatch.setattr(Pool, "seen", [])
    monkeypatch.setattr(rows, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(rows, "make", lambda place, source: f"made {place}")
    return Pool.seen


@pytest.mark.parametrize(
    ("cores", "artifacts", "reopen", "processes"),
    [
        (4, 9, True, 4),
        (20, 9, True, 8),
        (8, 8, True, None),
        (1, 9, True, None),
        (4, 9, False, None),
        (2, 0, True, None),
    ],
)
def test_many_artifacts_are_made_in_as_many_processes_as_there_are_cores_up_to_eight(
    pool, monkeypatch, cores, artifacts, reopen, processes
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    todo = [("fake", place) for place in range(artifacts)]
    with rows.makers(Layered([]), todo, (lambda: Layered([])) if reopen else None) as made:
        assert list(made) == [f"made {place}" for place in todo]
    assert pool == ([] if processes is None else [(processes, "spawn")])


def test_where_one_fails_the_others_are_not_waited_for(pool, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    with pytest.raises(KeyError), rows.makers(Layered([]), [("fake", 0)] * 9, lambda: Layered([])):
        raise KeyError
    assert pool[1:] == [{"wait": False, "cancel_futures": True}]


# --- what a page follows from


def test_a_page_follows_from_those_of_the_user_s_runs_that_it_can_read(paper):
    fig1 = paper.artifact("fake/fig1")
    mine = {spec.id: "seal" for spec in specs("smoke")}
    keys = [changed.key_of(fig1, own) for own in ({}, mine, mine | {specs("smoke")[0].id: "another"})]
    assert len(set(keys)) == 3
    assert changed.key_of(fig1, {**mine, "0" * 20: "of nobody"}) == keys[1]
    assert changed.key_of(fig1, dict(reversed(mine.items()))) == keys[1]
    assert changed.key_of(None, mine) == changed.key_of(None, {})


def test_a_seal_tells_what_the_user_s_stores_hold_or_what_is_wrong_with_it(paper, tmp_path):
    spec, *_ = specs("smoke")
    one, other = (Store(tmp_path / name, create=True) for name in ("one", "other"))
    one.commit(spec.id, encode(spec, {}, Outcome("finished", {"best": 1.0})))
    other.commit(spec.id, encode(spec, {}, Outcome("finished", {"best": 2.0})))
    sealed = [changed.seals(source) for source in (one, other, Layered([one]), Layered([one, other]), Layered([]))]
    assert [set(each) for each in sealed] == [{spec.id}] * 4 + [set()]
    assert sealed[0] == sealed[2]
    assert len({each[spec.id] for each in sealed[:4]}) == 3
    (one.root / "runs" / spec.id / "outcome.json").write_text("{}")
    assert changed.seals(one)[spec.id] not in {each[spec.id] for each in sealed[:4]}


# --- the site as a whole


def test_what_was_made_before_a_failure_is_not_made_again(paper, tmp_path, monkeypatch):
    store = fill(tmp_path / "store", note="")

    def failing(which, name, *rest):
        if name == "fake/fig2":
            raise KeyboardInterrupt
        return {f"{name}.html": b"", f"{name}.svg": b""}, ""

    monkeypatch.setattr(rows, "files", failing)
    with pytest.raises(KeyboardInterrupt):
        build.write_site(store, tmp_path / "site")
    told = []
    monkeypatch.setattr(rows, "files", lambda which, name, *rest: ({f"{name}.html": b""}, ""))
    built = build.write_site(store, tmp_path / "site", told.append)
    assert told == ["2 of 4 artifacts are to be made", "fake: 4 artifacts, 2 made anew"]
    assert (built.artifacts, built.made) == (4, 2)
    assert str(built).startswith("2 of 4 artifacts made anew, ")


def test_measured_speed_has_a_page_that_the_index_leads_to(paper, tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "files", lambda which, name, *rest: ({f"{name}.html": b""}, ""))
    build.write_site(Layered([]), tmp_path / "without")
    assert "speed.html" not in (tmp_path / "without" / "index.html").read_text()
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><title>t</title><desc>d</desc><g/></svg>'
    shown = Speed("speed-here", "This machine", [Figured("Limits", "Marks.", svg, 6.4)] * 2, [], "")
    monkeypatch.setattr(build, "measured_speed", lambda: [shown])
    built = build.write_site(Layered([]), tmp_path / "with")
    assert {path.name for path in built.index.parent.glob("speed*")} == {
        "speed.html", "speed-here-0.svg", "speed-here-1.svg"
    }  # fmt: skip
    assert "speed.html" in built.index.read_text()
    again = build.write_site(Layered([]), tmp_path / "with")
    assert (again.artifacts, again.written) == (4, 0)


def test_a_small_picture_is_small_in_size_and_in_colours():
    from PIL import Image

    def shrunk(width, height):
        picture = Image.linear_gradient("L").resize((width, height))
        buffer = io.BytesIO()
        Image.merge("RGB", (picture, picture.rotate(90), picture.rotate(180))).save(buffer, "png")
        return Image.open(io.BytesIO(thumbnail(buffer.getvalue())))

    assert (shrunk(960, 600).size, shrunk(600, 960).size, shrunk(100, 50).size) == ((320, 200), (150, 240), (100, 50))
    assert len(shrunk(960, 720).convert("RGB").getcolors(1 << 20)) <= 48


def test_the_card_of_a_figure_shows_its_first_panel_alone():
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    figure = Figure(figsize=(8, 3), dpi=50)
    FigureCanvasAgg(figure)
    for axes, colour in zip(figure.subplots(1, 2), ("#ff0000", "#0000ff"), strict=True):
        axes.set_facecolor(colour)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    card = Image.open(io.BytesIO(first_panel(buffer.getvalue(), figure))).convert("RGB")
    seen = {colour for _, colour in card.getcolors(1 << 20)}
    assert card.width < 220
    assert ((255, 0, 0) in seen, (0, 0, 255) in seen) == (True, False)
    assert first_panel(buffer.getvalue(), Figure()) == buffer.getvalue()


def test_the_module_of_an_artifact_is_that_of_its_first_measure_or_its_drawing():
    assert module_of(None) == module_of(Artifact("fake/x", "")) == ""
    assert module_of(Artifact("fake/x", "", draw=fig1_draw)) == "fake_paper"
    wrapped = partial(partial(fig1_measures))
    assert module_of(Artifact("fake/x", "", measures=(wrapped, verdict))) == "fake_paper"
    assert "def fig1_draw" in text_of("fake_paper")
    assert text_of("nowhere") == text_of("sys") == ""


def test_a_claim_is_called_by_its_last_name_on_its_artifact_s_page():
    assert Judged(replace(verdict()), [], []).name == "y"
