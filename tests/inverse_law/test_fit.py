"""The fit: planted constants, interval coverage, detection of another law, censoring, refusals."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest
from scipy import stats

from suite.batch_size.law import FitError, InverseLawFit, Updates, fit_inverse_law

BATCHES = (1, 4, 16, 64, 256, 1024)


def simulate(rng, law, *, seeds=3, scatter=0.05, between=0.0, batches=BATCHES):
    shift = rng.normal(0, between, seeds)
    return [Updates(m, tuple((law(m) * np.exp(shift + rng.normal(0, scatter, seeds))).tolist())) for m in batches]


def inverse(m):
    return 200 + 1500 / m


def root(m):
    return 200 + 1500 / math.sqrt(m)


def test_a_negative_floor_is_found_not_clipped():
    fit = fit_inverse_law([Updates(m, (-0.2 + 1500 / m,)) for m in BATCHES])
    assert fit.floor == pytest.approx(-0.2, rel=1e-6)


def test_intervals_cover_and_the_law_is_kept():
    """1,000 data sets, fixed seed: 93-97% coverage, and 1% of true laws rejected (at most 2.5%)."""
    rng = np.random.default_rng(7)
    floor = alpha = between = rejected = 0
    for _ in range(1000):
        fit = fit_inverse_law(simulate(rng, inverse))
        f, a = fit.floor_interval(), fit.sensitivity_interval()
        floor += f.low <= 200 <= f.high
        alpha += a.low <= 1500 <= a.high
        p = fit.prediction_interval(24)
        between += p.low <= 200 + 1500 / 24 <= p.high
        rejected += fit.verdict == "does not hold"
    assert 930 <= floor <= 970
    assert 930 <= alpha <= 970
    assert 930 <= between <= 970
    assert rejected <= 25


@pytest.mark.parametrize(("repeated", "told"), [(0, False), (1, True), (2, True)])
def test_lack_of_fit_needs_a_batch_size_that_was_run_twice(repeated: int, told: bool):
    """Against the scatter within batch sizes: of one repeat the F test has one degree of freedom."""
    rng = np.random.default_rng(11)
    runs = [
        Updates(m, tuple(inverse(m) * np.exp(rng.normal(0, 0.05, 1 + (i < repeated))))) for i, m in enumerate(BATCHES)
    ]
    assert (fit_inverse_law(runs).lack_of_fit is not None) == told


def test_a_root_law_is_rejected():
    """Power at five per cent scatter is practically one: no miss in 100 data sets."""
    rng = np.random.default_rng(8)
    verdicts = {fit_inverse_law(simulate(rng, root)).verdict for _ in range(100)}
    assert verdicts == {"does not hold"}


def test_one_run_to_spare_says_how_sure_the_constants_are_and_none_does_not():
    three, two = ([Updates(b, (100 + 50 / b + 0.01 * b,)) for b in sizes] for sizes in ((1, 2, 4), (1, 4)))
    assert np.isfinite(fit_inverse_law(three).covariance).all()
    assert np.isinf(fit_inverse_law(two).covariance).all()


def test_seed_effects_are_taken_out():
    """Seeds that differ by 20% and scatter by 1%: blocked intervals are several times narrower, and still cover."""
    rng = np.random.default_rng(10)
    covered, ratio = 0, []
    for _ in range(300):
        data = simulate(rng, inverse, scatter=0.01, between=0.2)
        blocked, plain = fit_inverse_law(data, blocks=True), fit_inverse_law(data)
        a, b = (free_sensitivity_share(fit) for fit in (blocked, plain))
        ratio.append(a[1] / b[1])
        covered += abs(a[0] - 7.5) <= 3 * a[1]
    assert covered >= 290
    assert np.median(ratio) < 0.3


def free_sensitivity_share(fit):
    """alpha / N_inf, on which a common factor of the seeds cancels, with its standard error by propagation."""
    (vf, c), (_, va) = fit.covariance
    share = fit.sensitivity / fit.floor
    variance = va / fit.floor**2 + share**2 * vf / fit.floor**2 - 2 * share * c / fit.floor**2
    return share, math.sqrt(variance)


def test_censored_runs_are_counted_not_dropped():
    """Censoring the largest counts at M = 1: dropping them biases alpha down, keeping them as censored does not."""
    rng = np.random.default_rng(11)
    kept, dropped = [], []
    for _ in range(100):
        data = simulate(rng, inverse, scatter=0.2, seeds=6)
        limit = 1700.0
        cut = [Updates(u.batch, tuple(n if n < limit else None for n in u.seen), limit) for u in data]
        if all(n is None for n in cut[0].seen):
            continue
        kept.append(fit_inverse_law(cut).sensitivity)
        finished = tuple(n for n in cut[0].seen if n is not None)
        dropped.append(fit_inverse_law([Updates(1, finished), *cut[1:]]).sensitivity)
    assert abs(np.mean(kept) / 1500 - 1) < 0.05
    assert np.mean(dropped) / 1500 < 0.95


def test_a_batch_size_without_finished_runs_is_named():
    data = [Updates(1, (None, None), 5000.0), *(Updates(m, (inverse(m),) * 2) for m in BATCHES[1:])]
    fit = fit_inverse_law(data)
    assert fit.left_out == (1,)
    assert fit.censored == 2
    assert fit.sensitivity == pytest.approx(1500, rel=1e-6)


def test_two_batch_sizes_determine_the_law_without_intervals():
    fit = fit_inverse_law([Updates(4, (inverse(4),)), Updates(256, (inverse(256),))])
    assert fit.predict(16) == pytest.approx(inverse(16))
    assert math.isinf(fit.floor_interval().high)
    assert fit.verdict.startswith("cannot tell")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([Updates(16, (100.0, 110.0))], "1 usable batch sizes"),
        ([Updates(16, (100.0,)), Updates(16, (110.0,))], "repeat"),
        ([Updates(4, (100.0,)), Updates(64, (120.0,))], "does not tell the noise sensitivity from zero"),
        ([Updates(64, (100.0, 130.0)), Updates(256, (99.0, 125.0))], "add a smaller batch size or more seeds"),
        ([Updates(1, (None,), 50.0), Updates(16, (10.0,))], r"none of the runs at \(1,\)"),
    ],
)
def test_what_cannot_identify_the_law_is_refused(data, message):
    with pytest.raises(FitError, match=message):
        fit_inverse_law(data)


def test_bad_counts_are_refused():
    with pytest.raises(FitError, match="positive and finite"):
        Updates(4, (0.0,))
    with pytest.raises(FitError, match="at which limit"):
        Updates(4, (None, 10.0))
    with pytest.raises(FitError, match="same seeds"):
        fit_inverse_law([Updates(1, (9.0, 8.0)), Updates(4, (5.0,)), Updates(16, (4.0,))], blocks=True)


BY_HAND = InverseLawFit(10.0, 60.0, ((0.25, 0.5), (0.5, 9.0)), 1, 0.1, (1, 4, 16), 3, 0, None)


def test_intervals_by_hand():
    """Of one degree of freedom, where Student's t is Cauchy's: half of it lies within 1, 95% within 12.706."""
    for found, middle, variance in (
        (BY_HAND.floor_interval, 10.0, 0.25),
        (BY_HAND.sensitivity_interval, 60.0, 9.0),
        (lambda *confidence: BY_HAND.prediction_interval(2.0, *confidence), 40.0, 0.25 + 0.5 + 9.0 / 4),
    ):
        half = math.sqrt(variance)
        assert astuple(found(0.5)) == pytest.approx((middle, middle - half, middle + half, 3, 1))
        assert found().high == pytest.approx(middle + 12.7062 * half, rel=1e-5)


SCATTERED = [Updates(1, (1700.0, 1600.0, 1900.0)), Updates(4, (600.0, 640.0)), Updates(16, (250.0, 270.0, 260.0))]


@pytest.mark.parametrize("measured", [SCATTERED, [*SCATTERED, Updates(64, (240.0,))]])
def test_lack_of_fit_is_the_scatter_of_means_about_the_curve_against_that_of_runs_about_means(measured):
    fit = fit_inverse_law(measured)
    logs = {u.batch: np.log(u.seen) for u in measured}
    between = sum(len(y) * (y.mean() - math.log(fit.predict(m))) ** 2 for m, y in logs.items())
    within = sum(((y - y.mean()) ** 2).sum() for y in logs.values())
    spare, repeats = len(logs) - 2, sum(len(y) - 1 for y in logs.values())
    f = (between / spare) / (within / repeats)
    assert fit.lack_of_fit == pytest.approx(stats.f.sf(f, spare, repeats), rel=1e-6)
    assert fit.degrees == sum(len(y) for y in logs.values()) - 2
    assert fit.scatter == pytest.approx(math.sqrt((between + within) / fit.degrees))


def test_a_censored_run_counts_as_its_mean_beyond_the_limit():
    """The fixed point: the same fit comes out of it and of the mean that the fitted normal has beyond the limit."""
    seen, limit = (
        [Updates(4, (600.0, 640.0)), Updates(16, (250.0, 270.0, 260.0)), Updates(64, (215.0, 225.0))],
        1650.0,
    )
    fit = fit_inverse_law([Updates(1, (1600.0, None), limit), *seen])
    middle = math.log(fit.predict(1))
    finished = {1: (1600.0,), **{u.batch: u.seen for u in seen}}
    square = sum((math.log(n) - math.log(fit.predict(m))) ** 2 for m, counts in finished.items() for n in counts)
    scatter = math.sqrt(square / (8 - 2))
    beyond = (math.log(limit) - middle) / scatter
    imputed = math.exp(middle + scatter * stats.norm.pdf(beyond) / stats.norm.sf(beyond))
    again = fit_inverse_law([Updates(1, (1600.0, imputed)), *seen])
    assert (again.floor, again.sensitivity) == pytest.approx((fit.floor, fit.sensitivity), rel=1e-7)
