"""Many runs: what is said of their progress, who computes them in which order, and what is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from suite.experiment import Experiment
from suite.papers.catalogue import experiment
from suite.runner import status_file
from suite.runner.execute import RunnerConfig, execute, execute_all, execute_pack
from suite.runner.packing import Pack, RunReport
from suite.runs.run import Outcome
from suite.runs.store import Store
from suite.spec import RunSpec

pytestmark = pytest.mark.usefixtures("papers")


@pytest.fixture
def around(tmp_path) -> RunnerConfig:
    return RunnerConfig(tmp_path / "store")


def draw(**settings: object) -> RunSpec:
    return RunSpec("toy/draw", settings)


def test_what_an_interrupted_session_left_of_a_run_that_is_stored_is_removed(around: RunnerConfig):
    spec = draw()
    execute(spec, experiment, around)
    left = Store(around.store).partial(spec.id) / "left"
    left.mkdir(parents=True)
    (left / "checkpoint").touch()
    assert execute(spec, experiment, around).state == "present"
    assert list((around.store / "partial").iterdir()) == []


class Pool:
    """Stands for the worker processes: who was asked for how many, and what they were handed."""

    made: ClassVar[list[tuple[int, list[str]]]] = []

    def __init__(self, size: int, compute: object):
        self.size = size

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def compute(self, packs: list[Pack], progress: object) -> Iterator[RunReport]:
        Pool.made.append((self.size, sorted(pack.specs[0].experiment for pack in packs)))
        for pack in packs:
            yield from (RunReport(spec, "stored") for spec in pack.specs)


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[str]]]:
    monkeypatch.setattr("suite.runner.workers.WorkerPool", Pool)
    monkeypatch.setattr(Pool, "made", [])
    return Pool.made


def kinds(name: str) -> Experiment:
    return Experiment(lambda: lambda spec, context: Outcome("finished"), timed=name == "timed")


def runs(**counts: int) -> list[RunSpec]:
    return [RunSpec(name, {}, seed) for name, count in counts.items() for seed in range(count)]


@pytest.mark.parametrize(
    ("counts", "workers", "expected"),
    [
        ({"free": 4}, 2, [(2, ["free"] * 4)]),
        ({"free": 2}, 2, [(2, ["free"] * 2)]),
        ({"free": 2}, 5, [(2, ["free"] * 2)]),
        ({"free": 3, "timed": 2}, 4, [(3, ["free"] * 3), (1, ["timed"] * 2)]),
        ({"timed": 3}, 3, [(1, ["timed"] * 3)]),
    ],
)
def test_workers_share_the_runs_and_times_are_taken_one_by_one_at_the_end(
    around: RunnerConfig, pools, counts: dict[str, int], workers: int, expected: list
):
    specs = runs(**counts)
    reports = list(execute_all(specs, kinds, around, workers=workers))
    assert pools == expected
    assert {report.spec for report in reports} == set(specs)


@pytest.mark.parametrize("fails_after", [0, 1, 3])
def test_runs_that_share_their_steps_share_what_was_spent_until_each_ended(
    around: RunnerConfig, monkeypatch: pytest.MonkeyPatch, fails_after: int
):
    """On a processor on which 6 seconds pass between two looks; what is left when all fail was spent on those."""
    looks = iter(range(0, 600, 6))
    monkeypatch.setattr(status_file, "processor_seconds", lambda: next(looks))
    charged: dict[str, float] = {}
    charge = status_file.charge

    def noted(folders, seconds):
        charge(folders, seconds)
        for folder in folders:
            charged[folder.parent.name] = charged.get(folder.parent.name, 0.0) + seconds / len(folders)

    monkeypatch.setattr(status_file, "charge", noted)

    def together(pairs):
        for place in (1, 0, 2)[:fails_after]:
            yield place, Outcome("finished")
        if fails_after < 3:
            raise RuntimeError("no room")

    joint = Experiment(lambda: pytest.fail("computed by itself"), together=lambda: together)
    specs = [RunSpec("joint", {"path": "vectorised"}, seed) for seed in range(3)]
    reports = execute_pack(Pack(tuple(specs)), lambda name: joint, around)
    assert [report.state for report in reports] == [
        "stored" if (1, 0, 2).index(place) < fails_after else "failed" for place in range(3)
    ]
    shares = {0: [2.0, 2.0, 2.0], 1: [5.0, 2.0, 5.0], 3: [5.0, 2.0, 11.0]}[fails_after]
    assert [charged[spec.id] for spec in specs] == shares


def test_two_runs_that_share_their_steps_are_computed_together_and_one_with_a_width_of_one_is_not(around):
    """Nor one of an experiment that cannot."""
    seen = []

    def together(pairs):
        seen.append(len(pairs))
        yield from ((place, Outcome("finished")) for place in range(len(pairs)))

    alone = lambda spec, context: seen.append("alone") or Outcome("finished")
    for path, load in (("vectorised", lambda: together), ("vectorised", None), ("looped", lambda: together)):
        kind = Experiment(lambda: alone, together=load)
        specs = tuple(RunSpec("joint", {"path": path, "joint": load is not None}, seed) for seed in range(2))
        reports = execute_pack(Pack(specs), lambda name, kind=kind: kind, around)
        assert [report.state for report in reports] == ["stored", "stored"]
    assert seen == [2, "alone", "alone", "alone", "alone"]
