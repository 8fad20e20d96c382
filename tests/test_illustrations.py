"""The pictures of the documentation: each says in its file what it shows; one that shows something else is stale."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from fake_paper import fill, registered
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from suite.commands import refresh
from suite.papers.catalogue import committed
from suite.report import illustrations
from suite.report.illustrations import Illustration, noted, unmentioned, with_note
from suite.runs.archive import Layered
from suite.runs.environment import ROOT


@pytest.fixture
def root(tmp_path):
    """A project whose README shows a figure, and beside it a picture that no page shows."""
    (tmp_path / "docs" / "images").mkdir(parents=True)
    (tmp_path / "docs" / "page.md").write_text("no picture")
    (tmp_path / "README.md").write_text("![a figure](docs/images/fake-fig1.png)")
    (tmp_path / "docs" / "images" / "old.png").write_bytes(b"")
    return tmp_path


@pytest.fixture
def source(tmp_path):
    (tmp_path / "home").mkdir()
    with registered(tmp_path / "home"):
        yield fill(tmp_path / "store", note="untuned")


def png(colour="red") -> bytes:
    figure = Figure(figsize=(1, 1), dpi=30, facecolor=colour)
    FigureCanvasAgg(figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def test_a_picture_carries_what_it_shows(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(with_note(png(), "ten points, über allen"))
    assert noted(path) == "ten points, über allen"
    path.write_bytes(png())
    assert noted(path) == ""


def test_a_figure_is_drawn_once_and_is_stale_when_its_evidence_draws_otherwise(root, source, monkeypatch):
    (picture,) = illustrations.illustrations(root, source)
    assert (picture.path.name, picture.stale) == ("fake-fig1.png", "absent")
    picture.write()
    (again,) = illustrations.illustrations(root, source)
    assert again.stale == ""
    plain = illustrations.structure
    moved = lambda figure: plain(figure) | {"texts": ["another verdict"]}
    monkeypatch.setattr(illustrations, "structure", moved)
    (other,) = illustrations.illustrations(root, source)
    assert other.stale == "texts 1: 'smoke profile · stand-in · 3 runs' became 'another verdict'"


def test_colours_markers_and_styles_are_part_of_what_is_drawn():
    def marks(**look):
        figure = Figure()
        axes = figure.subplots()
        axes.plot([1, 2], [1, 2], **look)
        axes.bar([1], [1], color="green")
        return illustrations.marks(figure)

    plain = marks(color="red", marker="o")
    assert len(plain) == 2
    assert all(marks(**look) != plain for look in ({"color": "blue", "marker": "o"}, {"color": "red", "marker": "s"}))


def test_refresh_draws_what_is_stale_and_deletes_what_nobody_shows(root, monkeypatch):
    images = root / "docs" / "images"
    (root / "README.md").write_text("![a](docs/images/a.png)")
    made = [Illustration(images / "a.png", "{}", png)]
    monkeypatch.setattr(illustrations, "illustrations", lambda root, source: made)
    said = refresh.pictures(root, check=True)
    assert [path.name for path in images.iterdir()] == ["old.png"]
    assert [line.rpartition("/")[2].partition(":")[0] for line in said] == ["a.png", "old.png"]
    refresh.pictures(root, check=False)
    assert [path.name for path in images.iterdir()] == ["a.png"]
    assert unmentioned(root) == []


@pytest.mark.evidence
def test_every_committed_picture_shows_what_would_be_drawn_today():
    """What ``sgd-suite refresh --check`` compares; ``sgd-suite refresh`` draws what is stale."""
    found = list(illustrations.illustrations(ROOT, Layered(committed())))
    assert [(picture.path.name, why) for picture in found if (why := picture.stale)] == []
    assert unmentioned(ROOT) == []
    assert all(Path(picture.path).stat().st_size < 200_000 for picture in found)
