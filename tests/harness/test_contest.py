"""Runs that two sources hold: contested ones are named and decide nothing, those made elsewhere seeds judge."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import toy

from suite.claims.estimate import over_seeds as exact
from suite.commands.check import held_twice, judge_selection, show
from suite.papers import measurement
from suite.papers.grades import Rests
from suite.papers.measurement import Measurement
from suite.runs.archive import Archive, Layered, export
from suite.runs.comparison import implausible, relation, survey
from suite.runs.run import CHECKSUMS, Outcome, Run, encode, seal, verified
from suite.runs.store import Store
from suite.spec import RunSpec

HERE = {"source": "s", "versions": {"torch": "1"}, "execution": {"path": "looped"}, "machine": {"cpu": "c"}}
ELSEWHERE = HERE | {"execution": {"path": "captured"}}


def run(value: float = 1.0, seconds: float = 1.0, seed: int = 0, where: dict = HERE, curve: float = 0.0) -> Run:
    spec = RunSpec("toy/draw", {"profile": "smoke", "sleep": 0.0}, seed)
    table = pd.DataFrame({"x": [curve], "seconds": [seconds]})
    return verified(
        spec.id, encode(spec, where, Outcome("finished", {"value": value, "seconds": seconds}, {"t": table}))
    )


@pytest.mark.parametrize(
    ("other", "timed", "expected"),
    [
        (run(), False, "equal"),
        (run(seconds=2.0), False, "timed again"),
        (run(value=2.0), True, "timed again"),
        (run(where=ELSEWHERE), False, "confirmed"),
        (run(value=2.0, where=ELSEWHERE), False, "other execution"),
        (run(value=2.0, where=HERE | {"source": "t"}), False, "other execution"),
        (run(value=2.0), False, "contested"),
        (run(curve=1.0), False, "contested"),
        (run(value=2.0, where=ELSEWHERE), True, "other execution"),
    ],
)
def test_how_two_versions_relate(other: Run, timed: bool, expected: str):
    assert relation(run(), other, timed=timed) == expected
    assert relation(other, run(), timed=timed) == expected


def test_a_survey_names_what_is_contested_and_what_cannot_be_judged():
    held = {r.id: [r, run(2.0)] for r in [run()]}
    assert list(survey(held, lambda name: False).contested) == [run().id]
    assert survey(held, lambda name: True).contested == {}
    alone = survey({run().id: [run(), run(9.0, where=ELSEWHERE)]}, lambda name: False)
    assert (alone.contested, alone.untold) == ({}, {run().id})
    seeds = {
        run(seed=i).id: [run(5.0 if i == 3 else 1 + i / 100, seed=i), run(1 + i / 50, seed=i, where=ELSEWHERE)]
        for i in range(6)
    }
    found = survey(seeds, lambda name: False)
    assert list(found.contested) == [run(seed=3).id]
    assert "value is 5" in found.lines()[-1]
    assert survey({run().id: [run()]}, lambda name: False).lines() == []


def said(**results: object) -> SimpleNamespace:
    """All that is read of a run where its seeds judge it."""
    return SimpleNamespace(results=results)


@pytest.mark.parametrize(
    ("seeds", "alarm", "numbers", "t"),  # Student's t from a table, at half the alarm of each number
    [(10, 0.01, 1, 3.2498), (10, 0.02, 2, 3.2498), (10, 0.1, 1, 1.8331), (4, 0.02, 1, 4.5407)],
)
def test_the_interval_of_a_further_run_is_student_s(seeds: int, alarm: float, numbers: int, t: float):
    values = [float((-1) ** i) for i in range(seeds)]
    reach = t * (seeds / (seeds - 1)) ** 0.5 * (1 + 1 / seeds) ** 0.5
    names = [f"n{i}" for i in range(numbers)]
    others = [said(**dict.fromkeys(names, value)) for value in values]
    at = lambda value: implausible(said(**(dict.fromkeys(names, 0.0) | {"n0": value})), others, alarm)
    assert [at(0.999 * reach), at(-0.999 * reach)] == ["", ""]
    assert at(1.001 * reach).startswith("n0 is")
    assert at(-1.001 * reach).startswith("n0 is")
    assert implausible(said(n0=3.0), others[:2], alarm) is None, "two seeds say nothing"


def test_seeds_that_agree_forgive_a_millionth_of_their_size_times_student_s_t():
    """5.8409 from a table, at 0.005 and three degrees of freedom."""
    reach = 5.8409 * 1e-6 * 1.25**0.5
    seeds = [said(value=-2.0)] * 4
    assert implausible(said(value=-2.0 * (1 + 0.99 * reach)), seeds, 0.01) == ""
    assert implausible(said(value=-2.0 * (1 + 1.01 * reach)), seeds, 0.01)
    assert implausible(said(value=0.0), [said(value=0.0)] * 4, 0.01) == ""


def test_only_plain_finite_numbers_that_are_no_times_are_judged():
    seeds = [said(value=1.0 + i, name="a", good=True, lost=float("nan"), seconds=1.0 + i / 9) for i in range(4)]
    other = said(value=2.0, name="b", good=False, lost=float("inf"), seconds=1e9)
    assert implausible(other, seeds, 0.01) == ""


@pytest.mark.parametrize(("odd", "t"), [(1, 3.2498), (2, 3.6897)])
def test_a_survey_alarms_once_in_a_hundred_however_many_runs_it_judges(odd: int, t: float):
    """Ten seeds of either execution, of which ``odd`` differ, the first of them by a little more or less."""
    told = []
    for share in (0.999, 1.001):
        reach = share * t * (10 / 9) ** 0.5 * 1.1**0.5
        held = {}
        for seed in range(10):
            there = float((-1) ** seed)
            here = reach if seed == 0 else 0.0 if seed < odd else there
            held[run(seed=seed).id] = [run(here, seed=seed), run(there, seed=seed, where=ELSEWHERE)]
        told.append(list(survey(held, lambda name: False).contested))
    assert told == [[], [run(seed=0).id]]


def test_of_many_versions_the_one_that_differs_most_counts():
    versions = [run(), run(seconds=2.0), run(2.0), run(2.0, where=ELSEWHERE)]
    found = survey({run().id: versions}, lambda name: False)
    assert found.kinds == {run().id: "contested"}


@pytest.fixture
def layers(tmp_path: Path, papers, monkeypatch: pytest.MonkeyPatch):
    """A store over exported evidence: the toy's three draws in both, changed in the store as asked."""
    monkeypatch.delenv("TOY_SLEEP", raising=False)

    def made(where: dict, *values: float) -> Layered:
        specs = [spec for group in toy.runs("smoke").values() for spec in group]
        table = pd.DataFrame({"draw": [0.5]})
        files = lambda spec, value, env: encode(spec, env, Outcome("finished", {"value": value}, {"draws": table}))
        store = Store(tmp_path / "store", create=True)
        for spec, value in zip(specs, values, strict=True):
            store.commit(spec.id, files(spec, value, where))
        export({spec.id: files(spec, 0.5, HERE) for spec in specs}, tmp_path / "evidence.zip", {})
        return Layered([store, Archive(tmp_path / "evidence.zip")])

    return made


def verdict_of(source: Layered, claim: str):
    found = {v.claim.id: v for v in judge_selection(["toy/table1"], "smoke", source)}
    return found[claim], held_twice(["toy/table1"], "smoke", source)


def test_another_execution_within_the_spread_is_told_and_decides(layers):
    verdict, several = verdict_of(layers(ELSEWHERE, 0.5, 0.5, 0.5), "toy/table1/share")
    assert (verdict.verdict, verdict.red) == ("reproduced", False)
    assert several.lines() == ["3 runs are held in several versions: 3 confirmed; the first source decides"]


def test_the_command_line_names_contested_runs(sgd, tmp_path: Path):
    """A number is changed and the folder sealed again; exported, merged and checked it is told each time."""
    assert sgd("run", "toy/table1", "--profile", "smoke", "--store", "a").returncode == 0
    assert sgd("export", "--store", "a", "--out", "a.zip").returncode == 0
    store = Store(tmp_path / "a")
    forged = sorted(store.ids())[0]
    files = dict(store.files(forged))
    outcome = json.loads(files["outcome.json"])
    outcome["results"]["value"] += 1.0
    files["outcome.json"] = json.dumps(outcome).encode()
    del files[CHECKSUMS]
    files[CHECKSUMS] = seal(files)
    Store(tmp_path / "b", create=True).commit(forged, files)
    assert sgd("check", "toy/table1", "--store", "b").returncode == 1  # another claim of the toy is red by design
    merged = sgd("merge", "a.zip", "--store", "b")
    assert merged.returncode == 1
    assert f"CONTESTED {forged}" in merged.stdout
    checked = sgd("check", "toy/table1", "--store", "b")
    assert f"CONTESTED run {forged}" in checked.stderr
    (line,) = (line for line in checked.stdout.splitlines() if line.split()[:1] == ["share"])
    assert line.rstrip().endswith("RED inconclusive")


@pytest.mark.parametrize(("value", "shown"), [(0.5, True), (math.nan, False), (math.inf, True)])
def test_a_smaller_profile_is_shown_beside_a_claim_unless_it_is_no_number(
    papers, tmp_path: Path, monkeypatch, value: float, shown: bool
):
    measured = Measurement({"mean": exact(value)}, rests={"mean": Rests(())})
    at = lambda artifact, source, profile, claimed: measured if profile == "smoke" else Measurement()
    monkeypatch.setattr(measurement, "measure", at)
    found = {v.claim.id: v for v in judge_selection(["toy/table1"], None, Store(tmp_path, create=True))}
    verdict = found["toy/table1/mean"]  # which asks for reduced
    assert (verdict.verdict, verdict.measured, verdict.proxy is not None) == ("not run", None, shown)


THREADS = HERE | {"execution": {"path": "looped", "threads": 2}}


@pytest.mark.parametrize("where", [THREADS, THREADS | {"machine": {"cpu": "another"}, "device": {"device": "cuda"}}])
def test_arithmetic_is_contested_whatever_executed_it(where: dict):
    """A number is changed and, with it, one word of what is said to have executed it."""
    for forged in (run(2.0, where=where), run(curve=1.0, where=where), run(math.nan, where=where)):
        assert relation(run(), forged, timed=False) == "other execution"
        assert relation(run(), forged, timed=False, arithmetic=True) == "contested"
    found = survey({run().id: [run(), run(2.0, where=where)]}, lambda name: False, lambda name: True)
    assert "two versions of the same source hold different tables" in found.contested[run().id]


def test_arithmetic_may_round_as_its_machine_does_and_change_with_its_code():
    assert relation(run(), run(1 + 1e-9, where=THREADS), timed=False, arithmetic=True) == "confirmed"
    other_code = run(2.0, where=HERE | {"source": "t"})
    assert relation(run(), other_code, timed=False, arithmetic=True) == "other execution"


def test_a_verdict_that_too_few_seeds_support_is_marked(layers, capsys: pytest.CaptureFixture[str]):
    """One run is held in another execution's version too, and decides; nothing tells whether it may."""
    source = layers(ELSEWHERE, 0.5, 0.5, 0.7)
    store, evidence = source.sources
    *others, odd = sorted(store.ids(), key=lambda run_id: store.read(run_id).results["value"])
    for run_id in others:
        store.refuse(run_id)
    verdict, several = verdict_of(source, "toy/table1/share")
    assert (verdict.disputed, several.untold) == (True, {odd})
    assert verdict.why.endswith(f"another version of 1 of its runs, {odd} first, has too few seeds to be judged")
    show([verdict], verbose=False, closing=[])
    printed = capsys.readouterr().out
    assert "reproduced, one run, disputed" in " ".join(printed.split())
    assert odd in printed
    assert not verdict_of(Layered([evidence]), "toy/table1/share")[0].disputed
