"""The roofline and the growth of cost are drawn from a document, and shown in the report where there is one."""

from __future__ import annotations

import pytest

from benchmarks.document import Book, entry
from suite.report import speed, speed_figures
from suite.report.drawing import image

FLOOR = {"flops_per_second": 1e9, "bytes_per_second": 1e9, "copies": [[1e9, 1e9]]}


def sides(seconds):
    return {
        "ours": {"seconds": [seconds] * 3, "processor": None, "threads": 1},
        "plain, 1 thread": {"seconds": [2 * seconds] * 3, "processor": None, "threads": 1},
    }


@pytest.fixture
def document(tmp_path):
    book = Book(tmp_path / "benchmark.json", "cpu")
    book.add_floor("1", FLOOR)
    book.add("LeNet <b>", entry("training", sides(1.0), examples=16, flops=5e8, bytes=1e7, gradients=1))
    for k in (1, 2, 4):
        facts = {"examples": k, "flops": 1e6, "bytes": 1e6, "gradients": k, "memory_per_replica_bytes": 100}
        for axis in ("replicas", "parameters"):
            book.add(f"{axis} {k}", entry("growth", sides(k), axis=[axis, k], **facts))
    return book.document


def test_the_roofline_lies_where_the_numbers_say(document):
    drawn = speed_figures.roofline(document)
    (axes,) = drawn.figure.axes
    by_label = {line.get_label(): line for line in axes.get_lines()}
    assert list(by_label) == ["limit of 1 thread", "ours", "plain loop, fastest form"]
    assert list(by_label["ours"].get_xdata()) == [50.0]
    assert list(by_label["ours"].get_ydata()) == [5e8]
    assert list(by_label["plain loop, fastest form"].get_ydata()) == [2.5e8]
    assert max(by_label["limit of 1 thread"].get_ydata()) == 1e9
    assert "50% to 50%" in drawn.artifact.alt


def test_growth_is_seconds_per_gradient_by_what_grows(document):
    drawn = speed_figures.growth(document)
    replicas = drawn.figure.axes[0]
    ours = replicas.containers[0]
    assert list(ours.lines[0].get_xdata()) == [1.0, 2.0, 4.0]
    assert list(ours.lines[0].get_ydata()) == [1.0, 1.0, 1.0]  # k seconds for k gradients
    assert speed.per_gradient(document["workloads"]["replicas 4"], "ours") == [1.0, 1.0, 1.0]
    *each, kept = [axes.get_xlabel() for axes in drawn.figure.axes]
    assert each == [label for _, label in speed_figures.AXES]
    assert kept == dict(speed_figures.AXES)["parameters"]
    drawn_in = [axes for axes in drawn.figure.axes if axes.lines]
    assert {(axes.get_xscale(), axes.get_yscale()) for axes in drawn_in} == {("log", "log")}


def test_the_report_shows_every_committed_machine(document, monkeypatch):
    monkeypatch.setattr(speed, "committed", lambda: [document])
    (shown,) = speed_figures.measured_speed()
    assert [drawn.artifact.title for drawn in shown["figures"]] == [
        "Attained against the limit",
        "How the cost of a gradient grows",
    ]
    assert all(b"<svg" in image(drawn, "svg") for drawn in shown["figures"])
    assert [row[0] for row in shown["rows"]] == ["LeNet <b>"]
