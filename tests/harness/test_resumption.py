"""A session takes up an earlier one's work on a run, or says why it cannot; odd notes beside it hinder nobody."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import toy

from suite.commands.status import status
from suite.experiment import Context
from suite.runner import autotune
from suite.runner.cost import TRAIN
from suite.runner.execute import RunnerConfig, execute, with_build
from suite.runs import environment
from suite.runs.comparison import relation
from suite.runs.run import Outcome, Run, encode
from suite.runs.store import Store
from suite.spec import RunSpec
from suite.training import checkpoint_file
from suite.training.machine_code import NativeError
from suite.training.numerics import choose, record, recorded

SPEC = toy.digits(updates=4, evaluate={"every": 2})


def compute(store: Path, *specs: RunSpec):
    return [execute(spec, lambda name: TRAIN, RunnerConfig(store)) for spec in specs or (SPEC,)]


def result(store: Path) -> str:
    return Store(store).read(SPEC.id).results["weights_digest"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the run comes to without a break."""
    store = tmp_path_factory.mktemp("whole") / "store"
    compute(store)
    return result(store)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which the run stopped after its third update."""
    store = tmp_path_factory.mktemp("cut") / "store"
    looks = iter((False,) * 2 + (True,) * 10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Context, "late", property(lambda context: next(looks)))
        assert [report.state for report in compute(store)] == ["late"]
    return store


@pytest.fixture
def cut(origin: Path, tmp_path: Path) -> Path:
    """A copy of that store."""
    return shutil.copytree(origin, tmp_path / "store")


def folder_of(store: Path) -> Path:
    (folder,) = (store / "partial" / SPEC.id).iterdir()
    return folder


def test_the_same_code_goes_on_without_a_word(cut: Path, whole: str):
    (report,) = compute(cut)
    assert (report.state, report.why, result(cut)) == ("stored", "", whole)


def test_other_code_begins_anew_and_says_what_it_threw_away(cut: Path, whole: str, monkeypatch):
    folder = folder_of(cut)
    monkeypatch.setattr(environment, "code_digest", lambda: "another")
    (report,) = compute(cut)
    assert (report.state, result(cut)) == ("stored", whole)
    assert not folder.exists()
    assert "it was begun by other code" in report.why
    assert "% of its updates" in report.why
    assert Store(cut).read(SPEC.id).environment["code"] == "another"


def test_what_was_lost_is_told_by_a_session_that_ends_early_too(cut: Path, monkeypatch):
    (folder_of(cut) / checkpoint_file.NAME).write_bytes(b"torn")
    with monkeypatch.context() as patch:
        patch.setattr(Context, "late", property(lambda context: True))
        (report,) = compute(cut)
    assert report.state == "late"
    assert report.why.startswith("its checkpoint is damaged, so it begins anew; lost: ")


NOTES = ["begun.json", "execution.json", "progress.json", "spent.json"]
ODD = {
    "empty": b"",
    "no UTF-8": b"\xff\xfe",
    "other types": b'{"threads": "one", "code": 7, "fraction": "half", "processor_seconds": []}',
    "a folder": None,
}


@pytest.mark.parametrize("name", NOTES)
@pytest.mark.parametrize("content", ODD.values(), ids=ODD)
def test_an_odd_note_hinders_neither_its_run_nor_the_others(cut: Path, whole: str, name: str, content: bytes | None):
    """None stands for a folder of the note's name."""
    path = folder_of(cut) / name
    path.unlink()
    path.write_bytes(content) if content is not None else path.mkdir()
    assert status(cut)["runs"][SPEC.id]["state"] in ("interrupted", "failed")
    other = replace(SPEC, seed=2)
    assert [report.state for report in compute(cut, SPEC, other)] == ["stored", "stored"]
    assert result(cut) == whole


@pytest.mark.parametrize(
    "change",
    [
        {"path": "diagonal"},
        {"precision": "float8"},
        {"threads": 0},
        {"threads": True},
        {"path": "native"},
        {"path": "native", "build": "b", "builds": 7},
        {"path": "native", "build": "b", "builds": [7]},
    ],
    ids=str,
)
def test_a_record_of_no_execution_is_none(tmp_path: Path, change: dict):
    record(tmp_path, choose(SPEC, "cpu", 1))
    assert recorded(tmp_path) == choose(SPEC, "cpu", 1)
    record(tmp_path, choose(SPEC, "cpu", 1) | change)
    assert recorded(tmp_path) is None


def test_an_execution_is_chosen_once(cut: Path, monkeypatch):
    monkeypatch.setattr("suite.runner.execute.decide", lambda *given: pytest.fail("chosen again"))
    record(folder_of(cut), choose(SPEC, "cpu", 1) | {"path": "vectorised"})
    assert [report.state for report in compute(cut, SPEC)] == ["stored"]
    assert Store(cut).read(SPEC.id).environment["execution"]["path"] == "vectorised"


NATIVE = choose(SPEC, "cpu", 1) | {"path": "native", "build": "first"}


def build(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(autotune, "native_build", lambda spec, execution: name)


def test_a_run_names_every_build_that_it_went_on_with(cut: Path, monkeypatch):
    folder, execution = folder_of(cut), NATIVE
    record(folder, execution)
    for name, builds in (("second", ["first", "second"]), ("first", ["first", "second", "first"])):
        build(monkeypatch, name)
        execution, why = with_build(folder, SPEC, execution)
        assert (execution["build"], execution["builds"]) == (name, builds)
        assert "first" in why
        assert "second" in why
        assert recorded(folder) == execution
        assert with_build(folder, SPEC, execution) == (execution, "")


def test_a_run_without_a_checkpoint_takes_the_build_that_is_there(tmp_path: Path, monkeypatch):
    record(tmp_path, NATIVE)
    build(monkeypatch, "second")
    expected = NATIVE | {"build": "second"}
    assert with_build(tmp_path, SPEC, NATIVE) == (expected, "")
    assert recorded(tmp_path) == expected


def test_without_a_native_step_the_run_waits_and_names_the_way_out(cut: Path, monkeypatch):
    def none(spec: RunSpec, execution: object) -> str:
        raise NativeError("there is no C++ compiler here")

    record(folder_of(cut), NATIVE)
    monkeypatch.setattr(autotune, "native_build", none)
    (report,) = compute(cut)
    assert report.state == "failed"
    assert "there is no C++ compiler here" in report.why
    assert "run it where there is one, or remove" in report.why
    assert checkpoint_file.read(folder_of(cut)) is not None


def version(value: float, **execution: object) -> Run:
    environment = {"code": "c", "versions": {}, "execution": execution, "device": {}, "machine": {"cpu": "p"}}
    return Run(SPEC.id, encode(SPEC, environment, Outcome("finished", {"test_loss": value})))


@pytest.mark.parametrize("value", [0.5, 0.25])
def test_runs_of_several_builds_are_never_compared_to_the_bit(value: float):
    one = {"path": "native", "build": "b", "builds": ["a", "b"]}
    kind = relation(version(0.5, **one), version(value, **one, reason="measured"), timed=False)
    assert kind == ("confirmed" if value == 0.5 else "other execution")
    alone = {"path": "native", "build": "b"}
    kind = relation(version(0.5, **alone), version(value, **alone, reason="measured"), timed=False)
    assert kind == ("timed again" if value == 0.5 else "contested")
