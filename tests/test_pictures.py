"""Every artifact's page from the committed evidence, and its drawing against its last accepted structure.

``pytest tests/test_pictures.py --accept-pictures`` accepts what is drawn now; the files to commit are those of
``tests/pictures``.
"""

from __future__ import annotations

import io
import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from suite.claims.judge import PROFILES
from suite.papers.artifact import Artifact, Missing
from suite.papers.catalogue import PAPERS, ReadOnce, committed, entries, paper
from suite.papers.measurement import judge_artifacts, measure_frame
from suite.report import drawing
from suite.report import illustrations as pictures
from suite.report.site.build import Row
from suite.report.site.build import files as page_files
from suite.runs.archive import Layered, Runs
from suite.runs.run import Run

pytestmark = pytest.mark.evidence

ACCEPTED = Path(__file__).parent / "pictures"  # a file for each paper: artifact -> structure

ARTIFACTS = [artifact for name in PAPERS for artifact in paper(name).artifacts]
DRAWN = [artifact.id for artifact in ARTIFACTS if artifact.draw]


def load(which: str) -> dict[str, Any]:
    """The accepted structures of a paper; none where none were accepted."""
    file = ACCEPTED / f"{which}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def save(which: str, structures: dict[str, Any]) -> None:
    ACCEPTED.mkdir(exist_ok=True)
    text = json.dumps(structures, indent=1, ensure_ascii=False, sort_keys=True)
    (ACCEPTED / f"{which}.json").write_text(text + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def source() -> Runs:
    return ReadOnce(Layered(committed()))


def page(artifact: Artifact, source: Runs, patch: pytest.MonkeyPatch) -> tuple[dict[str, bytes], pictures.Structure]:
    """The files of an artifact's page, and the structure of its drawing, at its largest profile with runs."""
    claims = [claim for claim in entries(artifact.id.partition("/")[0]) if claim.artifact == artifact.id]
    told = {"published": sum(len(claim.printed) for claim in claims), "size": list(artifact.size)}  # inches
    seen = told | {"profile": None}
    stamped = drawing.stamped

    def note(drawn: drawing.Drawing) -> drawing.Drawing:
        """Keep the structure as it is drawn, before long curves are thinned."""
        seen.update({"profile": drawn.profile or PROFILES[-1], **pictures.structure(drawn.figure)})
        return stamped(drawn)

    patch.setattr(drawing, "stamped", note)
    which = paper(artifact.id.partition("/")[0])
    found = judge_artifacts(which, [artifact.id], None, source)
    files, fault = page_files(which, Row(artifact, found), source, None, None)
    assert not fault
    return files, seen


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda artifact: artifact.id)
def test_an_artifact_has_a_page_and_the_figure_that_was_last_accepted(artifact, source, request, monkeypatch):
    which, name = artifact.id.partition("/")[0], artifact.id
    files, seen = page(artifact, source, monkeypatch)
    html = files[f"{name}.html"].decode()
    assert "Not drawn" not in html
    assert "Traceback" not in html
    assert (f"{name}.svg" in files) == bool(seen["profile"])
    assert f"{name}.csv" not in files or len(pd.read_csv(io.BytesIO(files[f"{name}.csv"])))
    if artifact.draw is None:
        return
    accepted = load(which)
    if request.config.getoption("--accept-pictures"):
        save(which, accepted | {name: seen})
        return
    assert name in accepted, f"{name} has no accepted structure: look at it, then give --accept-pictures"
    changed = "\n  ".join(pictures.differences(accepted[name], seen))
    assert not changed, f"{name} is drawn otherwise:\n  {changed}\nIf that is meant: --accept-pictures"


class Without(Runs):
    """A source that lacks some of another one's runs."""

    def __init__(self, source: Runs, lacking: set[str]):
        self.source, self.lacking = source, lacking

    def ids(self) -> set[str]:
        return self.source.ids() - self.lacking

    def read(self, run_id: str) -> Run:
        if run_id in self.lacking:
            raise KeyError(run_id)
        return self.source.read(run_id)


@pytest.mark.parametrize("artifact", [each for each in ARTIFACTS if each.draw], ids=lambda artifact: artifact.id)
def test_a_group_that_was_not_run_hinders_neither_the_drawing_nor_the_other_numbers(artifact, source):
    for specs in artifact.runs("smoke").values():
        frame = artifact.read(Without(source, {spec.id for spec in specs}), "smoke")
        assert measure_frame(artifact, frame).damaged == []
        with suppress(Missing):  # says what it lacks
            artifact.draw(frame, Figure(figsize=artifact.size))


def test_nothing_is_accepted_that_is_no_longer_drawn():
    gone = {name for which in PAPERS for name in load(which)} - set(DRAWN)
    assert not gone, f"{gone} is drawn no more: take it out of tests/pictures"


def example() -> Figure:
    """Two panels with a series of ours, a printed point and named bars."""
    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.plot([1, 2, 3], [4, 5, 6], label="ours")
    left.plot([1, 3], [4, 7], "D", markerfacecolor="none", label="printed")
    left.set(xscale="log", xlabel="learners", ylabel="time (s)")
    left.legend()
    right.bar(["SMA", "EA-SGD"], [1, 2])
    right.text(0, 1, "1.0 x")
    return figure


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda left, right: (left.lines[0].remove(), left.legend()),
            ["panels 1, legend 2: 'printed' became None", "panels 1, lines: 2 became 1"],
        ),
        (lambda left, right: left.lines[1].set_data([1], [4]), ["panels 1, printed: 2 became 1"]),
        (lambda left, right: right.remove(), ["panels 2, lines: 0 became None"]),
        (lambda left, right: left.set_xlabel(""), ["panels 1, x, label: 'learners' became ''"]),
        (lambda left, right: left.set_xscale("linear"), ["panels 1, x, scale: 'log' became 'linear'"]),
        (lambda left, right: right.set_xticks([0], ["SMA"]), ["panels 2, x, ticks 2: 'EA-SGD' became None"]),
        (
            lambda left, right: left.set_ylim(0, 100),
            ["panels 1, y, from: 3.9 became 0.0", "panels 1, y, to: 7.2 became 100.0"],
        ),
        (
            lambda left, right: left.lines[1].set_data([1, 3], [4, math.nan]),
            ["panels 1, values 2, points: 2 became 1", "panels 1, values 2, y, to: 7.0 became 4.0"],
        ),
        (lambda left, right: right.texts[0].set_text("2.0 x"), ["panels 2, texts 1: '1.0 x' became '2.0 x'"]),
        (
            lambda left, right: left.lines[1].set_xdata([2, 3]),
            ["panels 1, values 2, x, from: 1.0 became 2.0", "panels 1, values 2, x, mean: 2.0 became 2.5"],
        ),
        (
            lambda left, right: right.patches[0].set_height(1.5),
            ["panels 2, values 1, y, from: 1.0 became 1.5", "panels 2, values 1, y, mean: 1.5 became 1.75"],
        ),
    ],
)
def test_what_a_figure_loses_is_named(change, said):
    accepted, figure = pictures.structure(example()), example()
    assert list(pictures.differences(accepted, pictures.structure(figure))) == []
    change(*figure.axes)
    found = list(pictures.differences(accepted, pictures.structure(figure)))
    assert [line for line in said if line not in found] == [], found


def test_an_extent_may_fall_to_either_side_of_its_rounding():
    accepted = {"from": 0.0, "to": 1.2}
    assert not list(pictures.differences(accepted, {"from": 0.0, "to": 1.3}))
    assert list(pictures.differences(accepted, {"from": 0.0, "to": 1.4})) == ["to: 1.2 became 1.4"]
