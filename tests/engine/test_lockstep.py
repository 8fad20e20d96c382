"""Packs by hand: who shares a step with whom, what each is charged, and which packs there are in which order."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from engine_cases import digits

from suite.experiment import Experiment
from suite.runner import packing
from suite.runner.packing import Lockstep, packs, run_together
from suite.runs.run import Outcome
from suite.spec import RunSpec
from suite.training.numerics import choose


class Session:
    """A run of so many turns; remembers what was asked of it."""

    def __init__(self, turns: int, fails: str = ""):
        self.left, self.fails, self.problem = turns, fails, SimpleNamespace()
        self.called: list[str] = []
        self.charged: list[float] = []

    @property
    def over(self) -> bool:
        return self.left == 0

    def begin(self) -> None:
        self.called.append("begin")
        if self.fails == "begin":
            raise KeyError("cannot begin")

    def share_steps(self) -> None:
        self.called.append("share")

    def turns(self):
        return itertools.count()

    def charge(self, seconds: float) -> None:
        self.charged.append(seconds)

    def close_turn(self) -> None:
        self.left -= 1

    def outcome(self) -> Outcome:
        return Outcome("finished", {"turns": len(self.charged)})


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The slots of each step; a step takes six seconds and computes nothing, and fails for those it is told to."""
    made: list[list[int]] = []
    clock = itertools.count(step=6.0)

    def step(self: Lockstep, turns):
        made.append(sorted(turns))
        return {slot: KeyError("no gradient") for slot in turns if self.live[slot].fails == "step"}

    monkeypatch.setattr("suite.training.gradients.looped.Vectorised.of_run", lambda problem: None)
    monkeypatch.setattr(packing.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(Lockstep, "step", step)
    return made


def test_a_step_is_charged_in_equal_shares_to_those_who_took_part(steps):
    sessions = {0: Session(1), 1: Session(3), 2: Session(2)}
    ended = {slot: outcome.results["turns"] for slot, outcome in Lockstep(sessions, 3).run()}
    assert ended == {0: 1, 1: 3, 2: 2}
    assert [session.charged for session in sessions.values()] == [[2.0], [2.0, 3.0, 6.0], [2.0, 3.0]]
    assert [slots for slots in steps if slots] == [[0, 1, 2], [1, 2], [1]]
    assert all(session.called == ["begin", "share"] for session in sessions.values())


def test_who_fails_leaves_the_others(steps):
    sessions = {0: Session(2, "begin"), 1: Session(2), 3: Session(2, "step")}
    ended = dict(Lockstep(sessions, 4).run())
    assert {slot: type(outcome) for slot, outcome in ended.items()} == {0: KeyError, 1: Outcome, 3: KeyError}
    assert sessions[1].charged == [3.0, 6.0]
    assert sessions[3].left == 2


EXECUTION = choose(RunSpec("train"), "cpu", 1) | {"path": "vectorised"}


def test_runs_that_do_not_fit_together_step_apart(steps, monkeypatch: pytest.MonkeyPatch):
    """Of another width, or of a slot that is taken; each hears of the first of its own pack."""
    monkeypatch.setattr("suite.training.numerics.apply", lambda execution: None)
    context = lambda slot, width=2: SimpleNamespace(execution={**EXECUTION, "width": width, "slot": slot})
    runs = [(digits(i), context(*at)) for i, at in enumerate([(0,), (1, 3), (1,), (0, 3), (0,)])]
    made: list[tuple[int, int | None]] = []

    def build(spec, context, first):
        made.append((spec.seed, None if first is None else first.seed))
        session = Session(1)
        session.seed = spec.seed
        return session

    assert {place for place, _ in run_together(runs, build)} == set(range(5))
    assert [slots for slots in steps if slots] == [[0, 1], [0, 1], [0]]
    assert made == [(0, None), (2, 0), (3, None), (1, 3), (4, None)]


def kind(cost, key="all") -> Experiment:
    return Experiment(lambda: None, cost, pack=lambda spec, device: key)


def runs(count: int, name: str = "alike") -> list[RunSpec]:
    return [RunSpec(name, {}, seed) for seed in range(count)]


@pytest.mark.parametrize(
    ("count", "workers", "sizes"),
    [
        (16, 1, [16]),
        (17, 1, [9, 8]),
        (33, 1, [11, 11, 11]),
        (4, 2, [2, 2]),
        (5, 2, [3, 2]),
        (2, 5, [1, 1]),
        (1, 1, [1]),
    ],
)
def test_a_group_is_parted_for_the_workers_and_into_packs_of_sixteen(count, workers, sizes):
    made = packs(runs(count), lambda name: kind(lambda spec: 1.0), "cpu", workers)
    assert sorted((len(pack.specs) for pack in made), reverse=True) == sizes


def test_the_costliest_pack_comes_first_whatever_each_of_its_runs_costs():
    kinds = {"many": kind(lambda spec: 2.0), "one": kind(lambda spec: 5.0), "small": kind(lambda spec: 1.0)}
    specs = [*runs(1, "small"), *runs(1, "one"), *runs(3, "many")]
    assert [pack.specs[0].experiment for pack in packs(specs, kinds.__getitem__, "cpu", 1)] == [
        "many",
        "one",
        "small",
    ]


def test_stages_come_one_after_another_and_share_no_step():
    """What has no stage belongs to the first, 0."""
    alike = kind(lambda spec: 1.0 + spec.seed)
    specs = runs(4)
    stages = {specs[3].id: 1, specs[2].id: -1, specs[0].id: 1}
    made = packs(specs, lambda name: alike, "cpu", 1, stages)
    assert [[spec.seed for spec in pack.specs] for pack in made] == [[2], [1], [3, 0]]
