"""The roofline and the growth of cost are drawn from a document, and shown in the report where there is one."""

from __future__ import annotations

import pytest

from benchmarks.document import Book, entry
from suite.report import speed, speed_figures

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


def test_growth_compares_the_fastest_of_both_sides(document):
    """Not one thread of ours with two of the plain loop."""
    sides = document["workloads"]["replicas 2"]["sides"]
    one = sides["ours"]
    sides["ours, 2 threads"] = {**one, "seconds": [s / 2 for s in one["seconds"]], "threads": 2, "processor": None}
    ours = speed_figures.growth(document).figure.axes[0].containers[0]
    assert list(ours.lines[0].get_ydata()) == [1.0, 0.5, 1.0]


def test_updates_against_the_batch_are_lines_of_the_fastest_forms(document):
    for m in (1, 16):
        made = {"ours": m / 1e3, "plain, 1 thread": m / 100, "plain, 2 threads": m / 200, "plain fused": m / 250}
        made |= {"jax im2col, 1 thread": m / 400, "jax conv, 1 thread": m / 10}
        timed = {name: {"seconds": [s, s, s], "processor": None, "threads": 1} for name, s in made.items()}
        timed["compiled"] = {"not_available": "no compiler"}
        facts = {"examples": m, "flops": 1e5 * m, "bytes": 1.0, "gradients": 1, "axis": ["batch", m]}
        document["workloads"][f"batch {m}"] = entry("growth", timed, **facts)
    drawn = speed_figures.against_batch(document)
    (axes,) = drawn.figure.axes
    shown = {text.get_text() for text in axes.get_legend().get_texts()}
    assert shown == {"plain loop", "plain loop, fastest other form", "JAX, fastest form", "ours", "limit of ours"}
    assert "compiled" not in drawn.artifact.alt
    lines = sorted(tuple(round(y, 6) for y in line.get_ydata()) for line in axes.get_lines() if len(line.get_xdata()))
    assert lines == [(0.1, 1.6), (1.0, 16.0), (2.5, 40.0), (4.0, 64.0), (5.0, 80.0)]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "16"]


def test_growth_is_drawn_from_what_there_is(document):
    document["workloads"] = {name: w for name, w in document["workloads"].items() if not name.startswith("param")}
    assert speed_figures.growth(document) is not None


def test_nothing_measured_draws_nothing(document):
    document["workloads"] = {}
    assert speed_figures.roofline(document) is None
    assert speed_figures.against_batch(document) is None
    assert speed_figures.growth(document) is None


def test_the_report_shows_every_committed_machine(document, monkeypatch):
    monkeypatch.setattr(speed, "committed", lambda: [document])
    (shown,) = speed_figures.measured_speed()
    assert [figure.title for figure in shown.figures] == [
        "Attained against the limit",
        "How the cost of a gradient grows",
    ]
    assert all(figure.svg.startswith("<svg") for figure in shown.figures)
    assert [row[0] for row in shown.rows] == ["LeNet <b>"]


def test_time_lost_to_other_machines_is_said_where_there_was_any(document):
    workload = next(iter(document["workloads"].values()))
    assert "other virtual machines" not in speed.title(document)
    for median, said in ((0.2, False), (12.4, True)):
        workload["telemetry"] = {"cpu": {"stolen_percent": {"low": 0.0, "median": median, "high": 20.0}}}
        assert ("up to 12% of the processors' time" in speed.title(document)) == said
