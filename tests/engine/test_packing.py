"""Runs computed together are the runs they would have been."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import pytest
from engine_cases import compute, digest, digits, stored

from suite.papers.catalogue import experiment
from suite.runner.execute import RunnerConfig, execute_all
from suite.runner.packing import Lockstep
from suite.runs.store import Store

TOGETHER = {"path": "vectorised"}


def states(reports):
    return [report.state for report in reports]


def test_looped_runs_in_one_process_have_the_bits_of_each_alone(tmp_path):
    specs = [digits(seed) for seed in range(3)]
    assert states(compute(tmp_path / "together", *specs)) == ["stored"] * 3
    for spec in specs:
        compute(tmp_path / "alone", spec)
        assert digest(tmp_path / "together", spec) == digest(tmp_path / "alone", spec)
        assert stored(tmp_path / "together", spec).environment["execution"]["path"] == "looped"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"model": {"name": "tiny_bn", "channels": 1, "input_size": 28}},
        {"workers": 2, "order": {"kind": "fixed-cycle", "share": "split"}},
        {"workers": 2, "algorithm": {"name": "crossbow"}},
        {"batch": 16, "algorithm": {"name": "isgd", "batches": "epoch", "zeta": 0.01}},
    ],
    ids=["sgd", "batch norm", "joined workers", "sma", "isgd"],
)
def test_a_pack_agrees_with_its_runs_alone(tmp_path, changes):
    """In float64 and after twelve updates, rounding has not grown past 1e-9 of a loss."""
    specs = [digits(seed, precision="float64", rate=0.01 * (1 + seed), **changes) for seed in range(2)]
    packed = [digits(s.seed, **{**s.settings, **TOGETHER}) for s in specs]
    assert states(compute(tmp_path, *packed)) == ["stored"] * 2
    assert states(compute(tmp_path, *specs)) == ["stored"] * 2
    for slot, (alone, together) in enumerate(zip(specs, packed, strict=True)):
        execution = stored(tmp_path, together).environment["execution"]
        assert (execution["path"], execution["width"], execution["slot"]) == ("vectorised", 2, slot)
        a, b = stored(tmp_path, alone).results, stored(tmp_path, together).results
        assert b["test_loss"] == pytest.approx(a["test_loss"], rel=1e-9)
        assert b["weights_digest"] != stored(tmp_path, packed[slot - 1]).results["weights_digest"]


def test_runs_that_end_early_leave_the_others_as_they_were(tmp_path, monkeypatch):
    """Runs share the seconds of the steps that they make together."""
    clock = count(step=1000)  # seconds of a step
    monkeypatch.setattr("suite.runner.packing.time", SimpleNamespace(perf_counter=clock.__next__))
    kept = [digits(0, **TOGETHER), digits(2, **TOGETHER)]
    short, long = digits(1, updates=3, **TOGETHER), digits(1, **TOGETHER)
    compute(tmp_path / "short", kept[0], short, kept[1])
    compute(tmp_path / "long", kept[0], long, kept[1])
    assert stored(tmp_path / "short", short).results["updates"] == 3
    for spec in kept:
        curves = [stored(tmp_path / name, spec).curve("evaluations") for name in ("long", "short")]
        ends = [1000 * 12 / 3, 1000 * (3 / 3 + 9 / 2)]
        assert [curve["seconds"].iloc[-1] for curve in curves] == pytest.approx(ends, abs=100)
        assert digest(tmp_path / "short", spec) == digest(tmp_path / "long", spec)


def test_a_run_that_diverges_or_fails_leaves_the_others_as_they_were(tmp_path):
    good = [digits(0, **TOGETHER), digits(2, **TOGETHER)]
    compute(tmp_path / "quiet", good[0], digits(1, **TOGETHER), good[1])
    reports = compute(tmp_path / "divergent", good[0], digits(1, rate=1e6, **TOGETHER), good[1])
    assert [report.status for report in reports] == ["finished", "diverged", "finished"]
    broken = digits(1, descent={"rule": "caffe", "colour": "red"}, **TOGETHER)
    reports = compute(tmp_path / "broken", good[0], broken, good[1])
    assert states(reports) == ["stored", "failed", "stored"]
    assert reports[1].why
    for spec in good:
        for name in ("divergent", "broken"):
            assert digest(tmp_path / name, spec) == digest(tmp_path / "quiet", spec)


class Stopped(Exception):
    """Stands for a kill between two updates."""


def interrupted(monkeypatch, at: dict[int, int]):
    """Sessions of a seed stop after the update named, once its checkpoint is written."""
    from suite.training.loop import TrainingRun

    close = TrainingRun.close_turn

    def stop(session):
        close(session)
        if session.t == at.get(session.spec.seed):
            raise Stopped

    monkeypatch.setattr(TrainingRun, "close_turn", stop)


@pytest.mark.parametrize("again", ["together", "one by one"])
def test_a_pack_resumes_to_the_same_bits(tmp_path, monkeypatch, again):
    """Also where its runs were stopped at different updates, one is stored already, and each is resumed alone."""
    specs = [digits(seed, **TOGETHER) for seed in range(3)]
    compute(tmp_path / "whole", *specs)
    with monkeypatch.context() as patch:
        interrupted(patch, {0: 5, 2: 8})
        assert states(compute(tmp_path / "parts", *specs, checkpoint_seconds=0)) == ["failed", "stored", "failed"]
    if again == "together":
        assert states(compute(tmp_path / "parts", *specs)) == ["stored", "present", "stored"]
    else:
        assert [compute(tmp_path / "parts", spec)[0].state for spec in specs] == ["stored", "present", "stored"]
    for spec in specs:
        assert digest(tmp_path / "parts", spec) == digest(tmp_path / "whole", spec)


def test_runs_out_of_time_leave_checkpoints_and_are_late(tmp_path, monkeypatch):
    specs = [digits(seed, **TOGETHER) for seed in range(2)]
    from suite.experiment import Context

    monkeypatch.setattr(Context, "late", property(lambda self: True))
    assert states(compute(tmp_path, *specs)) == ["late", "late"]
    monkeypatch.undo()
    for spec in specs:
        assert list(Store(tmp_path).partial(spec.id).glob("*/checkpoint"))
    assert states(compute(tmp_path, *specs)) == ["stored", "stored"]


def test_dropout_and_slots_outside_the_width_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"slots \[\] must lie in 0..1"):
        Lockstep({}, 2)
    reports = compute(tmp_path, *(digits(seed, model={"name": "crossbow_lenet"}, **TOGETHER) for seed in range(2)))
    assert states(reports) == ["failed", "failed"]
    assert "dropout cannot be packed" in reports[0].why


def test_every_run_of_a_pack_is_reported_and_told_how_far_it_is(tmp_path):
    specs = [digits(seed, **TOGETHER) for seed in range(2)]
    seen: dict[str, float] = {}
    reports = list(execute_all(specs, experiment, RunnerConfig(tmp_path), progress=seen.__setitem__))
    assert [(report.spec, report.state) for report in reports] == [(spec, "stored") for spec in specs]
    assert seen == dict.fromkeys((spec.id for spec in specs), 1.0)
    assert [stored(tmp_path, spec).environment["execution"]["width"] for spec in specs] == [2, 2]
