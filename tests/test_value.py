"""What is computed first when time is short."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.claims.judge import Claim
from suite.commands import planning as value
from suite.commands.planning import Planned, Stage, decidable, deciding, forecast, ranked, within
from suite.papers.artifact import Artifact, Paper, Quantity
from suite.spec import RunSpec

SECONDS = {"cheap": 10.0, "dear": 100.0, "shared": 50.0, "gpu": 1000.0, "told": 1.0}  # by run
SPECS = {name: RunSpec("toy/run", {"name": name}) for name in SECONDS}


def artifact(name: str, *runs: str) -> Artifact:
    wanted = {run: (SPECS[run],) for run in runs}
    return Artifact(f"toy/{name}", name, lambda profile: wanted if profile != "smoke" else {"told": (SPECS["told"],)})


def claims(name: str, count: int, **changes: str) -> list[Claim]:
    plain = {"profile": "reduced", "needs": "cpu-small", **changes}
    return [
        Claim(f"toy/{name}/{i}", "says", "where", "holds", because="reason", printed=(1.0,), **plain)
        for i in range(count)
    ]


@pytest.fixture
def selection(monkeypatch: pytest.MonkeyPatch):
    artifacts = [
        artifact("one-in-100", "dear"),
        artifact("two-in-10", "cheap"),
        artifact("three-in-60", "shared", "cheap"),
        artifact("needs-a-gpu", "gpu"),
        artifact("nothing-open", "told"),
    ]
    published = [
        *claims("one-in-100", 1),
        *claims("two-in-10", 2),
        *claims("three-in-60", 3),
        *claims("needs-a-gpu", 1, needs="gpu"),
        *claims("needs-a-gpu", 9),
        *claims("nothing-open", 5, profile="smoke"),
        *claims("nothing-open", 5, lacks="a cluster"),
        *claims("nothing-open", 5, profile="paper"),
        *claims("nothing-open", 5, needs="imagenet"),
    ]
    monkeypatch.setattr(value, "published", lambda paper: tuple(published))
    return [(Paper("toy", "", "", tuple(artifacts), {}), artifacts)]


def planned(selection) -> list[Planned]:
    users: dict[str, list[str]] = {}
    for _, artifacts in selection:
        for each in artifacts:
            for run in each.runs("reduced"):
                users.setdefault(run, []).append(each.id)
    return [Planned(SPECS[name], SECONDS[name], 0, (), tuple(ids)) for name, ids in users.items()]


def order(selection, device: str, *have: str) -> list[list[str]]:
    ids = {SPECS[name].id for name in (*have, "told")}
    made = ranked(selection, planned(selection), "reduced", device, ids)
    return [[p.spec.settings["name"] for p in stage.runs] for stage in made]


def test_most_claims_per_second_first_and_nothing_open_last(selection):
    """Two in 10 s; that run is shared, so three more in 50 s; one in 100 s; nine in 1000 s decide the least."""
    assert order(selection, "cpu") == [["cheap"], ["shared"], ["dear"], ["gpu"]]


def told(made: list[Stage], budget: float, workers: int) -> list[str]:
    return forecast(deciding(made, budget, workers), budget, workers)


def test_what_a_budget_decides_is_told_beforehand(selection):
    """Two claims after 10 s, three more after 60; with two workers the run of 50 s still takes 50."""
    made = ranked(selection, planned(selection), "reduced", "cuda", {SPECS["told"].id})
    first = told(made, 159.0, 1)
    assert first[0].endswith("one run after another: 5 claims by 2 artifacts")
    assert [line.split(":")[0].split()[-1] for line in first[1:]] == ["toy/two-in-10", "toy/three-in-60"]
    assert told(made, 160.0, 1)[0].endswith("6 claims by 3 artifacts")
    assert told(made, 60.0, 2)[0].endswith("2 runs side by side: 5 claims by 2 artifacts")
    assert told(made, 59.0, 2)[0].endswith("2 claims by 1 artifact")
    assert len(told(made, 1e6, 1)) == 1 + 4  # what decides nothing is not told
    part = [each for each in planned(selection) if each.spec != SPECS["cheap"]]
    left = ranked(selection, part, "reduced", "cuda", {SPECS["told"].id})
    assert told(left, 1e6, 1)[0].endswith("11 claims by 2 artifacts")  # without all of its runs none decides any
    cheap, _, dear, *_ = made
    assert within([dear, cheap], 99.0, 1) == ([cheap], [dear])  # what does not fit holds nothing up


def test_a_claim_whose_runs_are_stored_is_not_decided_again(selection):
    """Of an artifact that is stored in part only the claims are counted that read a missing run."""
    read = {
        "a": ("cheap",),
        "b": ("shared",),
        "both": ("cheap", "shared"),
        "chosen": lambda frame: filter(frame.whole, ["cheap"]),
        "by results": lambda frame: [frame.one("cheap")["result"]],
    }
    quantities = {name: Quantity(lambda frame: 1.0, groups) for name, groups in read.items()}
    panel = Artifact("toy/t", "t", artifact("t", "cheap", "shared").runs, quantities=quantities)
    (claim,) = claims("t", 1)
    left = lambda name: decidable(replace(claim, quantity=name), panel, "reduced", "cpu", {SPECS["cheap"].id})
    found = {name for name in read if left(name)}
    assert found == {"b", "both", "by results"}


def test_no_run_is_lost_or_made_twice(selection):
    for device in ("cpu", "cuda"):
        assert sorted(name for stage in order(selection, device) for name in stage) == sorted({*SECONDS} - {"told"})
