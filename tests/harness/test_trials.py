"""Trials and worlds: what becomes of a claim where it is false, or true, and what a world may change of the runs."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest
import toy

from suite.claims.estimate import Estimate, exact, interval, point
from suite.claims.judge import Claim, KnownDifference, Verdict
from suite.papers import counterfeits
from suite.papers.artifact import Artifact, Evidence, Missing
from suite.papers.counterfeits import counterfeit, edited, exchanged, forged, genuine, replaced, rerun, told_as
from suite.papers.trials import counted, power, trials
from suite.runs.store import Outcome, Store, encode
from suite.spec import RunSpec

WORDS = ("ten", "here", "within", "smoke", "cpu-small", "a point")
CLAIM = Claim("toy/fig9/value", *WORDS, (10.0,), tolerance=(1.0,), quantity="value")
SPECS = {name: tuple(RunSpec("toy/draw", {"name": name}, s) for s in range(2)) for name in ("a", "b")}
VALUES = {"a": 10.0, "b": 20.0}
NORMAL = 0.8416212335729143  # below which a standard normal number lies four times in five


@pytest.fixture(autouse=True)
def no_worlds(monkeypatch):
    for table in ("COUNTERFEITS", "GENUINE"):
        monkeypatch.setattr(counterfeits, table, {})


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path, create=True)
    for name, specs in SPECS.items():
        for spec in specs:
            table = pd.DataFrame({"x": [VALUES[name] + spec.seed]})
            results = {"value": VALUES[name] + spec.seed, "other": 1.0}
            where = {"machine": {}, "execution": {}}
            made.commit(spec.id, encode(spec, where, Outcome("finished", results, {"t": table, "u": table})))
    return made


@pytest.fixture
def evidence(store):
    return Evidence(store, SPECS, "smoke")


def measures(spread=0.0):
    def measure(evidence):
        runs = evidence.runs("a")
        yield "value", point(runs[0].results["value"], spread=spread)
        yield "shown", exact(runs[0].results["other"])

    return measure


def tried(store, verdict="reproduced", claim=CLAIM, measure=None, cache=None):
    artifact = Artifact("toy/fig9", "Value", lambda profile: SPECS, (measure or measures(),))
    return trials(Verdict(claim, verdict, "", exact(10.0), "smoke"), artifact, store, cache)


def setting(value):
    return lambda evidence: edited(evidence, lambda run: forged(run, {"value": value}), "a")


@pytest.mark.parametrize(
    ("value", "spread", "found", "ending"),
    [
        (20.0, 0.0, "not reproduced", "flips"),
        (11.0, 0.0, "reproduced", "fails"),
        (11.5, 1.0, "inconclusive", "weak"),
    ],
)
def test_a_reproduced_claim_must_fail_in_its_counterfeits(store, value, spread, found, ending):
    counterfeit(CLAIM.id)(setting(value))
    (trial,) = tried(store, measure=measures(spread))
    assert (trial.claim, trial.wanted, trial.found, trial.ending) == (CLAIM.id, "not reproduced", found, ending)
    assert trial.measured == point(value, spread=spread)


@pytest.mark.parametrize(
    ("value", "found", "ending"), [(10.0, "reproduced", "flips"), (30.0, "not reproduced", "fails")]
)
def test_a_claim_that_failed_must_hold_in_its_genuine_worlds(store, value, found, ending):
    genuine(CLAIM.id, "toy/fig9/another")(setting(value))
    counterfeit(CLAIM.id)(setting(0.0))
    (trial,) = tried(store, "not reproduced")
    assert (trial.wanted, trial.found, trial.ending) == ("reproduced", found, ending)
    assert set(counterfeits.GENUINE) == {CLAIM.id, "toy/fig9/another"}


@pytest.mark.parametrize("verdict", ["inconclusive", "not run", "known difference"])
def test_what_is_not_decided_has_no_trial(store, verdict):
    counterfeit(CLAIM.id)(setting(20.0))
    genuine(CLAIM.id)(setting(10.0))
    assert tried(store, verdict) == []


def test_a_known_difference_is_judged_with_what_shows_its_cause(store):
    known = replace(CLAIM, known_difference=KnownDifference("why", "shown"))
    counterfeit(CLAIM.id)(setting(20.0))
    assert [trial.found for trial in tried(store, claim=known)] == ["known difference"]


def test_a_quantity_that_is_gone_or_no_number_fails_with_its_reason(store):
    def gone(evidence):
        yield "another", exact(1.0)

    def lacking(evidence):
        raise Missing("no run of it")
        yield

    counterfeit(CLAIM.id)(setting(20.0))
    for measure, found in ((gone, "the quantity is gone"), (lacking, "no run of it")):
        (trial,) = tried(store, measure=measure)
        assert (trial.ending, trial.found, trial.measured) == ("fails", found, None)

    def endless(evidence):
        yield "value", interval(10.0, 0.0, math.inf)

    (trial,) = tried(store, measure=endless)
    assert (trial.ending, trial.found) == ("fails", "not finite")


def test_a_world_is_measured_once_for_all_claims_of_an_artifact(store):
    seen, cache = [], {}

    @counterfeit(CLAIM.id, "toy/fig9/again")
    def world(evidence):
        seen.append(evidence.profile)
        return setting(20.0)(evidence)

    for claim in (CLAIM, replace(CLAIM, id="toy/fig9/again")):
        assert [trial.ending for trial in tried(store, claim=claim, cache=cache)] == ["flips"]
    assert seen == ["smoke"]


@pytest.mark.parametrize(
    ("empirical", "verdict", "expected"),
    [
        (True, "reproduced", True),
        (True, "not reproduced", True),
        (True, "inconclusive", False),
        (True, "not run", False),
        (False, "reproduced", False),
    ],
)
def test_only_an_empirical_claim_that_was_decided_must_be_able_to_fail(empirical, verdict, expected):
    assert counted(Verdict(replace(CLAIM, empirical=empirical), verdict, "")) is expected


# --- power


def rule(kind, printed=(), **changes):
    return Claim("toy/fig9/value", "x", "here", kind, "smoke", "cpu-small", "why", printed, **changes)


def test_each_value_has_the_power_of_its_own_interval_and_tolerance():
    several = rule("within", (10.0, 20.0), tolerance=(1.0, 2.0))
    ours = interval((10.0, 20.0), (10.0, 19.02), (10.0, 20.98))
    assert power(several, ours) == pytest.approx((1.0, 2.0 + 0.98 + NORMAL / 2))
    relative = rule("bound", (10.0, 20.0), side="lower", relative=0.1)
    assert power(relative, exact((10.0, 20.0))) == (1.0, 2.0)


@pytest.mark.parametrize(
    "claim",
    [rule("order", order=("a", "b", "c", "d"), tolerance=(5.0,)), rule("holds", tolerance=(5.0,))],
)
def test_a_rule_without_a_printed_number_has_no_tolerance_to_exceed(claim):
    assert power(claim, exact((1.0, 1.0, 1.0))) == (0.0, 0.0, 0.0)
    assert power(claim, interval(1.0, -0.96, 2.96)) == pytest.approx((1.96 + NORMAL,))


def test_an_endless_interval_catches_nothing():
    assert power(CLAIM, interval(10.0, -math.inf, 11.0)) == (math.inf,)


# --- worlds


def read(evidence, group):
    return [run.results["value"] for run in evidence.runs(group)]


def test_an_edit_changes_the_named_groups_or_all_of_them(evidence):
    doubled = lambda run: forged(run, {"value": 2 * run.results["value"]})
    every, one = edited(evidence, doubled), edited(evidence, doubled, "b")
    assert (read(every, "a"), read(every, "b")) == ([20.0, 22.0], [40.0, 42.0])
    assert (read(one, "a"), read(one, "b")) == ([10.0, 11.0], [40.0, 42.0])
    assert one.source.ids() == evidence.source.ids()
    assert (one.groups, one.profile) == (evidence.groups, "smoke")


def test_runs_that_are_not_stored_stay_so(evidence):
    more = Evidence(evidence.source, {**SPECS, "c": (RunSpec("toy/draw", {"name": "c"}),)}, "smoke")
    changed = edited(more, lambda run: forged(run, {"value": 0.0}))
    assert read(changed, "a") == [0.0, 0.0]
    with pytest.raises(Missing):
        changed.runs("c")


def test_a_forged_run_keeps_what_is_not_replaced_however_often_it_is_forged(evidence):
    run = evidence.runs("a")[0]
    told = forged(
        forged(run, {"value": 3.0}, t=pd.DataFrame({"x": [7.0]})), {"other": 4.0}, u=pd.DataFrame({"x": [8.0]})
    )
    assert told.results == {"value": 3.0, "other": 4.0}
    assert [told.curve(name)["x"].tolist() for name in "tu"] == [[7.0], [8.0]]
    assert forged(run, t=pd.DataFrame({"x": [7.0]})).results == {"value": 10.0, "other": 1.0}
    assert forged(run, {"value": 3.0}).curve("u")["x"].tolist() == [10.0]
    assert run.results["value"] == 10.0
    with pytest.raises(ValueError, match=r"has no \['v'\]"):
        forged(run, v=pd.DataFrame({"x": [7.0]}))


def test_what_was_forged_goes_along_when_it_is_told_as_another_run(evidence):
    (a, _), (b, _) = evidence.runs("a"), evidence.runs("b")
    told = told_as(a, forged(b, {"value": 3.0}, t=pd.DataFrame({"x": [7.0]})))
    assert (told.id, told.spec, told.results["value"], told.results["other"]) == (a.id, a.spec, 3.0, 1.0)
    assert told.curve("t")["x"].tolist() == [7.0]
    assert told.curve("u")["x"].tolist() == [20.0]


def test_worlds_can_be_laid_over_each_other(evidence):
    changed = exchanged(
        replaced(evidence, {SPECS["a"][0].id: forged(evidence.runs("a")[0], {"value": 3.0})}), "a", "b"
    )
    assert (read(changed, "a"), read(changed, "b")) == ([20.0, 21.0], [3.0, 11.0])


def test_groups_of_unequal_size_cannot_change_places(evidence):
    uneven = Evidence(evidence.source, {"a": SPECS["a"], "b": SPECS["b"][:1]}, "smoke")
    with pytest.raises(ValueError):
        exchanged(uneven, "a", "b")


def test_runs_computed_again_with_other_settings_are_told_under_the_old_ones(papers, tmp_path):
    specs, made = toy.runs("smoke")["draws"], Store(tmp_path / "toy", create=True)
    for spec in specs:
        where = {"machine": {}, "execution": {"path": "looped"}}
        made.commit(spec.id, encode(spec, where, Outcome("finished", {"value": -1.0}, {})))
    again = rerun(Evidence(made, {"draws": specs}, "smoke"), lambda settings: settings | {"value": 5.0}, "draws")
    runs = again.runs("draws")
    assert [run.spec for run in runs] == list(specs)
    assert all(5.0 <= run.results["value"] < 6.0 for run in runs)
    assert all(run.results["value"] == 5.0 + run.curve("draws")["draw"][0] for run in runs)
    assert isinstance(exact(1.0), Estimate)
