"""``run`` in this process: what is chosen, waited for, left out and told."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import toy

from suite.commands import run as command
from suite.commands.planning import Planned, Stage
from suite.commands.status import status
from suite.data.catalogue import DataError
from suite.papers import catalogue
from suite.papers.artifact import Artifact
from suite.papers.catalogue import select
from suite.runner.calibration import Calibration, keep
from suite.runner.progress import Progress
from suite.runner.trackers import TRACKERS
from suite.runs.environment import machine_class
from suite.runs.store import Store
from suite.spec import RunSpec

MEMORY = 300_000_000  # bytes that a run of the toy paper needs
MIXED = Artifact("toy/mixed", "Draws, and more of ImageNet", lambda profile: {"draws": toy.specs(), "more": MORE})
MORE = (RunSpec("toy/needs"),)


@pytest.fixture(autouse=True)
def here(papers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy paper with an artifact of which a part needs data that are nowhere."""
    paper = replace(toy.PAPER, artifacts=(*toy.PAPER.artifacts, MIXED))
    catalogue.PAPERS["toy"] = catalogue.Registered(lambda: paper, toy.HERE)
    catalogue.paper.cache_clear()
    monkeypatch.chdir(tmp_path)
    for name in ("SGD_SUITE_DATA", "SGD_SUITE_CHECKPOINT_SECONDS", "TOY_RUNS", "TOY_SLEEP", "TOY_DOES"):
        monkeypatch.delenv(name, raising=False)


def run(*selectors: str, budget: float | None = None, **more: object) -> int:
    options = command.RunOptions("smoke", Path("store"), Path("data"), "cpu", 1, budget, **more)
    return command.run_artifacts(select(selectors), selectors, options)


def last(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err.splitlines()[-1]


def test_runs_are_ordered_by_what_this_machine_was_measured_to_take(monkeypatch: pytest.MonkeyPatch):
    """A calibration of the store multiplies what the order is made from, as ``plan`` shows it."""
    seen: list[float] = []

    def ranked(selection: object, planned: Sequence[Planned], *rest: object) -> list[Stage]:
        seen.extend(item.seconds for item in planned)
        return [Stage("toy/table1", (), tuple(planned))]

    monkeypatch.setattr(command.planning, "ranked", ranked)
    assert run("toy/table1", budget=60) == 0
    keep(Path("store"), Calibration(machine_class(), "cpu", {}, 1.0, host=7.0))
    assert run("toy/table1", budget=60) == 0
    assert seen[3:] == [7 * seconds for seconds in seen[:3]]


def test_a_training_that_could_not_be_is_refused_before_another_is_computed():
    averaged = lambda alpha: toy.digits(1, workers=2, algorithm={"name": "crossbow", "alpha": alpha})
    runs = {f"alpha {alpha}": (averaged(alpha),) for alpha in (0.5, 7.0)}
    options = command.RunOptions("smoke", Path("store"), device="cpu")
    with pytest.raises(ValueError, match=r"toy/typed, 'alpha 7.0': crossbow: alpha=7.0 must lie in"):
        command.run_artifacts([(toy.PAPER, [Artifact("toy/typed", "", lambda profile: runs)])], [], options)
    assert not Path("store").exists()


def test_what_a_run_has_planned_is_told_by_status_as_queued(capsys: pytest.CaptureFixture[str]):
    assert run("toy/table1", memory=MEMORY - 1) == 0
    assert last(capsys).endswith("0 failed, 3 beyond --memory")
    assert status(Path("store"))["counts"]["queued"] == 3


def test_runs_that_the_suite_comes_with_are_left_out_where_only_missing_ones_are_wanted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    shipped = {spec.id for spec in toy.runs("smoke")["draws"]}
    part = set(sorted(shipped)[1:])
    monkeypatch.setattr(command.planning, "committed_ids", lambda: part)
    assert run("toy/table1", missing=True) == 0
    said = f"1 run stored, 0 already there, 0 left for later, 0 failed, {len(part)} come with the suite"
    assert last(capsys) == said


def test_a_part_without_its_data_stops_one_artifact_unless_there_is_a_budget(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(DataError, match="profile smoke needs the data set imagenet"):
        run("toy/mixed")
    assert not Path("store").exists()
    assert run("toy/mixed", budget=600.0) == 0
    assert last(capsys) == "3 runs stored, 0 already there, 0 left for later, 0 failed, 1 without their data"


def test_one_run_that_is_let_go_of_is_taken_up_while_others_are_held(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Who waits, as everybody does unless told otherwise, waits for any of the runs and not for all."""
    store, held, shown = Store(Path("store"), create=True), [], []
    for spec in toy.runs("smoke")["draws"][:2]:
        held.append(ExitStack())
        held[-1].enter_context(store.claim(spec.id))

    def sleep(seconds: float) -> None:
        shares.append(shown[0].done)
        held.pop().close()

    shares = list[float]()
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    monkeypatch.setattr(command, "Progress", lambda *planned: shown.append(Progress(*planned)) or shown[0])
    assert run("toy/table1") == 0
    assert shares[0] < shares[1] < 1  # what others compute is not done
    told = capsys.readouterr().err
    assert re.findall(r"waiting for (\d) runs? that", told) == ["2", "1"]
    assert told.splitlines()[-1] == "3 runs stored, 0 already there, 0 left for later, 0 failed"


def test_a_tracker_that_fails_ends_no_session(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setitem(TRACKERS, "mine", lambda *told: 1 / 0)
    assert run("toy/table1", track="mine") == 0
    told = capsys.readouterr().err
    assert told.count("mine was not told (ZeroDivisionError: division by zero)") == 3
    assert told.splitlines()[-1].startswith("3 runs stored")


@pytest.mark.parametrize("text", ["soon", "", "-1", "-0.1", "inf", "nan"])
def test_what_is_no_time_between_checkpoints_is_refused(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SGD_SUITE_CHECKPOINT_SECONDS", text)
    with pytest.raises(ValueError, match=r"must be a number of seconds, zero or more"):
        command.checkpoint_seconds()
