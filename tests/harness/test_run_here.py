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
from suite.commands.plan import Planned
from suite.commands.status import status
from suite.data.catalogue import DataError
from suite.papers import registry
from suite.papers.artifact import Artifact
from suite.runner.calibration import Calibration, keep
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
    registry.PAPERS["toy"] = registry.Registered(lambda: paper, toy.HERE)
    registry.paper.cache_clear()
    monkeypatch.chdir(tmp_path)
    for name in ("SGD_SUITE_DATA", "SGD_SUITE_CHECKPOINT_SECONDS", "TOY_RUNS", "TOY_SLEEP", "TOY_DOES"):
        monkeypatch.delenv(name, raising=False)


def run(*selectors: str, budget: float | None = None, **more: object) -> int:
    return command.run_selection(selectors, "smoke", Path("store"), Path("data"), "cpu", 1, budget, **more)


def last(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err.splitlines()[-1]


def test_a_run_that_needs_exactly_the_memory_there_is_is_computed(capsys: pytest.CaptureFixture[str]):
    assert run("toy/table1", memory=MEMORY) == 0
    assert last(capsys) == "3 runs stored, 0 already there, 0 left for later, 0 failed"
    assert run("toy/table1", memory=MEMORY - 1) == 0
    assert last(capsys) == "0 runs stored, 0 already there, 0 left for later, 0 failed"


def test_runs_are_ordered_by_what_this_machine_was_measured_to_take(monkeypatch: pytest.MonkeyPatch):
    """A calibration of the store multiplies what the order is made from, as ``plan`` shows it."""
    seen: list[float] = []

    def by_value(selection: object, planned: Sequence[Planned], *rest: object) -> list[list[Planned]]:
        seen.extend(item.seconds for item in planned)
        return [list(planned)]

    monkeypatch.setattr(command, "by_value", by_value)
    assert run("toy/table1", budget=60) == 0
    keep(Path("store"), Calibration(machine_class(), "cpu", {}, 1.0, host=7.0))
    assert run("toy/table1", budget=60) == 0
    assert seen[3:] == [7 * seconds for seconds in seen[:3]]


def test_what_a_run_has_planned_is_told_by_status_as_queued(capsys: pytest.CaptureFixture[str]):
    assert run("toy/table1", memory=MEMORY - 1) == 0
    assert last(capsys).endswith("0 failed, 3 beyond --memory")
    assert status(Path("store"))["counts"]["queued"] == 3


def test_one_plan_is_kept_once_in_whatever_order_it_was_asked_for():
    for selectors in (("toy/table1", "toy/fig1"), ("toy/fig1", "toy/table1")):
        run(*selectors, memory=1)
    assert len(list(Path("store/wanted").iterdir())) == 1


def test_a_part_without_its_data_stops_one_artifact_unless_there_is_a_budget(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(DataError, match="profile smoke needs the data set imagenet"):
        run("toy/mixed")
    assert not Path("store").exists()
    assert run("toy/mixed", budget=600.0) == 0
    assert last(capsys) == "3 runs stored, 0 already there, 0 left for later, 0 failed, 1 without their data"


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Of each run that ends: the line about it, and whether its time counts."""
    told: list[tuple[str, bool]] = []
    finish = lambda self, run_id, line, *, computed: told.append((line.replace(run_id, "ID"), computed))
    monkeypatch.setattr(command.Progress, "finish", finish)
    return told


def test_a_computed_run_has_a_line_and_one_that_was_there_has_none(finished: list[tuple[str, bool]]):
    run("toy/table1")
    assert finished == [("toy/table1 ID stored finished", True)] * 3
    del finished[:]
    run("toy/table1")
    assert finished == [("", False)] * 3


def test_a_failed_run_has_a_line(finished: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TOY_DOES", "refuse")
    assert run("toy/table1") == 1
    assert finished == [("toy/table1 ID failed", True)] * 3


def test_what_was_not_begun_in_time_is_counted_and_has_no_line(finished, capsys: pytest.CaptureFixture[str]):
    assert run("toy/table1", budget=1e-9) == 0
    assert finished == [("", False)] * 3
    told = capsys.readouterr().err.splitlines()
    assert told == ["3 runs not begun", "0 runs stored, 0 already there, 3 left for later, 0 failed"]


def test_one_run_that_is_let_go_of_is_taken_up_while_others_are_held(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Who waits, as everybody does unless told otherwise, waits for any of the runs and not for all."""
    store, held = Store(Path("store"), create=True), []
    for spec in toy.runs("smoke")["draws"][:2]:
        held.append(ExitStack())
        held[-1].enter_context(store.claim(spec.id))
    monkeypatch.setattr(
        command, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: held.pop().close())
    )
    assert run("toy/table1") == 0
    told = capsys.readouterr().err
    assert re.findall(r"waiting for (\d) runs", told) == ["2", "1"]
    assert told.splitlines()[-1] == "3 runs stored, 0 already there, 0 left for later, 0 failed"


def planned(**data: Sequence[str]) -> dict[str, Planned]:
    """Runs by name, with the data sets that each needs."""
    return {name: Planned(RunSpec("toy/draw", {"name": name}), 1.0, 1, tuple(data[name]), ()) for name in data}


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all data sets only ``here`` is here."""
    available = lambda name, root: (name == "here", f"{name} is nowhere")
    monkeypatch.setattr("suite.commands.plan.available", available)


@pytest.mark.usefixtures("absent")
def test_only_what_is_not_stored_can_lack_its_data(capsys: pytest.CaptureFixture[str]):
    plan = planned(a=["gone"], b=["gone"], c=["here"])
    stored = {plan["a"].spec.id}
    lacking = command.without_data([*plan.values()], [*plan.values()], stored, None, "smoke", leave_out=True)
    assert lacking == {plan["b"].spec.id}
    assert capsys.readouterr().err == "1 runs left out: gone is nowhere\n"


@pytest.mark.usefixtures("absent")
def test_data_that_this_part_needs_none_of_are_no_matter(capsys: pytest.CaptureFixture[str]):
    plan = planned(a=["gone"], b=["here"])
    lacking = command.without_data([*plan.values()], [plan["b"]], set(), None, "smoke", leave_out=False)
    assert (lacking, capsys.readouterr().err) == ({plan["a"].spec.id}, "")


@pytest.mark.usefixtures("absent")
@pytest.mark.parametrize(
    ("needs", "leave_out"), [({"a": ["gone"], "b": ["here"]}, False), ({"a": ["gone"], "b": ["gone"]}, True)]
)
def test_missing_data_stop_what_may_not_go_on_or_has_nothing_else(needs: dict[str, list[str]], leave_out: bool):
    plan = [*planned(**needs).values()]
    with pytest.raises(DataError, match="profile paper needs the data set gone: gone is nowhere"):
        command.without_data(plan, plan, set(), None, "paper", leave_out=leave_out)


@pytest.mark.usefixtures("absent")
def test_each_data_set_is_told_with_the_runs_that_lack_it(capsys: pytest.CaptureFixture[str]):
    plan = [*planned(a=["one"], b=["two", "here"], c=["two"], d=["here"]).values()]
    assert len(command.without_data(plan, plan, set(), None, "smoke", leave_out=True)) == 3
    assert capsys.readouterr().err == "1 runs left out: one is nowhere\n2 runs left out: two is nowhere\n"


def test_a_selection_without_runs_is_named_as_one_or_as_many():
    never = Artifact("toy/never", "Never", lambda profile: {})
    late = Artifact("toy/late", "Late", lambda profile: {"a": () if profile == "smoke" else toy.specs()})
    said = "nothing to run: {} has no runs at smoke, {}"
    assert command.no_runs([(toy.PAPER, [never])], "smoke") == said.format("toy/never", "nor at another")
    both = command.no_runs([(toy.PAPER, [never, late])], "smoke")
    assert both == said.format("the selection", "it has some at reduced and paper")


@pytest.mark.parametrize(("text", "seconds"), [("0", 0.0), ("0.5", 0.5), ("3600", 3600.0)])
def test_checkpoints_may_be_any_time_apart(text: str, seconds: float, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SGD_SUITE_CHECKPOINT_SECONDS", text)
    assert command.checkpoint_seconds() == seconds


@pytest.mark.parametrize("text", ["soon", "", "-1", "-0.1", "inf", "nan"])
def test_what_is_no_time_between_checkpoints_is_refused(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SGD_SUITE_CHECKPOINT_SECONDS", text)
    with pytest.raises(ValueError, match=r"must be a number of seconds, zero or more"):
        command.checkpoint_seconds()
