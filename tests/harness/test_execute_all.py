"""Many runs: what is said of their progress, who computes them in which order, and what is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from suite.experiment import Experiment
from suite.runner.execute import RunnerConfig, execute_all
from suite.runner.workers import RunReport
from suite.runs.run import Outcome
from suite.spec import RunSpec

pytestmark = pytest.mark.usefixtures("papers")


class Pool:
    """Stands for the worker processes: who was asked for how many, and what they were handed."""

    made: ClassVar[list[tuple[int, list[str]]]] = []

    def __init__(self, size: int, compute: object):
        self.size = size

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def compute(self, specs: list[RunSpec], progress: object) -> Iterator[RunReport]:
        Pool.made.append((self.size, sorted(spec.experiment for spec in specs)))
        yield from (RunReport(spec, "stored") for spec in specs)


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[str]]]:
    monkeypatch.setattr("suite.runner.execute.WorkerPool", Pool)
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


def test_the_costliest_run_comes_first_and_stages_one_after_another(around: RunnerConfig):
    """What has no stage comes last."""
    done: list[int] = []
    kind = Experiment(lambda: lambda spec, context: done.append(spec.seed) or Outcome("finished"), lambda s: s.seed)
    specs = runs(costs=4)
    list(execute_all(specs, lambda name: kind, around))
    assert done == [3, 2, 1, 0]
    done.clear()
    others = RunnerConfig(around.store / "again")
    stages = {specs[3].id: 1, specs[2].id: -1, specs[0].id: 1}
    list(execute_all(specs, lambda name: kind, others, stages=stages))
    assert done == [2, 3, 0, 1]
