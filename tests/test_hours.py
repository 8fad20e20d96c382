"""Hours planned and spent: a row per kind of run, from what the runs themselves counted."""

from __future__ import annotations

import csv
import io

import pytest

from suite.commands import refresh as module
from suite.commands.refresh import hours
from suite.experiment import Experiment
from suite.runs.run import Outcome, Run, encode, verified
from suite.spec import RunSpec


def run(
    seed: int,
    spent: float | None,
    network: str = "small",
    device: str = "cpu",
    name: str = "toy/train",
    factor: float | None = None,
) -> Run:
    spec = RunSpec(name, {"model": {"name": network}, "data": "digits"}, seed)
    where = {"execution": {"width": 1, "device": device}, "machine": {"cpu": "one"}}
    where |= {} if spent is None else {"processor_seconds": spent}
    where |= {} if factor is None else {"host_factor": factor}
    return verified(spec.id, encode(spec, where, Outcome("finished", {"value": 1.0})))


@pytest.fixture(autouse=True)
def half_an_hour(monkeypatch: pytest.MonkeyPatch):
    """Every run was planned to take it."""

    made = {
        "toy/train": Experiment(pytest.fail, lambda spec: 1800.0),
        "toy/asleep": Experiment(pytest.fail, lambda spec: 1800.0, clock="asleep"),
    }
    monkeypatch.setattr(module, "experiment", made.__getitem__)


def test_runs_of_a_kind_are_added_up_and_their_plan_is_held_against_them():
    told = hours([run(0, 3600.0), run(1, 1800.0), run(2, None), run(0, 900.0, "large")])
    rows = {row["network"]: row for row in csv.DictReader(io.StringIO(told))}
    assert {name: (row["runs"], row["calibrated"], row["ratio"]) for name, row in rows.items()} == {
        "small": ("2", "0", ""),
        "large": ("1", "0", ""),
    }
    assert (rows["small"]["planned_hours"], rows["small"]["spent_hours"]) == ("1", "1.5")
    assert (rows["small"]["data"], rows["small"]["machine"]) == ("digits", "one")


def test_a_plan_is_held_against_the_runs_that_know_how_fast_their_host_was():
    """Half an hour on a host that takes half as long, 15 minutes, against 18; twice as long, an hour, against 72."""
    told = hours([run(0, 1080.0, factor=0.5), run(1, 4320.0, factor=2.0), run(2, 9000.0)])
    (row,) = csv.DictReader(io.StringIO(told))
    assert (row["runs"], row["calibrated"], row["ratio"]) == ("3", "2", "1.2")
    assert (row["planned_hours"], row["spent_hours"]) == ("1.5", "4")


def test_runs_on_a_gpu_leave_no_row_since_a_plan_is_of_a_cpu_nor_do_those_that_sleep_to_compute():
    assert hours([run(0, 3.0, device="cuda"), run(0, 3.0, name="toy/asleep")]) == ""
