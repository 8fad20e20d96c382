"""Rudra's cost models and published claims, and the evidence that the project ships for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from paper_figures.rudra import plans, settings
from paper_figures.rudra.experiments import times as fits
from suite.experiment import Context
from suite.papers.catalogue import folders, paper, published
from suite.papers.measurement import measure_frame
from suite.report.drawing import drawing
from suite.runs.archive import Archive
from suite.spec import RunSpec

pytestmark = pytest.mark.evidence

RUDRA = paper("rudra")


@pytest.fixture(scope="module")
def evidence() -> Archive:
    return Archive(folders()[0] / "rudra.zip")


def exact_time(settings: dict[str, Any], seed: int, constants: Sequence[float], row: tuple[int, int, int]) -> float:
    """A time that constants and row determine: (a + b mu) (1 + c lambda) + d n."""
    a, b, c, d = constants
    n, batch, learners = row
    return (a + b * batch) * (1 + c * learners) + d * n


def test_a_row_left_out_is_predicted_by_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The last row's printed time is ten times what the law of the others says: its own fit does not see it."""
    monkeypatch.setattr(fits, "cifar_seconds", exact_time)
    law = (0.02, 0.004, 0.3, 0.002)
    rows = [(0, 128, 1), (1, 4, 30), (30, 4, 30), (10, 16, 10), (2, 128, 2), (1, 32, 30)]
    calibrate = [[*row, exact_time({}, 0, law, row)] for row in rows]
    calibrate[-1][-1] *= 10
    spec = RunSpec(
        "rudra/leave-one-out", {"model": "cifar", "calibrate": calibrate, "starts": [settings.CIFAR_START]}
    )
    found = fits.leave_one_out(spec, Context(tmp_path, {})).results
    assert found["rows"] == [list(row) for row in rows]
    (last,) = found["predicted"][-1]
    assert last == pytest.approx(exact_time({}, 0, law, rows[-1]), rel=1e-3)
    assert found["predicted"][0][0] != pytest.approx(calibrate[0][-1], rel=0.05)


def test_constants_in_specifications_are_those_that_calibration_finds(evidence: Archive) -> None:
    cifar = evidence.read(plans.cifar_times().id).results
    for name in ("per_call", "per_example", "crowding"):
        assert settings.CIFAR_SECONDS[name] == pytest.approx(cifar[name], rel=0.02)
    assert pytest.approx(cifar["update_seconds"], rel=0.02) == settings.CIFAR_UPDATE_SECONDS
    imagenet = evidence.read(plans.imagenet_times().id).results
    for name, rounded in settings.IMAGENET_CONSTANTS.items():
        assert rounded == pytest.approx(imagenet[name], rel=0.05)


def test_a_quantity_belongs_to_a_claim_or_an_answer(evidence: Archive) -> None:
    wanted = {(claim.artifact, claim.quantity) for claim in published("rudra")}
    answers = (folders()[0].parent / "answers.toml").read_text()
    wanted |= {tuple(name.rsplit("/", 1)) for name in re.findall(r"rudra/\w+/[\w-]+", answers)}
    for artifact in RUDRA.artifacts:
        measured = measure_frame(artifact, artifact.read(evidence, "smoke"))
        assert not measured.damaged
        assert {(artifact.id, name) for name in measured.found} <= wanted


@pytest.mark.parametrize("name", ["rudra-base", "rudra-adv", "rudra-adv-star"])
def test_shares_of_table_1_are_judged_by_a_fifth_of_the_ratio(name: str) -> None:
    (claim,) = (c for c in published("rudra") if c.id == f"rudra/table1/{name}")
    (share,) = claim.printed
    ratio = (100 - share) / share
    reach = [abs(100 / (1 + factor * ratio) - share) for factor in (0.8, 1.2)]
    assert claim.tolerance[0] == pytest.approx(min(reach), abs=0.005)


def test_a_figure_shows_every_printed_row_in_an_open_circle(evidence: Archive) -> None:
    drawn = drawing(RUDRA.artifact("rudra/table2"), evidence)
    assert drawn is not None
    *tables, diagonal = drawn.figure.axes
    assert diagonal.get_xlabel() == "printed test error (%)"
    for axes in tables:
        points = {str(each.get_label()): each for each in axes.collections}
        assert len(points["printed"].get_offsets()) == 23
        assert len(points["printed"].get_facecolors()) == 0
