"""The fit: planted constants, interval coverage, detection of another law, censoring, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from suite.batch_size.law import FitError, Updates, fit_inverse_law, free_exponent

BATCHES = (1, 4, 16, 64, 256, 1024)


def simulate(rng, law, *, seeds=3, scatter=0.05, between=0.0, batches=BATCHES):
    shift = rng.normal(0, between, seeds)
    return [Updates(m, tuple((law(m) * np.exp(shift + rng.normal(0, scatter, seeds))).tolist())) for m in batches]


def inverse(m):
    return 200 + 1500 / m


def root(m):
    return 200 + 1500 / math.sqrt(m)


def test_exact_data_give_exact_constants():
    fit = fit_inverse_law([Updates(m, (inverse(m),)) for m in BATCHES])
    assert fit.floor == pytest.approx(200, rel=1e-9)
    assert fit.sensitivity == pytest.approx(1500, rel=1e-9)


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


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_intervals_follow_the_unit_of_the_counts(unit: float):
    counted = simulate(np.random.default_rng(1), inverse)
    fit = fit_inverse_law(counted)
    scaled = fit_inverse_law([Updates(u.batch, tuple(unit * n for n in u.seen)) for u in counted])
    for one, other in (
        (fit.floor_interval(), scaled.floor_interval()),
        (fit.sensitivity_interval(), scaled.sensitivity_interval()),
        (fit.prediction_interval(24), scaled.prediction_interval(24)),
    ):
        assert [other.low / unit, other.high / unit] == pytest.approx([one.low, one.high], rel=1e-6)


def test_a_root_law_is_rejected():
    """Power at five per cent scatter is practically one: no miss in 100 data sets."""
    rng = np.random.default_rng(8)
    verdicts = {fit_inverse_law(simulate(rng, root)).verdict for _ in range(100)}
    assert verdicts == {"does not hold"}


def test_the_free_exponent_tells_the_laws_apart():
    rng = np.random.default_rng(9)
    one, half = free_exponent(simulate(rng, inverse)), free_exponent(simulate(rng, root))
    assert one.low < 1 < one.high
    assert one.low > 0.6
    assert half.low < 0.5 < half.high
    assert half.high < 0.9


def test_one_run_to_spare_says_how_sure_the_constants_are_and_none_does_not():
    three, two = ([Updates(b, (100 + 50 / b + 0.01 * b,)) for b in sizes] for sizes in ((1, 2, 4), (1, 4)))
    assert np.isfinite(fit_inverse_law(three).covariance).all()
    assert np.isinf(fit_inverse_law(two).covariance).all()


def test_an_exponent_is_searched_up_to_five():
    """A fall that is steeper comes out as the end of the range, and nothing above it is ruled out."""
    steep = [Updates(b, tuple(100 + 1e5 * b**-7 + noise for noise in (-1.0, 0.0, 1.0))) for b in (1, 2, 4, 8)]
    found = free_exponent(steep)
    assert found.mean == pytest.approx(5.0, rel=0.02)
    assert found.high == math.inf


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
    for _ in range(200):
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


def test_the_effects_of_two_seeds_and_of_one_are_taken_out():
    """The second takes a tenth more updates everywhere, so their mean follows the law; one seed has none."""
    law = {m: 100 + 1000 / m for m in (1, 4, 16, 64)}
    two = fit_inverse_law([Updates(m, (n / 1.1**0.5, n * 1.1**0.5)) for m, n in law.items()], blocks=True)
    one = fit_inverse_law([Updates(m, (n,)) for m, n in law.items()], blocks=True)
    for fit in (two, one):
        assert (fit.floor, fit.sensitivity) == (pytest.approx(100, rel=0.01), pytest.approx(1000, rel=0.01))


def test_two_batch_sizes_identify_a_law_that_falls_however_little():
    fit = fit_inverse_law([Updates(1, (10.6,)), Updates(2, (10.3,))])
    assert (fit.sensitivity, fit.floor) == (pytest.approx(0.6), pytest.approx(10.0))


def test_bad_counts_are_refused():
    with pytest.raises(FitError, match="positive and finite"):
        Updates(4, (0.0,))
    with pytest.raises(FitError, match="at which limit"):
        Updates(4, (None, 10.0))
    with pytest.raises(FitError, match="same seeds"):
        fit_inverse_law([Updates(1, (9.0, 8.0)), Updates(4, (5.0,)), Updates(16, (4.0,))], blocks=True)
    with pytest.raises(FitError, match="three batch sizes"):
        free_exponent([Updates(1, (9.0, 8.0)), Updates(4, (5.0, 5.1))])
