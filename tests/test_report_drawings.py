"""Figures: drawn from the largest stored profile, marked with what they show, legible, light, always the same."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest
from fake_paper import HOSTILE, fill, registered, specs

from suite.papers import catalogue
from suite.papers.artifact import Artifact, Missing, Quantity
from suite.papers.grades import Grade
from suite.papers.measurement import verdicts
from suite.report import style
from suite.report.drawing import SVG, DrawingError, draw_selection, drawing, image, numbered, table_of
from suite.report.site.build import write_site
from suite.runs.archive import Layered
from suite.runs.run import CHECKSUMS, UnusableRun, seal
from suite.runs.store import Store

LIGHT, DARK = (255, 255, 255), (0x1E, 0x21, 0x26)  # the lightest and the lighter dark ground a figure stands on

# Machado, Oliveira and Fernandes (2009), severity 1: what an eye without one kind of cone sees, linear RGB.
VISION = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    with registered(tmp_path_factory.mktemp("home")) as paper:
        yield paper


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("runs"))


def linear(colour) -> np.ndarray:
    """Linear RGB, [3], of ``#rrggbb`` or of three bytes."""
    if isinstance(colour, str):
        colour = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    scaled = np.array(colour) / 255
    return np.where(scaled <= 0.04045, scaled / 12.92, ((scaled + 0.055) / 1.055) ** 2.4)


def contrast(one, other) -> float:
    dark, light = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colour", [*style.PALETTE, *style.ramp(8)])
def test_every_colour_is_legible_on_white_and_on_dark(colour):
    assert contrast(colour, LIGHT) >= 3
    assert contrast(colour, DARK) >= 2.7


@pytest.mark.parametrize("vision", VISION)
def test_neighbouring_colours_differ_without_colour_vision_or_in_line_style(vision):
    seen = [np.array(VISION[vision]) @ linear(colour) for colour in style.PALETTE]
    for i in range(len(seen) - 1):
        distance = np.linalg.norm(np.cbrt(seen[i]) - np.cbrt(seen[i + 1]))
        assert distance > 0.05, (style.PALETTE[i], style.PALETTE[i + 1])
    assert len(set(map(str, style.LINES))) == len(style.PALETTE) == len(style.MARKERS)


def test_a_thinned_curve_keeps_ends_spikes_and_gaps():
    x = np.arange(100_000.0)
    y = np.sin(x / 9_000)
    y[31_415], y[27_182], y[50_000:50_400] = 9.0, -9.0, np.nan
    kept_x, kept_y = style.thin(x, y, 500)
    assert len(kept_x) == len(kept_y) <= 500
    assert (kept_x[0], kept_x[-1]) == (0, 99_999)
    assert {9.0, -9.0} <= set(kept_y)
    assert np.isnan(kept_y[(kept_x >= 50_000) & (kept_x < 50_400)]).any()
    assert (np.diff(kept_x) > 0).all()
    assert np.array_equal(kept_y, y[kept_x.astype(int)], equal_nan=True)


def test_the_largest_stored_profile_is_drawn(paper, tmp_path):
    store = fill(tmp_path)
    fig1 = paper.artifact("fake/fig1")
    assert drawing(fig1, store).profile == "smoke"
    fill(tmp_path, "reduced")
    assert drawing(fig1, store).profile == "reduced"
    assert drawing(fig1, store, "smoke").profile == "smoke"
    with pytest.raises(Missing, match="no run of descent at paper"):
        drawing(fig1, store, "paper")


def test_a_panel_is_stamped_with_the_scales_of_the_runs_it_draws(paper, store, monkeypatch):
    def stamped(groups, *read):
        panel = Artifact("fake/panel", "a panel", lambda profile: groups)
        panel.drawing(lambda frame, figure: [frame[group] for group in read])
        return drawing(panel, store, "smoke").stamp

    shared, beside, _ = specs("smoke")
    scale = {shared.id: "whole", beside.id: "stand-in"}
    graded = lambda grading, claim, rests: Grade(scale[rests.runs[0].spec.id], "", True)
    monkeypatch.setattr("suite.papers.measurement.Grading.grade", graded)
    groups = {"drawn": (shared,), "beside": (beside,)}
    assert stamped({}) == "no run"
    assert stamped(groups, "drawn") == "smoke profile · whole · 1 run"
    assert stamped(groups, "drawn", "beside") == "smoke profile · whole, stand-in · 2 runs"
    assert stamped(groups) == "smoke profile · whole, stand-in"  # a scheme of them all
    scale[beside.id] = "exact"
    assert stamped(groups, "drawn", "beside") == "smoke profile · whole · 2 runs"
    assert stamped(groups, "beside") == "smoke profile · exact · 1 run"


def losses(frame):
    return frame.table("losses", "descent")


def test_seeds_that_are_stored_are_drawn_and_shown_where_others_are_missing(paper, tmp_path):
    store = fill(tmp_path / "store")
    for spec in specs("smoke")[1:]:
        store.refuse(spec.id)
    fig1 = replace(paper.artifact("fake/fig1"), frame=losses)
    paper.artifact("fake/fig1").quantities["gain"] = Quantity(lambda frame: math.nan, ("descent",))
    drawn = drawing(fig1, store)
    assert len(drawn.figure.axes[0].lines) == 1
    assert drawn.stamp == "smoke profile · 1 of 3 seeds · stand-in · 1 run"
    assert len(table_of(fig1, store, drawn, list)) == 40
    judged = {verdict.claim.id: verdict for verdict in verdicts(paper, store)}
    accuracy, gain = judged["fake/fig1/accuracy"], judged["fake/fig1/gain"]
    assert (accuracy.verdict, accuracy.red, accuracy.proxy.values) == ("not run", False, (74.5,))
    assert (gain.verdict, gain.proxy) == ("not run", None)  # what is no number is not shown
    assert accuracy.proxy.note.startswith("1 of 3 seeds at smoke")
    assert accuracy.why.endswith("2 of 3 runs of descent at smoke are missing")
    fill(tmp_path / "reduced", "reduced")
    assert drawing(fig1, Layered([store, Store(tmp_path / "reduced")])).profile == "reduced"


def test_a_figure_as_svg_is_described_and_in_the_ink_of_its_viewer(paper, store):
    svg = image(drawing(paper.artifact("fake/fig1"), store), "svg").decode()
    root = ElementTree.fromstring(svg)
    assert [child.tag for child in root][:3] == [f"{{{SVG}}}{name}" for name in ("title", "desc", "style")]
    assert svg.count(style.INK) == 1  # in the scheme that the viewer's own replaces
    assert "currentColor" in svg
    assert HOSTILE in "".join(root.itertext())
    assert "<script" not in svg


def test_what_a_figure_refers_to_is_named_by_its_place():
    """Two drawings of one figure differ in the last bits of their layout, which matplotlib hashes for its names."""
    drawn = [
        f'<use xlink:href="#m{name}"/><g clip-path="url(#p{name})"/><path id="m{name}"/><clipPath id="p{name}"/>'
        f"<text>run {name}</text>"
        for name in ("0123456789", "abcdef0123")
    ]
    first, second = (numbered(svg, "fake/fig1").replace("abcdef0123", "0123456789") for svg in drawn)
    assert first == second
    assert first.count("fake-fig1-0") == first.count("fake-fig1-1") == 2
    assert "<text>run 0123456789</text>" in first


def test_the_same_runs_give_the_same_files(paper, store, tmp_path):
    forms, before = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}, dict(matplotlib.rcParams)
    for folder in ("one", "two"):
        assert len(list(draw_selection(["fake"], store, tmp_path / folder, list(forms)))) == 3
    names = {path.name for path in (tmp_path / "one").iterdir()}
    assert names == {f"fake-{figure}.{form}" for figure in ("fig1", "fig2") for form in forms}
    for name in names:
        data = (tmp_path / "one" / name).read_bytes()
        assert data.startswith(forms[name.partition(".")[2]])
        assert data == (tmp_path / "two" / name).read_bytes()
    assert dict(matplotlib.rcParams) == before


def test_every_artifact_gets_a_line_that_says_where_or_why_not(paper, tmp_path):
    store = fill(tmp_path / "store")
    broken = specs("smoke")[0].id
    (store.root / "runs" / broken / "outcome.json").write_text("{}")
    drawn = draw_selection([], store, tmp_path / "out")
    lines = list(islice(drawn, 3))
    with pytest.raises(UnusableRun, match="not drawn, since stored evidence cannot be used: fake/fig1"):
        next(drawn)
    assert lines[0].startswith(f"fake/fig1: not drawn, stored evidence cannot be used: run {broken}")
    assert lines[1] == "fake/table1: no drawing; its numbers are in the report and in check"
    assert lines[2] == f"fake/fig2: {tmp_path / 'out' / 'fake-fig2.svg'} (smoke profile · stand-in · 1 run)"
    drawn = draw_selection(["fake/fig2"], store, tmp_path / "out", ["svg"], "paper")
    missing = next(drawn)
    with pytest.raises(DrawingError, match="not drawn, since runs are missing: fake/fig2"):
        next(drawn)
    assert missing == "fake/fig2: not run: needs cluster (no run of cluster at paper)"


@pytest.mark.parametrize(("form", "read"), [("csv", pd.read_csv), ("parquet", pd.read_parquet)])
def test_what_is_drawn_is_written_as_a_table_beside_the_picture(tmp_path, monkeypatch, form, read):
    with registered(tmp_path) as paper:
        fig1 = replace(paper.artifact("fake/fig1"), frame=losses)
        made = replace(paper, artifacts=(fig1, *paper.artifacts[1:]))
        monkeypatch.setitem(catalogue.PAPERS, "fake", catalogue.Registered(lambda: made, tmp_path))
        catalogue.paper.cache_clear()
        store, out = fill(tmp_path / "store"), tmp_path / "out"
        lines = list(draw_selection([], store, out, data=form))
        assert [line.rpartition("; ")[2] for line in lines] == [
            str(out / f"fake-{name}.{form}") for name in ("fig1", "table1", "fig2")
        ]
        drawn = read(out / f"fake-fig1.{form}")
        expected = losses(fig1.read(store, "smoke"))
        pd.testing.assert_frame_equal(drawn, expected, check_dtype=False, rtol=1e-7)
        claims = read(out / f"fake-table1.{form}")
        assert list(claims.loc[claims["claim"] == "fake/table1/learners", ["printed", "ours"]].iloc[0]) == [16, 16]
        assert {"fake-fig1.svg", "fake-fig2.svg"} <= {path.name for path in out.iterdir()}


def test_neither_pyplot_nor_torch_is_needed_and_matplotlib_only_to_draw():
    program = (
        "import sys\n"
        "from suite.report import drawing, readme, style\n"
        "assert 'matplotlib' not in sys.modules, 'matplotlib imported before anything is drawn'\n"
        "from suite.papers.artifact import Artifact\n"
        "from suite.runs.archive import Layered\n"
        "plot = lambda evidence, figure: figure.add_subplot().plot([1, 2])\n"
        "drawing.image(drawing.drawing(Artifact('a/b', 'c', draw=plot), Layered(())), 'svg')\n"
        "assert 'matplotlib.pyplot' not in sys.modules and 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=600)


def test_a_programming_error_is_named_and_the_others_are_drawn(paper, tmp_path):
    """The run's checksums are right, but it holds another table than the drawing reads."""
    store = fill(tmp_path / "store")
    odd = specs("smoke")[0].id
    files = {n: d for n, d in store.files(odd).items() if not n.endswith(".parquet") and n != CHECKSUMS}
    store.refuse(odd)
    store.commit(odd, files | {CHECKSUMS: seal(files)})
    drawn = draw_selection([], store, tmp_path / "out")
    lines = list(islice(drawn, 3))
    with pytest.raises(DrawingError, match=r"the code that draws fails: fake/fig1$"):
        next(drawn)
    assert lines[0].startswith("fake/fig1: programming error, KeyError: ")
    assert lines[2].startswith(f"fake/fig2: {tmp_path / 'out' / 'fake-fig2.svg'}")
    _, site = write_site(store, tmp_path / "site")
    written = [(tmp_path / f"site/fake/{name}.html").read_text() for name in ("fig1", "fig2")]
    assert ["Not drawn: fake/fig1: programming error" in text for text in written] == [True, False]
    assert list(site.faults) == [lines[0]]


def test_a_package_that_is_not_installed_is_no_programming_error(paper, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match=r"matplotlib\.figure"):
        list(draw_selection([], fill(tmp_path / "store"), tmp_path / "out"))
