"""``plan`` scales its estimates by what pilots measured, and predicts a machine whose kinds of runs differ."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
import toy

from suite.commands import planning
from suite.commands.planning import Planned, calibrated
from suite.experiment import Experiment
from suite.papers.catalogue import select
from suite.runner import calibration, pilot
from suite.runner.calibration import Calibration, calibrate, keep, kind, known
from suite.runs.store import Store
from suite.spec import RunSpec
from suite.training.numerics import choose


def training(seed=0, model="small", batch=8, rate=0.1, updates=100):
    chosen = {"model": {"name": model}, "algorithm": {"name": "sgd"}}
    return RunSpec("train", {**chosen, "batch": batch, "rate": rate, "updates": updates}, seed)


def simulated(number=0):
    return RunSpec("simulate", {"number": number})


def loaded(device="cpu"):
    """What resolves experiments: trainings with a pilot, estimated at a second an update, and simulations of 10 s."""
    known_ = {
        "train": Experiment(lambda: None, seconds=lambda spec: spec.settings["updates"] * 1.0, pilot=lambda: None),
        "simulate": Experiment(lambda: None, seconds=lambda spec: 10.0),
    }
    return known_.__getitem__


class Machine:
    """A scripted machine: seconds of an update by model; every pilot takes its share of time."""

    def __init__(self, each):
        self.each, self.now, self.asked = each, 0.0, []

    def timed(self, spec, seconds):
        self.asked.append((spec.settings["model"]["name"], spec.settings["batch"]))
        self.now += seconds
        return self.each[spec.settings["model"]["name"]] * spec.settings["updates"]

    def clock(self):
        return self.now


def run(machine, specs, seconds=60.0, host=3.0):
    return calibrate(specs, loaded(), "cpu", seconds, machine.timed, lambda: host, machine.clock)


def test_measured_kinds_predict_their_runs_exactly_and_others_take_what_is_like_them():
    machine = Machine({"small": 0.5, "large": 4.0})
    specs = [training(s) for s in range(5)] + [training(model="large", updates=1000), simulated()]
    made = run(machine, specs)
    assert machine.asked == [("large", 8), ("small", 8)]  # the most estimated seconds first, each kind once
    plan = calibrated([Planned(spec, loaded()(spec.experiment).seconds(spec), 0, (), ()) for spec in specs], made)
    assert [item.seconds for item in plan] == [50.0] * 5 + [4000.0] + [30.0]
    assert made.factor(training(model="unseen")) == pytest.approx(2.25)  # the median of the trainings


def test_the_seed_the_rate_and_the_length_are_not_part_of_a_kind_but_batch_and_protocol_are():
    assert kind(training(seed=3, rate=0.5, updates=7)) == kind(training())
    assert kind(training(batch=16)) != kind(training())
    softsync = [RunSpec("train", {"algorithm": {"name": "rudra", "n": n, "history": n}}) for n in (1, 2)]
    assert kind(softsync[0]) != kind(softsync[1])


def test_a_calibration_stops_at_its_time():
    machine = Machine(dict.fromkeys("abcdefgh", 1.0))
    specs = [training(model=name, updates=100 + ord(name)) for name in "abcdefgh"]
    made = run(machine, specs, seconds=3.0)
    assert [name for name, *_ in machine.asked] == ["h", "g", "f"]
    assert len(made.kinds) == 3
    assert machine.now <= 3.0 + calibration.MOST


def test_a_store_keeps_the_calibration_of_this_machine_only(tmp_path):
    made = Calibration(calibration.machine_class(), "cpu", {"k": 2.0}, 2.0, 1.0)
    path = keep(tmp_path, made)
    assert known(tmp_path) == made
    assert known(tmp_path / "nowhere") is None
    whole = json.loads(path.read_text())
    for odd in ({"machine": "another"}, {"kinds": []}, {"kinds": {"k": "2"}}, {"host": math.nan}):
        path.write_text(json.dumps(whole | odd))
        assert known(tmp_path) is None, odd
    path.write_text("{ cut of")
    assert known(tmp_path) is None


def test_a_plan_reads_a_calibration_without_torch(tmp_path):
    Store(tmp_path / "s.store", create=True)
    keep(tmp_path / "s.store", Calibration(calibration.machine_class(), "cpu", {}, 7.0, 7.0))
    code = (
        "import sys; sys.argv = ['sgd-suite', 'plan', 'isgd/fig5a', '--profile', 'reduced', '--json', '--store', "
        f"{str(tmp_path / 's.store')!r}]\n"
        "from suite.commands.main import main\ntry: main()\nexcept SystemExit: pass\n"
        "assert not {'torch', 'numpy', 'pandas'} & set(sys.modules), 'plan imported torch'"
    )
    scaled = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    by_id = {item.spec.id: item.seconds for item in planning.plan(select(["isgd/fig5a"]), "reduced")}
    assert scaled["calibrated"] == "cpu"
    assert scaled["plan"]
    for row in scaled["plan"]:
        assert row["seconds"] == pytest.approx(7.0 * by_id[row["id"]], abs=0.01)


def test_a_pilot_times_a_real_training():
    few, many = (toy.digits(n, algorithm={"name": "sgd"}, batch=4) for n in (10, 100_000))
    execution = choose(few, "cpu", 1)
    assert 0 < pilot.training(few, execution, None, 0.05) < pilot.training(many, execution, None, 0.05)
