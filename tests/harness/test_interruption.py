"""Signals: a checkpoint at the next update, a sentence, the exit code of the signal, and nobody left behind."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest
import toy
import typer

from reference_impls.contract import Turn
from suite import interruption
from suite.commands import output
from suite.papers.catalogue import experiment
from suite.runner import status_file, workers
from suite.runner.execute import RunnerConfig, execute
from suite.runs.comparison import identical
from suite.runs.store import Store
from suite.spec import RunSpec
from suite.training import checkpoint
from suite.training.loop import TrainingRun

pytestmark = pytest.mark.processes

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1]


SMOKE = ("--profile", "smoke", "--device", "cpu", "--store", "s")


def wait_until_training(store: Path, command) -> None:
    """Until the training of the store says that it has made updates; its other runs begin with a half."""
    held = Store(store, create=True)
    while not any(0 < note["fraction"] < 0.5 for note in map(status_file.note_in, held.begun()) if note):
        assert command.poll() is None, command.told
        time.sleep(0.05)


def test_time_to_leave_is_given_once_and_taken_back_by_the_end_of_the_block():
    """An alarm that outlived the block would end something else."""
    left = lambda: signal.getitimer(signal.ITIMER_REAL)[0]
    before = [signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)]
    with interruption.watched():
        with interruption.deferred():
            with interruption.deferred():
                assert left() == 0
                os.kill(os.getpid(), signal.SIGTERM)
                assert interruption.asked_to_stop()
            assert 0 < left() <= interruption.GRACE
        assert left() == 0
        with interruption.deferred():
            signal.setitimer(signal.ITIMER_REAL, 60)
            with pytest.raises(interruption.Interrupted), interruption.deferred():
                interruption.leave_if_asked()
    assert left() == 0
    assert not interruption.asked_to_stop()
    assert [signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)] == before


def test_a_training_leaves_a_checkpoint_at_its_next_update(tmp_path: Path, started):
    """No checkpoint is due for an hour: what is there, the signal of a scheduler left."""
    number = signal.SIGUSR1
    command = started("run", "toy/fig1", *SMOKE, TOY_UPDATES="100000", SGD_SUITE_CHECKPOINT_SECONDS="3600")
    wait_until_training(tmp_path / "s", command)
    command.send(number)
    assert command.wait() == 128 + number
    assert command.told.splitlines()[-1].startswith(f"interrupted by {number.name}: what is finished stays")
    assert "0 runs stored, 0 already there, 1 left for later, 0 failed" in command.told
    assert "Traceback" not in command.told
    assert len(list((tmp_path / "s" / "partial").glob(f"*/*/{checkpoint.NAME}"))) == 1


def test_no_update_is_lost_or_computed_twice(tmp_path: Path, papers, monkeypatch: pytest.MonkeyPatch):
    """A signal comes while the third and the seventh update are computed, and no checkpoint is due for an hour."""
    spec, computed, update = toy.digits(updates=12, evaluate={"every": 4}), [], TrainingRun.update

    def signalled(session: TrainingRun, turn: Turn) -> None:
        if len(computed) in (2, 6):
            signal.raise_signal(SIGNALS[len(computed) // 4])
        update(session, turn)
        computed.append(turn.t)

    whole = RunnerConfig(tmp_path / "whole")
    assert execute(spec, experiment, whole).state == "stored"
    monkeypatch.setattr(TrainingRun, "update", signalled)
    around = RunnerConfig(tmp_path / "parts", checkpoint_seconds=3600)
    for state in ("late", "late", "stored"):
        with interruption.watched():
            assert execute(spec, experiment, around).state == state
    assert computed == list(range(12))
    assert identical(Store(whole.store).read(spec.id), Store(around.store).read(spec.id))


def test_a_signal_before_anything_runs_ends_with_the_same_sentence(tmp_path: Path, started):
    """While another process computes the run that this one waits for."""
    store = Store(tmp_path / "s", create=True)
    (spec,) = toy.training("smoke")["train"]
    assert isinstance(spec, RunSpec)
    with store.claim(spec.id):
        command = started("run", "toy/fig1", *SMOKE)
        while "waiting for 1 run that" not in command.told:
            assert command.poll() is None, command.told
            time.sleep(0.01)
        command.send(signal.SIGTERM)
        assert command.wait() == 143
    assert command.told.splitlines()[-1] == str(interruption.Interrupted(signal.SIGTERM))


@pytest.mark.parametrize("seed", range(2))
def test_parents_leave_no_workers_behind(tmp_path: Path, started, seed: int):
    """SIGTERM at a random moment while workers start or compute; within ``open`` it leaves a file unclosed."""
    warned = "error,ignore::ResourceWarning"
    command = started("run", "toy/table1", *SMOKE, "--workers", "2", TOY_SLEEP="3", PYTHONWARNINGS=warned)
    while not (tmp_path / "s" / "staging").exists():
        assert command.poll() is None, command.told
        time.sleep(0.01)
    time.sleep(random.Random(seed).uniform(0.0, 3.0))
    command.send(signal.SIGTERM)
    assert command.wait() in (0, 143), command.told
    assert command.gone(), command.told
    assert "Traceback" not in command.told


def test_workers_leave_a_checkpoint_when_their_parent_is_asked_to_stop(tmp_path: Path, started):
    """Ctrl-C reaches the whole group, as on a terminal."""
    long = {"TOY_UPDATES": "100000", "TOY_SLEEP": "0.1", "SGD_SUITE_CHECKPOINT_SECONDS": "3600"}
    command = started("run", "toy", *SMOKE, "--workers", "2", **long)
    wait_until_training(tmp_path / "s", command)
    os.killpg(command.pid, signal.SIGINT)
    assert command.wait() == 130, command.told
    assert command.gone()
    assert "Traceback" not in command.told
    assert len(list((tmp_path / "s" / "partial").glob(f"*/*/{checkpoint.NAME}"))) == 1


def test_a_worker_whose_parent_has_closed_its_pipe_is_asked_to_stop_and_not_failed():
    """The signal reached the parent first, which closed the pipe, and the run tells how far it is before it looks."""
    ours, theirs = multiprocessing.Pipe()
    ours.send("a pack")
    asked = []

    def compute(pack, *, progress):
        ours.close()
        with interruption.deferred():
            progress(0.5)
            progress(0.6)
            asked.append(interruption.asked_to_stop())
        return []

    workers.work(theirs, compute)
    assert asked == [True]
    assert not interruption.asked_to_stop()


def test_what_does_not_look_is_ended_after_the_grace(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(interruption, "GRACE", 0.05)

    def never_looks() -> None:
        with interruption.deferred():
            signal.raise_signal(signal.SIGUSR1)
            assert interruption.asked_to_stop()
            while True:
                time.sleep(0.01)

    with interruption.watched(), pytest.raises(interruption.Interrupted) as caught:
        never_looks()
    assert caught.value.exit_code == 128 + signal.SIGUSR1
    assert not interruption.asked_to_stop()


def test_a_second_ctrl_c_does_not_wait(monkeypatch: pytest.MonkeyPatch):
    """What a scheduler and a parent send twice within a second is one wish."""
    monkeypatch.setattr(interruption, "IMPATIENT", 3600.0)
    with interruption.watched(), interruption.deferred():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert interruption.asked_to_stop()
        monkeypatch.setattr(interruption, "IMPATIENT", -1.0)
        with pytest.raises(interruption.Interrupted) as caught:
            signal.raise_signal(signal.SIGINT)
    assert caught.value.exit_code == 143


def test_ctrl_c_where_no_run_is_under_way_is_said_in_a_sentence(capsys: pytest.CaptureFixture[str]):
    assert output.explain(typer.Abort()) == 130
    assert capsys.readouterr().err.strip() == str(interruption.Interrupted(signal.SIGINT))
