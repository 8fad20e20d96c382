"""Counterfeits and the power of rules: a measure that cannot fail is found out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import toy

from suite.claims.estimate import Estimate, exact, point
from suite.claims.judge import Claim
from suite.commands.falsify import Tried
from suite.papers import counterfeits
from suite.papers.artifact import Artifact, Evidence
from suite.papers.counterfeits import as_if, edited, exchanged, forged, told_as
from suite.papers.trials import power, trials
from suite.runs.archive import open_runs
from suite.runs.store import Store
from suite.spec import RunSpec

SLOW, FAST = (tuple(RunSpec("toy/draw", {"does": does}, s) for s in range(3)) for does in ("slow", "fast"))


def runs(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    return {"slow": SLOW, "fast": FAST}


def measured(evidence: Evidence) -> Iterator[tuple[str, Estimate]]:
    slow, fast = (sum(run.results["seconds"] for run in evidence.runs(name)) / 3 for name in ("slow", "fast"))
    yield "gain", point(100 * (1 - fast / slow), spread=1.0, n=3)


def constant(evidence: Evidence) -> Iterator[tuple[str, Estimate]]:
    """A planted fraud: the printed number, whatever the runs say."""
    yield "gain", exact(50.0)


WORDS = ("half the time", "here", "within", "smoke", "cpu-small", "five points")
CLAIM = Claim("toy/fig9/gain", *WORDS, (50.0,), "%", (5.0,), quantity="gain")


@pytest.fixture
def source(tmp_path: Path):
    store = Store(tmp_path, create=True)
    for specs, seconds in ((SLOW, 10.0), (FAST, 5.0)):
        for spec in specs:
            store.commit(spec.id, toy.files_of(spec, seconds=seconds + 0.01 * spec.seed))
    return open_runs(tmp_path)


@pytest.fixture(autouse=True)
def worlds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(counterfeits, "COUNTERFEITS", {})
    monkeypatch.setattr(counterfeits, "GENUINE", {})

    @counterfeits.counterfeit(CLAIM.id)
    def sides_exchanged(evidence: Evidence) -> Evidence:
        return exchanged(evidence, "slow", "fast")

    @counterfeits.counterfeit(CLAIM.id)
    def treatment_off(evidence: Evidence) -> Evidence:
        return as_if(evidence, "fast", "slow")


def tried(source, measure) -> Tried:
    from suite.claims.judge import judge

    artifact = Artifact("toy/fig9", "Gain", runs, (measure,))
    (value,) = [value for _, value in measure(Evidence(source, runs("smoke"), "smoke"))]
    verdict = judge(CLAIM, value, "smoke")
    assert verdict.verdict == "reproduced"
    return Tried(verdict, tuple(trials(verdict, artifact, source)), power(CLAIM, value))


def test_a_measure_of_the_runs_flips_in_worlds_where_the_claim_is_false(source):
    found = tried(source, measured)
    assert [trial.ending for trial in found.trials] == ["flips", "flips"], found.trials
    assert found.fault == ""


def test_a_constant_returned_as_measurement_is_a_fault(source):
    found = tried(source, constant)
    assert [trial.ending for trial in found.trials] == ["fails", "fails"]
    assert "sides_exchanged: reproduced" in found.fault


def test_a_claim_without_a_counterfeit_is_a_fault(source, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(counterfeits, "COUNTERFEITS", {})
    assert "no counterfeit" in tried(source, measured).fault


def test_a_world_that_raises_is_a_failure_with_its_reason(source, monkeypatch: pytest.MonkeyPatch):
    def broken(evidence: Evidence) -> Evidence:
        raise KeyError("no such group")

    monkeypatch.setattr(counterfeits, "COUNTERFEITS", {CLAIM.id: [broken]})
    (trial,) = tried(source, measured).trials
    assert trial.ending == "fails"
    assert "no such group" in trial.found


def test_worlds_change_what_runs_say_and_not_what_they_are(source):
    evidence = Evidence(source, runs("smoke"), "smoke")
    changed = exchanged(evidence, "slow", "fast")
    assert [run.spec for run in changed.runs("slow")] == list(SLOW)
    assert [run.results["seconds"] for run in changed.runs("slow")] == [5.0, 5.01, 5.02]
    doubled = edited(evidence, lambda run: forged(run, {"seconds": 2 * run.results["seconds"]}), "fast")
    assert [run.results["seconds"] for run in doubled.runs("fast")] == [10.0, 10.02, 10.04]
    assert [run.results["seconds"] for run in doubled.runs("slow")] == [10.0, 10.01, 10.02]
    slow, fast = evidence.runs("slow")[0], doubled.runs("fast")[1]
    assert told_as(slow, fast).results == fast.results
    assert told_as(slow, fast).spec == slow.spec


def test_a_world_may_not_invent_results(source):
    run = Evidence(source, runs("smoke"), "smoke").runs("slow")[0]
    with pytest.raises(ValueError, match="minutes"):
        forged(run, {"minutes": 1.0})


def test_power_is_the_departure_caught_four_times_in_five():
    """A normal measurement with half-width 1.96 sigma, judged by its whole interval, at exactly that departure."""
    import numpy as np

    (departure,) = power(CLAIM, point(50.0, spread=1.96))
    draws = 50.0 + departure + np.random.default_rng(0).normal(size=20_000)
    caught = np.mean(draws - 1.96 > 55.0)
    assert caught == pytest.approx(0.8, abs=0.01)
    assert power(CLAIM, exact(50.0)) == (5.0,)
