"""The published file against the paper's artifacts, and each measure against a case that must come out otherwise."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from paper_figures.inverse_law import (
    PAPER,
    alg1,
    alg_scaling,
    eq2,
    eq3,
    eq4,
    eq5,
    eq6,
    eq7,
    eq8,
    eq9,
    eq10,
    eq12,
    eqbound,
    equivalence,
    exponents,
    fig2,
    readings,
    rival,
    settings,
    table1,
)
from reference_impls import inverse_law_model as forms
from suite.batch_size.law import Updates, free_exponent
from suite.papers.artifact import Evidence, Missing
from suite.papers.published import entries

EMPTY = Evidence(None, {}, "smoke")
PURE = (
    eq3.measure_sum,
    eq5.measure_product,
    eq7.measure_special_case,
    eq8.measure_optimum,
    eq6.measure_validation,
    eq9.measure_optimum,
    eq10.measure_least_time,
    alg_scaling.measure_scaling,
    eq12.measure_mix,
    eqbound.measure_recurrence,
    eqbound.measure_small_noise,
    eqbound.measure_finiteness,
    eq2.measure_earlier_bound,
    alg1.measure_two_points,
    alg1.measure_minimum,
    eq4.measure_single_core,
    eq3.measure_communication,
    fig2.measure_settings,
    table1.measure_settings,
)


def claims():
    return {claim.id: claim for claim in entries("inverse_law")}


def test_every_claim_belongs_to_an_artifact():
    ids = {artifact.id for artifact in PAPER.artifacts}
    assert {claim.artifact for claim in claims().values()} == ids


def test_arithmetic_claims_are_decided_without_runs():
    from suite.claims.judge import judge

    measured = {}
    for function in PURE:
        measured |= dict(function(EMPTY))
    decided = [claim for claim in claims().values() if claim.quantity in measured and claim.profile == "smoke"]
    assert len(decided) >= 60
    failed = [c.id for c in decided if judge(c, measured[c.quantity], "smoke").verdict != "reproduced"]
    assert failed == ["inverse_law/eq3/allreduce-constant"], "from 2 learners on it grows by three quarters"


def test_a_wrong_optimum_would_be_noticed(monkeypatch):
    """With the square root of Eq. 9 off by a tenth, the claims on it fail."""
    true = forms.communication_bound_batch
    monkeypatch.setattr(forms, "communication_bound_batch", lambda *a: 1.1 * true(*a))
    assert dict(eq10.measure_least_time(EMPTY))["closed-form"].values[0] > 1e-6


def test_a_wrong_least_time_would_be_noticed(monkeypatch):
    true = forms.minimal_seconds
    monkeypatch.setattr(forms, "minimal_seconds", lambda *a: 1.001 * true(*a))
    assert dict(eq9.measure_optimum(EMPTY))["argmin"].values[0] > 1e-4


def test_a_wrong_mix_would_be_noticed(monkeypatch):
    true = forms.best_mix
    monkeypatch.setattr(forms, "best_mix", lambda *a: tuple(reversed(true(*a))))
    found = dict(eq12.measure_mix(EMPTY))
    assert found["balance"].values[0] > 0.01


def test_the_bound_counts_from_above():
    recursion = forms.Recursion(1e-3, 0.05)
    for target in (0.1, 0.2, 0.5):
        assert recursion.updates(2.3, target) >= eqbound.iterated(recursion, 2.3, target) - 1


def test_the_bound_has_a_root_term_when_steps_are_large():
    """At lambda times threshold of a fifth the exponent of the bound is far from the law's: the caveat is real."""
    counts = eqbound.bound_counts(1.0, 0.2**2 / 9, 0.2)
    assert free_exponent(counts).mean < 0.9


@pytest.mark.parametrize(("law", "sign"), [("inverse", 1), ("rival", -1)])
def test_the_comparison_prefers_the_law_the_data_follow(law, sign):
    counts = {
        "inverse": lambda m: 200 + 1500 / m,
        "rival": lambda m: float(rival.rival_root(m, 20.0, 200.0)) ** 2,
    }[law]
    wobble = (1.01, 0.99, 1.0)
    data = [Updates(m, tuple(counts(m) * w for w in wobble)) for m in (1, 4, 16, 64, 256)]
    assert math.copysign(1, rival.preference(data)) == sign


def test_an_all_reduce_played_message_by_message_takes_its_known_time():
    """2 log2 P messages one after another, and 2 (P - 1) / P of the gradient over each link."""
    for learners in (2, 8, 64):
        wire = 2 * (learners - 1) / learners * eq3.BYTES / eq3.BANDWIDTH
        assert eq3.allreduce_seconds(learners) == pytest.approx(wire)
        assert eq3.allreduce_seconds(learners, 0.5) == pytest.approx(wire + math.log2(learners))
    with pytest.raises(ValueError, match="power of two of learners, not 6"):
        eq3.allreduce_seconds(6)


def test_slow_messages_would_be_noticed(monkeypatch):
    """At a millisecond a message the all-reduce grows with the rounds of halving."""
    before = dict(eq3.measure_communication(EMPTY))["allreduce-constant"].high[0]
    monkeypatch.setattr(eq3, "LATENCIES", (0.0, 1e-4, 1e-3))
    assert dict(eq3.measure_communication(EMPTY))["allreduce-constant"].high[0] > 2 * before


def test_the_rival_solves_its_own_equation():
    """psi = c1 / sqrt(n t) + c2 / t at the iterations it gives."""
    psi, c1, c2 = 0.3, 2.0, 5.0
    for batch in (1, 16, 1024):
        t = rival.rival_root(batch, c1 / (2 * psi), c2 / psi) ** 2
        assert c1 / math.sqrt(batch * t) + c2 / t == pytest.approx(psi, rel=1e-12)


def test_curves_missing_from_a_profile_are_missing_not_wrong():
    row = settings.BY_NAME["cifar10_large-lr0p025"]
    with pytest.raises(Missing, match="cifar10_large"):
        readings.curve(EMPTY, row)


def test_reduced_covers_the_papers_range():
    """All powers of two and ten seeds on every row of MNIST; lower thresholds lie below the others."""
    for row in (row for row in settings.ROWS if row.seeds > 1):
        specs = settings.curve_specs(row, "reduced")
        assert {s.settings["batch"] for s in specs} == set(row.powers)
        assert {s.seed for s in specs} == set(range(10 if row.data == "mnist" else 3))
        for spec in settings.curve_specs(row, "reduced", lower=True):
            assert max(spec.settings["monitors"]["training"]) < min(specs[0].settings["monitors"]["training"])
    assert {row.name for row in settings.ROWS if row.data == "mnist"} <= {r.name for r in settings.ROWS if r.halvings}
    assert settings.curve_specs(settings.ROWS[0], "smoke") == ()


def test_every_curve_has_runs_at_reduced_and_those_of_one_seed_are_lent_a_scatter_at_their_sizes():
    for row in settings.ROWS:
        specs = settings.curve_specs(row, "reduced")
        assert len({s.settings["batch"] for s in specs}) >= exponents.LEAST_POINTS
        if row.seeds == 1:
            (lender,) = (each for each in map(settings.BY_NAME.get, equivalence.LENDING) if each.data == row.data)
            assert {s.settings["batch"] for s in specs} <= set(lender.powers)
            assert row.thresholds("reduced") == lender.thresholds("reduced")[:1], "the LeNet's first threshold"


def test_a_variant_changes_one_setting_and_takes_seeds_of_its_own():
    (variant,) = settings.VARIANTS
    printed = settings.BY_NAME["mnist_medium-lr0p05"]
    ours, theirs = settings.curve_specs(variant, "reduced"), settings.curve_specs(printed, "reduced")
    assert not {s.seed for s in ours} & {s.seed for s in theirs}
    transforms = {s.settings["data"]["transform"] for s in ours}, {s.settings["data"]["transform"] for s in theirs}
    assert transforms == ({"unit"}, {"standardise-global"})
    assert settings.curve_specs(variant, "paper") == ()


def test_paper_profile_is_the_papers():
    row = settings.BY_NAME["mnist_small-lr0p01"]
    specs = settings.curve_specs(row, "paper")
    assert len(specs) == 11 * 10
    assert all(s.settings["growth"] == 0 and s.settings["sample"] is None for s in specs)
    adam = settings.curve_specs(settings.BY_NAME["cifar10_medium-adam"], "paper")
    assert {s.settings["descent"]["rule"] for s in adam} == {"adam"}
    assert {s.settings["every"] for s in adam} == {100}


def test_specifications_are_distinct():
    specs = [
        s for row in settings.ROWS for profile in ("reduced", "paper") for s in settings.curve_specs(row, profile)
    ]
    assert len({s.id for s in specs}) == len(specs)
    assert replace(settings.ROWS[0], rate=0.02) != settings.ROWS[0]
