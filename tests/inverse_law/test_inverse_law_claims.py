"""The published file against the paper's artifacts, and each measure against a case that must come out otherwise."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from paper_figures.inverse_law import PAPER, arithmetic, bound, images, method, rival, runs, short, translation
from reference_impls import inverse_law_model as forms
from suite.batch_size.law import Updates
from suite.papers.artifact import Evidence, Missing
from suite.papers.verdicts import published

EMPTY = Evidence(None, {}, "smoke")
PURE = (
    arithmetic.update_time,
    arithmetic.combined,
    arithmetic.single_learner,
    arithmetic.knee_is_best,
    arithmetic.amortised,
    arithmetic.several_learners,
    arithmetic.least_time,
    arithmetic.scaling,
    arithmetic.hardware_mix,
    bound.recurrence,
    bound.small_noise,
    bound.finite_above_floor,
    bound.earlier_bound,
    method.two_points,
    method.picks_minimum,
    method.single_core_knee,
    method.communication,
    translation.measure_settings,
    short.measure_settings,
)


def claims():
    return {claim.id: claim for claim in published("inverse_law")}


def test_every_claim_belongs_to_an_artifact():
    ids = {artifact.id for artifact in PAPER.artifacts}
    assert len(ids) == 22
    assert len(claims()) == 128
    assert {claim.artifact for claim in claims().values()} == ids


def test_arithmetic_claims_are_decided_without_runs():
    from suite.claims import judge

    measured = {}
    for function in PURE:
        measured |= dict(function(EMPTY))
    decided = [claim for claim in claims().values() if claim.quantity in measured and claim.profile == "smoke"]
    assert len(decided) >= 60
    failed = [c.id for c in decided if judge(c, measured[c.quantity], "smoke").verdict != "reproduced"]
    assert failed == []


def test_a_wrong_optimum_would_be_noticed(monkeypatch):
    """With the square root of Eq. 9 off by a tenth, the claims on it fail."""
    true = forms.communication_bound_batch
    monkeypatch.setattr(forms, "communication_bound_batch", lambda *a: 1.1 * true(*a))
    assert dict(arithmetic.least_time(EMPTY))["closed-form"].values[0] > 1e-6


def test_a_wrong_least_time_would_be_noticed(monkeypatch):
    true = forms.minimal_seconds
    monkeypatch.setattr(forms, "minimal_seconds", lambda *a: 1.001 * true(*a))
    assert dict(arithmetic.several_learners(EMPTY))["argmin"].values[0] > 1e-4


def test_a_wrong_mix_would_be_noticed(monkeypatch):
    true = forms.best_mix
    monkeypatch.setattr(forms, "best_mix", lambda *a: tuple(reversed(true(*a))))
    found = dict(arithmetic.hardware_mix(EMPTY))
    assert found["balance"].values[0] > 0.01


def test_the_bound_counts_from_above():
    recursion = forms.Recursion(1e-3, 0.05)
    for target in (0.1, 0.2, 0.5):
        assert recursion.updates(2.3, target) >= bound.iterated(recursion, 2.3, target) - 1


def test_the_bound_has_a_root_term_when_steps_are_large():
    """At lambda times threshold of a fifth the exponent of the bound is far from the law's: the caveat is real."""
    counts = bound.bound_counts(1.0, 0.2**2 / 9, 0.2, tuple(2**k for k in range(11)))
    assert bound.free_exponent(counts).mean < 0.9


@pytest.mark.parametrize(("law", "sign"), [("inverse", 1), ("rival", -1)])
def test_the_comparison_prefers_the_law_the_data_follow(law, sign):
    counts = {
        "inverse": lambda m: 200 + 1500 / m,
        "rival": lambda m: rival.rival_updates(m, 20.0, 200.0),
    }[law]
    wobble = (1.01, 0.99, 1.0)
    data = [Updates(m, tuple(counts(m) * w for w in wobble)) for m in (1, 4, 16, 64, 256)]
    assert math.copysign(1, rival.compare(data).preference) == sign


def test_an_all_reduce_played_message_by_message_takes_its_known_time():
    """2 log2 P messages one after another, and 2 (P - 1) / P of the gradient over each link."""
    for learners in (2, 8, 64):
        wire = 2 * (learners - 1) / learners * method.BYTES / method.BANDWIDTH
        assert method.allreduce_seconds(learners) == pytest.approx(wire)
        assert method.allreduce_seconds(learners, 0.5) == pytest.approx(wire + math.log2(learners))
    with pytest.raises(ValueError, match="power of two of learners, not 6"):
        method.allreduce_seconds(6)


def test_a_slow_start_of_messages_would_be_noticed(monkeypatch):
    """At a millisecond a message the all-reduce is no longer about constant."""
    monkeypatch.setattr(method, "LATENCIES", (0.0, 1e-4, 1e-3))
    assert dict(method.communication(EMPTY))["allreduce-constant"].high[0] > 0.1


def test_the_rival_solves_its_own_equation():
    """psi = c1 / sqrt(n t) + c2 / t at the iterations it gives."""
    psi, c1, c2 = 0.3, 2.0, 5.0
    for batch in (1, 16, 1024):
        t = rival.rival_updates(batch, c1 / (2 * psi), c2 / psi)
        assert c1 / math.sqrt(batch * t) + c2 / t == pytest.approx(psi, rel=1e-12)


def test_curves_missing_from_a_profile_are_missing_not_wrong():
    row = runs.BY_NAME["cifar10_large-lr0p025"]
    with pytest.raises(Missing, match="cifar10_large"):
        images.curve(EMPTY, row)


def test_reduced_covers_what_it_says():
    small, medium = (runs.BY_NAME[f"mnist_{name}"] for name in ("small-lr0p01", "medium-lr0p05"))
    for row in (small, medium):
        specs = runs.curve_specs(row, "reduced")
        assert {4, 16, 64, 256, 1024} <= {s.settings["batch"] for s in specs}
        assert {s.seed for s in specs} == set(range(runs.PAPER_SEEDS["mnist"]))
    assert runs.curve_specs(small, "smoke") == ()


def test_paper_profile_is_the_papers():
    row = runs.BY_NAME["mnist_small-lr0p01"]
    specs = runs.curve_specs(row, "paper")
    assert len(specs) == 11 * 10
    assert all(s.settings["growth"] == 0 and s.settings["sample"] is None for s in specs)
    adam = runs.curve_specs(runs.BY_NAME["cifar10_medium-adam"], "paper")
    assert {s.settings["descent"]["rule"] for s in adam} == {"adam"}
    assert {s.settings["every"] for s in adam} == {100}


def test_specifications_are_distinct():
    specs = [s for row in runs.ROWS for profile in ("reduced", "paper") for s in runs.curve_specs(row, profile)]
    assert len({s.id for s in specs}) == len(specs)
    assert replace(runs.ROWS[0], rate=0.02) != runs.ROWS[0]
