"""From a specification to a stored run: what is computed, what is not, and what becomes of failures."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
import toy

from suite.commands.status import status
from suite.experiment import Context, Experiment, Outcome
from suite.papers.catalogue import experiment
from suite.runner import execute as module
from suite.runner import status_file
from suite.runner.autotune import alternating
from suite.runner.cost import TRAIN
from suite.runner.execute import RunnerConfig, execute, execute_all
from suite.runner.workers import NOT_BEGUN
from suite.runs import environment
from suite.runs.store import Store
from suite.spec import RunSpec
from suite.training import checkpoint

pytestmark = pytest.mark.usefixtures("papers")


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """How often the experiment's body has run."""
    monkeypatch.setenv("TOY_LOG", str(tmp_path / "log"))
    return lambda: len((tmp_path / "log").read_text().splitlines()) if (tmp_path / "log").exists() else 0


def draw(**settings: object) -> RunSpec:
    return RunSpec("toy/draw", settings)


def test_a_run_is_computed_once(around: RunnerConfig, counted):
    spec = draw()
    assert execute(spec, experiment, around).state == "stored"
    assert execute(spec, experiment, around).state == "present"
    assert counted() == 1
    run = Store(around.store).read(spec.id)
    assert run.environment["code"] == environment.code_digest()
    assert datetime.fromisoformat(run.environment["started"]).tzinfo is not None
    assert run.environment["execution"]["threads"] == 1
    assert {"machine", "versions", "device", "revision", "dirty"} <= set(run.environment)
    assert list((around.store / "partial").iterdir()) == []


def test_what_an_interrupted_session_left_of_a_run_that_is_stored_is_removed(around: RunnerConfig):
    spec = draw()
    execute(spec, experiment, around)
    left = Store(around.store).partial(spec.id) / "left"
    left.mkdir(parents=True)
    (left / "checkpoint").touch()
    assert execute(spec, experiment, around).state == "present"
    assert list((around.store / "partial").iterdir()) == []


def test_a_damaged_run_is_named_moved_aside_and_computed_again(around: RunnerConfig, counted):
    spec = draw()
    execute(spec, experiment, around)
    before = Store(around.store).read(spec.id).curve("draws")
    (around.store / "runs" / spec.id / "draws.parquet").write_bytes(b"PAR1")
    report = execute(spec, experiment, around)
    assert report.state == "stored"
    assert spec.id in report.why
    assert "draws.parquet" in report.why
    assert counted() == 2
    assert Store(around.store).read(spec.id).curve("draws").equals(before)
    assert len(list((around.store / "refused").iterdir())) == 1


def test_nan_ends_as_diverged_and_not_as_a_failure(around: RunnerConfig):
    spec = draw(does="diverge")
    report = execute(spec, experiment, around)
    assert (report.state, report.status) == ("stored", "diverged")
    assert execute(spec, experiment, around).status == "diverged"


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("raise", "KeyError: 'no such thing'"),
        ("refuse", "size=7 must be even; use 6 or 8"),
        ("exit", "its code called sys.exit('no data')"),
    ],
)
def test_a_failing_run_says_why_keeps_its_traceback_and_lets_others_go_on(around: RunnerConfig, does: str, why: str):
    specs = [draw(does=does), draw(value=1.0)]
    reports = {r.spec.id: r for r in execute_all(specs, experiment, around)}
    failed = reports[specs[0].id]
    assert failed.state == "failed"
    assert failed.why.startswith(why)
    (failure,) = (around.store / "partial" / specs[0].id).glob("*/failure.txt")
    assert "in body" in failure.read_text()
    assert reports[specs[1].id].state == "stored"
    assert Store(around.store).ids() == {specs[1].id}


def test_a_run_that_failed_and_is_computed_again_is_running(around: RunnerConfig):
    """Its first failure is past: ``status`` tells of a later one, or of none."""
    spec, told = draw(does="raise"), list[str]()
    again = lambda spec, context: told.append(status(around.store)["runs"][spec.id]["state"]) or Outcome("finished")
    assert execute(spec, experiment, around).state == "failed"
    assert status(around.store)["counts"]["failed"] == 1
    assert execute(spec, lambda name: Experiment(lambda: again), around).state == "stored"
    assert told == ["running"]


def test_a_run_that_another_holds_is_left_alone(around: RunnerConfig, counted):
    spec = draw()
    with Store(around.store, create=True).claim(spec.id):
        assert execute(spec, experiment, around).state == "busy"
    assert counted() == 0


def test_processor_seconds_of_all_sessions_are_counted(around: RunnerConfig, monkeypatch: pytest.MonkeyPatch):
    """By a processor on which 10 seconds pass between two looks: a body that is interrupted, then one that ends."""
    looks = itertools.count(step=10.0)
    monkeypatch.setattr(module, "processor_seconds", lambda: next(looks))
    spec = draw(does="late")
    assert execute(spec, experiment, replace(around, deadline=time.monotonic() + 60)).state == "late"
    assert execute(spec, experiment, around).state == "stored"
    assert Store(around.store).read(spec.id).environment["processor_seconds"] == 20.0
    execute(draw(value=2.0), experiment, around)
    assert Store(around.store).read(draw(value=2.0).id).environment["processor_seconds"] == 10.0


@pytest.mark.parametrize(("passes", "factor"), [(10.0, None), (40.0, 0.5)])
def test_a_long_run_records_how_fast_its_host_was(
    around: RunnerConfig, monkeypatch: pytest.MonkeyPatch, passes: float, factor: float | None
):
    looks = itertools.count(step=passes)
    monkeypatch.setattr(module, "processor_seconds", lambda: next(looks))
    monkeypatch.setattr(module, "host_seconds", lambda: 0.5)
    execute(draw(), experiment, around)
    assert Store(around.store).read(draw().id).environment.get("host_factor") == factor


def test_what_was_spent_on_a_run_adds_up(tmp_path: Path):
    for seconds in (6.0, 1.0):
        status_file.charge(tmp_path, seconds)
    assert status_file.charged_seconds(tmp_path) == 7.0
    (tmp_path / status_file.CPU_TIME_FILE).write_text("{")
    status_file.charge(tmp_path, 1.0)
    status_file.charge(tmp_path / "gone", 1.0)
    assert [status_file.charged_seconds(folder) for folder in (tmp_path, tmp_path / "gone")] == [1.0, 0.0]


def test_out_of_time_is_no_failure(around: RunnerConfig, counted):
    late = RunnerConfig(around.store, deadline=time.monotonic() - 1)
    assert execute(draw(), experiment, late).state == "late"
    assert counted() == 0
    soon = RunnerConfig(around.store, deadline=time.monotonic() + 60)
    assert execute(draw(does="late"), experiment, soon).state == "late"
    assert execute(draw(does="late"), experiment, around).state == "stored"


def finished(around: RunnerConfig, spec: RunSpec):
    run = Store(around.store).read(spec.id)
    evaluations = run.curve("evaluations").drop(columns="seconds")  # the only column that is not a function of spec
    return run.results["weights_digest"], run.curve("updates"), evaluations


def interrupted(around: RunnerConfig, spec: RunSpec) -> Path:
    """The partial folder of a training run stopped after its first checkpoint."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Context, "late", property(lambda context: True))
        report = execute(spec, experiment, around)
    assert report.state == "late"
    (folder,) = (around.store / "partial" / spec.id).iterdir()
    return folder


def same(one, other) -> bool:
    return one[0] == other[0] and one[1].equals(other[1]) and one[2].equals(other[2])


SPOILED = {
    "truncated": lambda f: f.write_bytes(f.read_bytes()[:-10]),
    "emptied": lambda f: f.write_bytes(b""),
    "edited": lambda f: f.write_bytes(f.read_bytes()[:-10] + b"x" + f.read_bytes()[-9:]),
    "a folder": lambda f: (f.unlink(), f.mkdir()),
}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory):
    """An undisturbed training run."""
    around = RunnerConfig(tmp_path_factory.mktemp("reference") / "store")
    spec = toy.digits(updates=80)
    report = execute(spec, lambda name: TRAIN, around)
    assert report.state == "stored", report.why
    return spec, finished(around, spec)


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_a_spoiled_checkpoint_means_starting_again_to_the_same_bits(around: RunnerConfig, reference, spoil):
    spec, expected = reference
    spoil(interrupted(around, spec) / checkpoint.NAME)
    report = execute(spec, experiment, around)
    assert report.state == "stored"
    assert report.why.startswith("its checkpoint is damaged, so it begins anew; lost: ")
    assert same(finished(around, spec), expected)


@pytest.mark.parametrize(("seconds", "written"), [(0.0, 6), (3600.0, 0)])
def test_a_checkpoint_is_written_when_it_is_due_and_not_before(
    around: RunnerConfig, monkeypatch: pytest.MonkeyPatch, seconds: float, written: int
):
    saved, save, told = [], checkpoint.save, list[float]()
    monkeypatch.setattr(checkpoint, "save", lambda *given: (saved.append(given), save(*given)))
    spec = toy.digits(updates=6)
    assert execute(spec, experiment, replace(around, checkpoint_seconds=seconds), told.append).state == "stored"
    assert len(saved) == written
    assert (1 / 6 in told) == bool(written)  # a checkpoint says how far the run is, where no test does
    evaluations = Store(around.store).read(spec.id).curve("evaluations")
    assert evaluations["update"].tolist() == [0, 6]  # the end too, which is not on the grid


def test_a_budget_that_ends_while_the_execution_is_measured_leaves_nothing_begun(around: RunnerConfig):
    spec, taken = toy.digits(), []

    def measure(spec: RunSpec, execution: object) -> dict[str, object]:
        alternating({"only": lambda: taken.append(time.sleep(0.01))}, 1000)
        return {}

    slow = replace(TRAIN, seconds=lambda spec: 1e3, measure=lambda: measure)
    report = execute(spec, lambda name: slow, replace(around, deadline=time.monotonic() + 0.5))
    assert (report.state, report.status) == ("late", NOT_BEGUN)
    assert len(taken) < 1000
    assert not Store(around.store).partial(spec.id).exists()


@pytest.mark.parametrize("seconds", [0.0, 1e-3, 1e9])
def test_when_checkpoints_fall_does_not_change_a_diverging_run(tmp_path: Path, seconds: float):
    """Divergence is looked for on the evaluation grid, so the curve ends there and not at a checkpoint."""
    spec = toy.digits(updates=60, rate=1e12)
    around = RunnerConfig(tmp_path / "store", checkpoint_seconds=seconds)
    assert execute(spec, experiment, around).status == "diverged"
    run = Store(around.store).read(spec.id)
    assert run.results["updates"] == 20
    assert run.curve("updates")["update"].tolist() == list(range(20))
