"""What is computed first when time is short."""

from __future__ import annotations

import pytest

from suite.claims.judge import Claim
from suite.commands import priority as value
from suite.commands.plan import Planned
from suite.commands.priority import decidable, stages
from suite.experiment import Experiment
from suite.papers.artifact import Artifact, Paper
from suite.runner.packing import packs
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
    made = stages(selection, planned(selection), "reduced", device, ids)
    return [[p.spec.settings["name"] for p in stage] for stage in made]


def test_most_claims_per_second_first_and_nothing_open_last(selection):
    """Two in 10 s; that run is shared, so three more in 50 s; one in 100 s; nine in 1000 s decide the least."""
    assert order(selection, "cpu") == [["cheap"], ["shared"], ["dear"], ["gpu"], ["told"]]


def test_on_a_gpu_what_only_a_gpu_decides_comes_first_however_dear(selection):
    assert order(selection, "cuda")[0] == ["gpu"]
    assert order(selection, "cpu")[0] == ["cheap"]


def test_runs_at_hand_cost_nothing_and_come_last(selection):
    found = order(selection, "cpu", "shared")
    assert set(found[-1]) == {"shared", "told"}
    assert found[0] == ["cheap"]


def test_no_run_is_lost_or_made_twice(selection):
    for device in ("cpu", "cuda"):
        assert sorted(name for stage in order(selection, device) for name in stage) == sorted(SECONDS)


@pytest.mark.parametrize(
    ("changes", "device", "expected"),
    [
        ({}, "cpu", True),
        ({"needs": "gpu"}, "cpu", False),
        ({"needs": "gpu"}, "cuda", True),
        ({"needs": "multi-gpu"}, "cuda", False),
        ({"profile": "paper"}, "cuda", False),
        ({"lacks": "a cluster"}, "cuda", False),
    ],
)
def test_a_claim_counts_where_it_can_be_decided(changes: dict, device: str, expected: bool):
    (claim,) = claims("x", 1, **changes)
    assert decidable(claim, artifact("x", "dear"), "reduced", device, set()) is expected


def test_a_claim_whose_evidence_is_at_hand_counts_no_more():
    (claim,) = claims("x", 1)
    assert not decidable(claim, artifact("x", "dear"), "reduced", "cpu", {SPECS["dear"].id})


def first_of(monkeypatch: pytest.MonkeyPatch, artifacts: dict[str, tuple[int, dict[str, float]]]) -> list[str]:
    """Artifacts with so many claims and such runs, in the order in which their first runs come."""
    seconds = {run: cost for _, runs in artifacts.values() for run, cost in runs.items()}
    specs = {run: RunSpec("toy/run", {"name": run}) for run in seconds}
    made = [
        Artifact(f"toy/{name}", name, lambda profile, runs=runs: {run: (specs[run],) for run in runs})
        for name, (_, runs) in artifacts.items()
    ]
    published = [claim for name, (count, _) in artifacts.items() for claim in claims(name, count)]
    monkeypatch.setattr(value, "published", lambda paper: tuple(published))
    users = {run: tuple(f"toy/{name}" for name, (_, runs) in artifacts.items() if run in runs) for run in seconds}
    plan = [Planned(specs[run], seconds[run], 0, (), users[run]) for run in seconds]
    found = stages([(Paper("toy", "", "", tuple(made), {}), made)], plan, "reduced", "cpu")
    return [stage[0].spec.settings["name"] for stage in found]


def test_what_takes_less_than_a_tenth_of_a_second_is_as_good_as_free(monkeypatch: pytest.MonkeyPatch):
    """So the artifact of two claims precedes that of one, and equals stay as they are."""
    made = {"a": (1, {"a": 0.1}), "b": (2, {"b": 0.09}), "c": (1, {"c": 0.001}), "d": (1, {"d": 0.12})}
    assert first_of(monkeypatch, made) == ["b", "a", "c", "d"]


def test_a_run_that_comes_before_costs_what_shares_it_nothing(monkeypatch: pytest.MonkeyPatch):
    """Alone `c` is worth most; then `b`, which adds 10 s to it for a claim, and `a` 20 s: not by 110 s and 20 s."""
    shared = {"shared": 100.0}
    made = {"a": (1, {"a": 20.0}), "b": (1, {**shared, "b": 10.0}), "c": (100, shared)}
    assert first_of(monkeypatch, made) == ["shared", "b", "a"]


def test_of_what_decides_nothing_the_cheap_comes_before_the_dear(monkeypatch: pytest.MonkeyPatch):
    made = {"a": (0, {"a": 30.0}), "b": (0, {"b": 10.0}), "c": (0, {"c": 20.0}), "d": (1, {"d": 1000.0})}
    assert first_of(monkeypatch, made) == ["d", "b", "c", "a"]


def test_stages_are_begun_in_order_and_share_no_step():
    specs = [RunSpec("toy/run", {"name": str(i)}) for i in range(6)]
    kind = Experiment(
        lambda: pytest.fail("not run"), lambda spec: float(spec.settings["name"]), pack=lambda s, d: "k"
    )
    number = {spec.id: place // 2 for place, spec in enumerate(reversed(specs))}
    made = packs(specs, lambda name: kind, "cpu", 1, number)
    assert [[s.settings["name"] for s in pack.specs] for pack in made] == [["5", "4"], ["3", "2"], ["1", "0"]]
    assert len(packs(specs, lambda name: kind, "cpu", 1)) == 1
