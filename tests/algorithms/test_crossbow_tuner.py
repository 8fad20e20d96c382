"""The learner auto-tuner: Algorithm 2 as printed, and the rule that settles."""

from __future__ import annotations

import random

import pytest

from reference_impls.crossbow_tuner import Literal, Settling, literal, settling


def walk(rule, tuner, curve, readings, noise=None, **options):
    """Learners after each reading of a throughput curve (curve[l] at l learners)."""
    counts = []
    for _ in range(readings):
        factor = 1 + 0.02 * noise.gauss(0, 1) if noise else 1
        tuner = rule(tuner, curve[min(tuner.learners, len(curve) - 1)] * factor, **options)
        counts.append(tuner.learners)
    return counts


def test_algorithm_2_cycles_around_the_peak():
    assert walk(literal, Literal(), [0, 10, 19, 27, 25], 9, threshold=0.5) == [2, 3, 4, 3, 4, 3, 4, 3, 4]


def test_algorithm_2_keeps_between_a_small_gain_and_a_loss():
    tuner = Literal(3, 100.0)
    assert [literal(tuner, t, threshold=5.0).learners for t in (105.1, 105.0, 100.0, 99.9)] == [4, 3, 3, 2]


def test_algorithm_2_can_lose_its_last_learner_for_good():
    tuner = Literal()
    for reading in (10.0, 9.0, 8.0):
        tuner = literal(tuner, reading, threshold=0.5)
    assert tuner.learners == 0
    assert walk(literal, tuner, [0, 10], 5, threshold=0.5) == [0] * 5


def test_settling_by_hand():
    """Medians 10, 19, 27, 27.2 at 10%: three learners; two readings of 100 among five move nothing."""
    tuner = Settling()
    for middle, learners in ((10.0, 2), (19.0, 3), (27.0, 4), (27.2, 3)):
        for reading in (middle, 100.0, middle - 1, middle, 100.0):
            tuner = settling(tuner, reading)
        assert tuner.learners == learners
    assert tuner.holding
    assert settling(tuner, 1e9) == tuner


def test_settling_respects_memory_and_never_leaves_less_than_one():
    assert walk(settling, Settling(), [0, 10, 20, 30, 40], 60, most=3)[-1] == 3
    assert walk(settling, Settling(), [0, 10, 1, 1], 60)[-1] == 1
    assert min(walk(settling, Settling(), [0, 0.0, 0.0], 60)) == 1


@pytest.mark.parametrize("wrong", [{"readings": 0}, {"most": 0}, {"threshold": -0.1}])
def test_settling_refuses_numbers_that_mean_nothing(wrong):
    with pytest.raises(ValueError, match="must be at least 1 and threshold"):
        settling(Settling(), 1.0, **wrong)


def test_settling_takes_the_least_it_may_be_given():
    """One reading at each count, any gain at all, room for one learner."""
    grown = settling(Settling(), 10.0, readings=1, threshold=0.0)
    assert settling(grown, 10.5, readings=1, threshold=0.0).learners == 3
    assert settling(Settling(), 10.0, readings=1, most=1) == Settling(1, 10.0, holding=True)


@pytest.mark.parametrize(("throughput", "settled"), [(15.0, 1), (15.1, 3)])
def test_a_further_learner_must_bring_more_than_the_threshold(throughput, settled):
    assert settling(Settling(2, 10.0), throughput, readings=1, threshold=0.5).learners == settled


def test_settling_ends_within_one_of_the_peak():
    """1,000 runs, readings with 2% noise; throughput rises in proportion up to the peak and then falls by 3%.

    A median of five deviates by 1.1%, a ratio of two by 1.5%; the smallest gain is 1/7, the threshold 1/10.
    """
    noise, close_enough = random.Random(0), 0
    for _ in range(1000):
        peak = noise.randint(1, 8)
        curve = [10 * min(l, peak) * 0.97 ** max(0, l - peak) for l in range(20)]
        close_enough += abs(walk(settling, Settling(), curve, 100, noise)[-1] - peak) <= 1
    assert close_enough >= 990


def test_the_first_reading_counts_from_nothing():
    """Line 2 of Algorithm 2: however slow one learner is, its throughput is a gain over none."""
    assert literal(Literal(), 0.5, threshold=0.1).learners == 2
