"""What cannot be read at the moment is left where it is: a stored run, a run under way, what an import meets."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import toy
from faults_of_reading import PASSING, failing

from suite.experiment import Context
from suite.papers.catalogue import experiment, paper
from suite.papers.measurement import verdicts
from suite.report.drawing import draw_selection
from suite.runner.cost import TRAIN
from suite.runner.execute import RunnerConfig, execute
from suite.runs.archive import Archive, export, merge
from suite.runs.comparison import relation
from suite.runs.run import UnreadableRun
from suite.runs.store import Store
from suite.spec import RunSpec
from suite.training import checkpoint_file
from suite.training.loop import TrainingRun

pytestmark = pytest.mark.usefixtures("papers")

SPEC = RunSpec("toy/draw")
training = lambda name: TRAIN
every_error = pytest.mark.parametrize("number", PASSING, ids=[errno.errorcode[number] for number in PASSING])


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@every_error
def test_a_stored_run_stays_and_is_found_the_next_time(around: RunnerConfig, number: int):
    execute(SPEC, experiment, around)
    before = content(around.store / "runs")
    for at in itertools.count(1):
        with failing(around.store / "runs", number, at) as fault:
            report = execute(SPEC, experiment, around)
        if not fault.struck:
            break
        if number == errno.ESTALE:
            assert (report.state, report.why) == ("present", "")
        else:
            why = f"run {SPEC.id} cannot be read ({os.strerror(number)}); nothing was moved"
            assert (report.state, report.why) == ("failed", why)
        assert content(around.store / "runs") == before
        assert not (around.store / "refused").exists()
        assert execute(SPEC, experiment, around).state == "present"
    assert at > len(before)


def test_a_handle_that_stays_stale_is_said(around: RunnerConfig):
    execute(SPEC, experiment, around)
    with failing(around.store / "runs", errno.ESTALE, 1, times=2):
        report = execute(SPEC, experiment, around)
    assert (report.state, "Stale file handle" in report.why) == ("failed", True)
    assert execute(SPEC, experiment, around).state == "present"


@every_error
def test_an_import_replaces_no_run_that_it_cannot_read(around: RunnerConfig, tmp_path: Path, number: int):
    execute(SPEC, experiment, around)
    store = Store(around.store)
    export({SPEC.id: store.files(SPEC.id)}, tmp_path / "runs.zip", {})
    before = content(around.store / "runs")
    with failing(around.store / "runs", number, 10**6) as fault:
        store.read(SPEC.id)
    readings = fault.seen
    for at in range(1, readings + 2):
        take = partial(merge, Archive(tmp_path / "runs.zip"), store, partial(relation, timed=False))
        with failing(around.store / "runs", number, at):
            if number == errno.ESTALE or at > readings:
                assert take().present == [SPEC.id]
            else:
                with pytest.raises(UnreadableRun, match="nothing was moved"):
                    take()
        assert content(around.store / "runs") == before
        assert not (around.store / "refused").exists()
    assert readings > len(before)


def test_what_reads_evidence_says_it_in_a_sentence(around: RunnerConfig, tmp_path: Path):
    specs = [spec for group in paper("toy").artifacts[0].runs("smoke").values() for spec in group]
    for spec in specs:
        execute(spec, experiment, around)
    source = Store(around.store)
    judge = lambda: verdicts(paper("toy"), source, profile="smoke", artifacts=["toy/table1"])
    with failing(around.store / "runs" / specs[0].id, errno.EACCES, 1, times=10**6):
        found = [verdict for verdict in judge() if "cannot be read (Permission denied)" in verdict.why]
        drawn = list(draw_selection(["toy/fig1"], source, tmp_path / "out", profile="smoke"))
    assert found
    assert all(verdict.red for verdict in found)
    assert all("Traceback" not in line for line in drawn)
    assert not any("cannot be read" in verdict.why for verdict in judge())


@pytest.fixture(scope="module")
def cut_short(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunSpec, Path]:
    """A training run with a checkpoint after its second update, and the store that it lies in."""
    store = tmp_path_factory.mktemp("cut") / "store"
    spec, looks = toy.digits(updates=4, evaluate={"every": 4}), iter((False, False, True, True, True, True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Context, "late", property(lambda context: next(looks)))
        assert execute(spec, training, RunnerConfig(store)).state == "late"
    return spec, store


def at_update(store: Path, spec: RunSpec) -> int:
    (folder,) = (store / "partial" / spec.id).iterdir()
    found = checkpoint_file.read(folder)
    assert found is not None
    return found.values["t"]


@every_error
def test_a_run_under_way_keeps_its_checkpoint(cut_short, tmp_path: Path, number: int, monkeypatch):
    """Whichever reading fails: the run goes on from its checkpoint, then or the next time."""
    spec, origin = cut_short
    taken_up: list[int] = []
    restore: Callable[..., None] = TrainingRun.restore

    def watched(session: TrainingRun, values: dict, tensors: dict) -> None:
        taken_up.append(values["t"])
        restore(session, values, tensors)

    monkeypatch.setattr(TrainingRun, "restore", watched)
    began = at_update(origin, spec)
    for at in itertools.count(1):
        store = tmp_path / str(at)
        shutil.copytree(origin, store)
        taken_up.clear()
        with failing(store / "partial", number, at) as fault:
            report = execute(spec, training, RunnerConfig(store))
        if not fault.struck:
            break
        if report.state == "failed":
            assert at_update(store, spec) == began
            assert os.strerror(number) in report.why
            report = execute(spec, training, RunnerConfig(store))
        assert (report.state, report.why) == ("stored", "")
        assert taken_up[-1] == began
    assert at > 5
