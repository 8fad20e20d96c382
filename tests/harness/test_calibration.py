"""``plan`` scales its estimates by what pilots measured, and predicts a machine whose kinds of runs differ."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from suite.cli import runs
from suite.commands import plan as planning
from suite.commands.plan import Planned, calibrated, folder_for_calibration
from suite.experiment import Experiment
from suite.papers.selection import select
from suite.runner import calibration, pilot
from suite.runner.calibration import Calibration, calibrate, costliest, keep, kind, known
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

    def timed(self, spec, width, seconds):
        self.asked.append((spec.settings["model"]["name"], spec.settings["batch"], width))
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
    assert machine.asked == [("large", 8, 1), ("small", 8, 1)]  # the most estimated seconds first, each kind once
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


def test_a_kind_that_cannot_be_set_up_is_left_out_and_said():
    said = []

    def timed(spec, width, seconds):
        if spec.settings["model"]["name"] == "large":
            raise FileNotFoundError("no pictures here")
        return 200.0

    specs = [training(), training(model="large")]
    made = calibrate(specs, loaded(), "cpu", 60.0, timed, lambda: 1.0, lambda: 0.0, said.append)
    assert made.kinds == {kind(training()): 2.0}
    assert any("no pictures here" in text for text in said)


def test_without_any_pilot_the_host_speaks_for_all():
    made = run(Machine({}), [simulated()], host=1.5)
    assert (made.kinds, made.trainings, made.host) == ({}, 1.5, 1.5)


def test_runs_that_share_their_steps_are_timed_together():
    packed = Experiment(lambda: None, lambda spec: 100.0, pack=lambda spec, device: "all", pilot=lambda: None)
    ((pack, cost),) = costliest([training(seed=s) for s in range(4)], lambda name: packed, "cpu")
    assert (len(pack.specs), cost) == (4, 400.0)


@pytest.mark.parametrize(
    ("seconds", "models", "shares"),
    [
        (60.0, "ab", [6.0, 6.0]),  # no more than six seconds of each
        (8.0, "ab", [2.0, 3.0]),  # half of what is left for each of those that are left
        (20.0, "abc", [20 / 6, 50 / 12, 6.0]),
        (3.0, "abcd", [1.0, 1.0, 1.0]),  # no less than one, until the time is over
    ],
)
def test_the_time_is_shared_among_the_kinds_that_are_left(seconds, models, shares):
    machine, given = Machine(dict.fromkeys(models, 1.0)), []
    timed = lambda spec, width, share: given.append(share) or machine.timed(spec, width, share)
    specs = [training(model=name) for name in models]
    calibrate(specs, loaded(), "cpu", seconds, timed, lambda: 1.0, machine.clock)
    assert given == pytest.approx(shares)


def test_what_was_measured_is_said():
    said = []
    timed = lambda spec, width, seconds: 250.0
    calibrate([training()], loaded(), "cpu", 60.0, timed, lambda: 1.0, lambda: 0.0, said.append)
    assert said == [f"train {training().id}: 2.50 times the estimate"]


def test_a_kind_is_timed_in_the_largest_of_its_packs_and_costs_as_much_as_all():
    """Of 17 runs, one more than a pack holds."""
    packed = Experiment(lambda: None, lambda spec: 100.0, pack=lambda spec, device: "all", pilot=lambda: None)
    ((pack, cost),) = costliest([training(seed=s) for s in range(17)], lambda name: packed, "cpu")
    assert (len(pack.specs), cost) == (9, 1700.0)


@pytest.mark.parametrize(
    ("seconds", "path", "measures", "measured"),
    [
        (4.0, {}, True, True),
        (3.0, {}, True, False),  # three of them are too short to measure
        (4.0, {"path": "looped"}, True, False),
        (4.0, {}, False, False),
    ],
)
def test_a_pilot_takes_the_execution_that_the_first_run_would_choose(seconds, path, measures, measured):
    def timed(spec, execution, width, data, share):
        asked.append((execution["path"], execution["width"], execution["threads"], width, data, share))
        return 7.0

    asked = []
    chosen = lambda spec, execution, width: {"path": "vectorised", "width": width}
    kind_ = Experiment(
        lambda: None, lambda spec: seconds, measure=(lambda: chosen) if measures else None, pilot=lambda: timed
    )
    spec = RunSpec("train", {"precision": "float32", **path})
    assert calibration.pilot_run(lambda name: kind_, "cpu", None, spec, 3, 2.0) == 7.0
    assert asked == [(*(("vectorised", 3) if measured else ("looped", 1)), 1, 3, None, 2.0)]


def test_the_host_is_compared_with_the_reference_by_processor_time(monkeypatch: pytest.MonkeyPatch):
    """The reference CPU takes 0.34 s for a hundred thousand events."""
    clock = iter([5.0, 5.68])
    monkeypatch.setattr(calibration.time, "process_time", lambda: next(clock))
    monkeypatch.setattr(calibration, "REFERENCE_EVENTS", 10)
    assert calibration.host_seconds() == pytest.approx(2.0)


def test_a_calibration_of_this_form_is_read_and_no_other(tmp_path):
    kept = {"format": 1, "machine": calibration.machine_class(), "device": "cuda", "kinds": {"k": 3.0}}
    kept |= {"trainings": 2.0, "host": 1.0}
    path = tmp_path / calibration.FILE
    path.write_text(json.dumps(kept))
    assert known(tmp_path) == Calibration(calibration.machine_class(), "cuda", {"k": 3.0}, 2.0, 1.0)
    for other in ({**kept, "format": 2}, {name: value for name, value in kept.items() if name != "format"}, [kept]):
        path.write_text(json.dumps(other))
        assert known(tmp_path) is None


def test_a_store_keeps_the_calibration_of_this_machine_only(tmp_path):
    made = Calibration(calibration.machine_class(), "cpu", {"k": 2.0}, 2.0, 1.0)
    path = keep(tmp_path, made)
    assert known(tmp_path) == made
    assert known(None) is None
    assert known(tmp_path / "nowhere") is None
    path.write_text(json.dumps({**json.loads(path.read_text()), "machine": "another"}))
    assert known(tmp_path) is None
    path.write_text("{ cut of")
    assert known(tmp_path) is None


def test_a_file_is_no_place_for_a_calibration(tmp_path):
    (tmp_path / "runs.zip").write_bytes(b"")
    with pytest.raises(ValueError, match="exported file"):
        folder_for_calibration(tmp_path / "runs.zip")


def test_a_plan_times_pieces_of_the_runs_that_are_left(tmp_path, monkeypatch, capsys):
    """Those that the store has need no estimate."""
    todo = []
    monkeypatch.setattr(planning, "calibrate", lambda planned, *_: todo.extend(item.spec.id for item in planned))
    everything = [item.spec.id for item in planning.plan(select(["isgd/fig5a"]), "reduced")]
    monkeypatch.setattr("suite.papers.evidence.ids_of_user", lambda *_, **__: set(everything[:2]))
    runs.plan(["isgd/fig5a"], profile="reduced", store=tmp_path / "s.store", seconds=1)
    assert todo == everything[2:]
    assert len(todo) > 2
    assert capsys.readouterr().out


def test_a_plan_reads_a_calibration_without_torch(tmp_path):
    folder_for_calibration(tmp_path / "s.store")
    keep(tmp_path / "s.store", Calibration(calibration.machine_class(), "cpu", {}, 7.0, 7.0))
    code = (
        "import sys; sys.argv = ['sgd-suite', 'plan', 'isgd/fig5a', '--profile', 'reduced', '--json', '--store', "
        f"{str(tmp_path / 's.store')!r}]\n"
        "from suite.cli import main\ntry: main()\nexcept SystemExit: pass\n"
        "assert not {'torch', 'numpy', 'pandas'} & set(sys.modules), 'plan imported torch'"
    )
    scaled = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    by_id = {item.spec.id: item.seconds for item in planning.plan(select(["isgd/fig5a"]), "reduced")}
    assert scaled["calibrated"] == "cpu"
    assert scaled["plan"]
    for row in scaled["plan"]:
        assert row["seconds"] == pytest.approx(7.0 * by_id[row["id"]], abs=0.01)


PILOTED = {
    "data": {"name": "digits", "size": 8},
    "model": {"name": "digits_lenet", "input_size": 8, "kernel": 3},
    "algorithm": {"name": "sgd"},
    "descent": {"rule": "torch", "momentum": 0.9, "decay": 0.0},
    "rate": 0.01,
    "batch": 4,
    "evaluate": {"every": 10},
}


class Clock:
    """A clock that only what is timed moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.now = 50.0
        monkeypatch.setattr(pilot.time, "perf_counter", lambda: self.now)

    def taking(self, *seconds: float):
        """What takes so long each time, and then as long as the last."""
        left = list(seconds)

        def call(*_: object) -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return call


@pytest.mark.parametrize("width", [1, 4])
def test_a_run_takes_its_set_up_its_updates_and_an_evaluation_more_than_it_has_spells(monkeypatch, width: int):
    """Set up in 5 s, the first time in 100; two updates warm up; a step of 3 s is shared by the runs of a pack."""
    clock = Clock(monkeypatch)
    assembled = clock.taking(100.0, 5.0)
    monkeypatch.setattr(pilot, "assemble", assembled)
    monkeypatch.setattr(pilot, "build", lambda *_: None)
    monkeypatch.setattr(pilot, "evaluation_seconds", lambda session: 7.0)
    shared = []
    step = clock.taking(100.0, 100.0, 3.0)
    monkeypatch.setattr(pilot, "update_of", lambda session, made, width: shared.append(width) or step)
    spec = RunSpec("train", {**PILOTED, "updates": 1000})
    execution = choose(spec, "cpu", 1) | ({"width": width} if width > 1 else {})
    assert pilot.training(spec, execution, 4, None, 9.0) == pytest.approx(5 + 1000 * 3 / width + 101 * 7)
    assert shared == [width]
    assert clock.now == 50 + 100 + 5 + 200 + 9, "three updates end the nine seconds"


def test_an_evaluation_is_timed_on_a_thousand_of_the_images_that_it_reads(monkeypatch: pytest.MonkeyPatch):
    """10 s of them, after a warm-up of 50; the test set has 2,500 and 500 more are of training."""
    clock = Clock(monkeypatch)
    evaluate, asked = clock.taking(50.0, 10.0), []
    problem = SimpleNamespace(evaluate=lambda x, b, inputs, targets: asked.append(len(targets)) or evaluate())
    session = SimpleNamespace(
        made=SimpleNamespace(test_inputs=range(2500), test_targets=range(2500), problem=problem),
        spec=SimpleNamespace(settings={"evaluate": {"train_examples": 500}}),
        algorithm=SimpleNamespace(model=lambda state: None), state=None, buffers=torch.zeros(1, 2),
    )  # fmt: skip
    assert pilot.evaluation_seconds(session) == pytest.approx(30.0)
    assert asked == [100, 1000]
    session.spec.settings["evaluate"] = {}
    assert pilot.evaluation_seconds(session) == pytest.approx(25.0)


def test_a_pilot_goes_on_for_its_seconds_and_leaves_out_what_warms_up(monkeypatch: pytest.MonkeyPatch):
    """On a clock that only updates move: the first two take 100 s each, all others 3 s."""
    now, steps = [50.0], []

    def update() -> None:
        steps.append(3.0 if len(steps) >= pilot.WARM else 100.0)
        now[0] += steps[-1]

    monkeypatch.setattr(pilot.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(pilot, "update_of", lambda *_: update)
    spec = RunSpec("train", {**PILOTED, "updates": 1000})
    found = pilot.training(spec, choose(spec, "cpu", 1), 1, None, 10.0)
    assert found == 3000.0
    assert len(steps) == pilot.WARM + 4


def test_a_pilot_times_a_real_training(monkeypatch: pytest.MonkeyPatch):
    together = []
    step = pilot.Lockstep.step
    monkeypatch.setattr(pilot.Lockstep, "step", lambda self, turns: together.append(len(turns)) or step(self, turns))
    few, many = (RunSpec("train", {**PILOTED, "updates": n}) for n in (10, 100_000))
    execution = choose(few, "cpu", 1)
    for width in (1, 3):
        chosen = execution | {"width": width, "path": "vectorised" if width > 1 else "looped"}
        assert 0 < pilot.training(few, chosen, width, None, 0.05) < pilot.training(many, chosen, width, None, 0.05)
        assert set(together) == (set() if width == 1 else {width})
