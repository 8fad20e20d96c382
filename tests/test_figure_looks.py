"""How figures look at the edges of the style: ramps, thinning, text, the line at the foot, what lacks."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from fake_paper import fill, registered

from suite.claims.judge import Claim
from suite.papers.artifact import Artifact, Missing
from suite.report import drawing as module
from suite.report import style
from suite.report.drawing import SVG, draw_selection, drawing, image, inline_svg, write
from suite.runs.archive import Layered
from suite.runs.store import StoreError


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    with registered(tmp_path_factory.mktemp("home")) as made:
        yield made


def test_a_ramp_goes_from_blue_over_grey_to_amber():
    assert style.ramp(3) == ["#2f63b5", "#808078", "#c08a10"]
    assert style.ramp(2) == ["#2f63b5", "#c08a10"]
    assert style.ramp(1) == ["#2f63b5"]
    assert style.ramp(0) == []
    assert style.ramp(5)[1] == "#587296"  # half of the way


def test_a_curve_of_the_length_asked_for_is_left_alone():
    y = [1.0, np.nan, 3.0, 2.0]
    assert len(style.thin(range(4), y, 4)[0]) == 4
    assert len(style.thin(range(5), [*y, 5.0], 4)[0]) < 5


def test_a_single_gap_survives_thinning():
    y = np.arange(100.0)
    y[37] = np.nan
    x, kept = style.thin(np.arange(100), y, 20)
    assert x[np.isnan(kept)].tolist() == [37]


def lightened(draw):
    from matplotlib.figure import Figure

    figure = Figure()
    made = draw(figure.subplots())
    style.lighten(figure)
    return made


@pytest.mark.parametrize(("points", "kept"), [(2000, 2000), (2001, 1400)])
def test_a_curve_of_more_than_two_thousand_points_is_thinned(points, kept):
    (line,) = lightened(lambda axes: axes.plot(np.random.default_rng(0).normal(size=points)))
    assert kept - 100 <= len(line.get_xdata()) <= kept
    assert not line.get_rasterized()


@pytest.mark.parametrize(("points", "pixels"), [(2000, False), (2001, True)])
def test_many_marks_become_pixels_and_keep_their_places(points, pixels):
    (marks,) = lightened(lambda axes: axes.plot(range(points), marker="o"))
    assert (bool(marks.get_rasterized()), len(marks.get_xdata())) == (pixels, points)
    cloud = lightened(lambda axes: axes.scatter(range(points), range(points)))
    assert bool(cloud.get_rasterized()) == pixels


def test_steps_are_not_thinned_and_a_dense_area_becomes_pixels():
    (steps,) = lightened(lambda axes: axes.step(range(3000), range(3000)))
    assert (len(steps.get_xdata()), bool(steps.get_rasterized())) == (3000, False)
    assert lightened(lambda axes: axes.fill_between(range(3000), range(3000))).get_rasterized()
    assert not lightened(lambda axes: axes.fill_between(range(30), range(30))).get_rasterized()


def test_text_can_be_read_and_what_carries_no_data_is_thinner_and_fainter_than_what_does():
    found = style.settings("a/b")
    sizes = [value for name, value in found.items() if name.endswith(("size", "fontsize")) and "marker" not in name]
    assert len(sizes) == 6
    assert all(8 <= size <= 10 for size in sizes)
    assert found["grid.linewidth"] <= 0.6 < found["axes.linewidth"] <= 1.0 < found["lines.linewidth"] <= 2
    assert 0.2 < found["grid.alpha"] <= 0.5
    assert 4 <= found["lines.markersize"] <= 6
    assert (found["axes.grid"], found["axes.axisbelow"]) == (True, True)
    assert not any(found[name] for name in ("axes.spines.right", "axes.spines.top", "legend.frameon"))
    assert found["path.simplify"]
    assert found["path.simplify_threshold"] < 0.3  # of a pixel
    assert (found["svg.hashsalt"], found["svg.fonttype"]) == ("a/b", "none")


# --- drawings


def plain(figure_draw=None, **changes):
    def draw(evidence, figure):
        axes = figure.add_subplot()
        axes.plot([0.123456, 1.0], [0.0, 1.0])
        axes.set_xlabel("x (seconds)")
        axes.set_title("a title")

    return Artifact("fake/x", "X", draw=figure_draw or draw, **changes)


def test_the_line_at_the_foot_has_room_of_its_own_and_no_more(paper):
    drawn = drawing(replace(plain(), id="fake/table1", measures=paper.artifact("fake/table1").measures), Layered([]))
    figure = drawn.figure
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    (stamp,) = figure.texts
    (axes,) = figure.axes
    foot, panel = stamp.get_window_extent(renderer), axes.get_tightbbox(renderer)
    assert stamp.get_text() == "exact"
    assert 0 <= foot.y0 < foot.y1 <= panel.y0
    assert panel.y0 < 0.25 * figure.dpi
    assert panel.y1 <= figure.bbox.y1
    assert 0.9 * figure.bbox.x1 < foot.x1 <= figure.bbox.x1
    assert panel.x0 >= 0


def test_a_drawing_without_anything_to_say_has_no_line_at_its_foot():
    drawn = drawing(plain(), Layered([]))
    assert (drawn.stamp, list(drawn.figure.texts)) == ("", [])


def test_pictures_have_a_hundred_and_fifty_dots_an_inch_and_no_date():
    from PIL import Image

    drawn = drawing(plain(), Layered([]))
    png = Image.open(io.BytesIO(image(drawn, "png")))
    assert png.size == (960, 600)
    assert png.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
    assert b"CreationDate" not in image(drawn, "pdf")
    inline_svg(drawn)
    assert drawn.figure.dpi == 150
    with pytest.raises(ValueError, match="one of svg, png, pdf, not 'gif'"):
        image(drawn, "gif")


def test_a_drawing_as_text_has_paths_of_two_decimals_and_its_style_after_its_words():
    from xml.etree import ElementTree

    drawn = drawing(plain(), Layered([]))
    root = ElementTree.fromstring(image(drawn, "svg"))
    paths = [element.get("d") for element in root.iter() if element.get("d")]
    assert paths
    assert not [path for path in paths if re.search(r"\.\d{3}", path)]
    assert [child.tag for child in root][:3] == [f"{{{SVG}}}{name}" for name in ("title", "desc", "style")]


@pytest.mark.parametrize(
    ("needs", "told"),
    [
        ((), "no runs of 'a' at paper"),
        (("cpu-small", "nothing", "cpu-large"), "no runs of 'a' at paper"),
        (("cluster", "cpu-small", "imagenet"), "needs imagenet (no runs of 'a' at paper)"),
        (("cluster",), "needs cluster (no runs of 'a' at paper)"),
    ],
)
def test_the_least_that_a_machine_needs_for_any_of_it_is_told(monkeypatch, needs, told):
    words = ("says", "where", "holds", "smoke")
    claims = [Claim(f"fake/x/{need}", *words, need, "why") for need in needs]
    monkeypatch.setattr(module, "published", lambda name: [*claims, Claim("fake/y/it", *words, "gpu", "why")])
    artifact = plain(lambda evidence, figure: evidence.runs("a"))
    with pytest.raises(Missing) as raised:
        drawing(artifact, Layered([]), "paper")
    assert str(raised.value) == told


def test_what_lacks_at_each_profile_is_told_once(monkeypatch):
    monkeypatch.setattr(module, "published", lambda name: [])
    with pytest.raises(Missing) as raised:
        drawing(plain(lambda evidence, figure: evidence.runs("a")), Layered([]))
    assert str(raised.value) == "; ".join(f"no runs of 'a' at {name}" for name in ("paper", "reduced", "smoke"))


def test_a_file_is_written_whole_into_folders_that_it_makes(tmp_path):
    path = tmp_path / "a" / "b" / "c.txt"
    assert [write(path, data) for data in (b"one", b"two")] == [path, path]
    assert path.read_bytes() == b"two"
    with pytest.raises(StoreError, match=r"could not write .*c\.txt/d"):
        write(path / "d", b"")


def test_pictures_without_a_table_are_written_alone(paper, tmp_path):
    store, out = fill(tmp_path / "store", note=""), tmp_path / "out"
    lines = list(draw_selection(["fake/fig1", "fake/table1"], store, out, ["png"]))
    assert [path.name for path in out.iterdir()] == ["fake-fig1.png"]
    assert not any(".csv" in line for line in lines)
    (only,) = draw_selection(["fake/table1"], store, out, data="csv")
    assert only.endswith(f"; {out / 'fake-table1.csv'}")
