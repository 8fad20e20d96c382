"""The knee of seconds per update, and how updates are timed for it."""

from __future__ import annotations

import math

import pytest

from suite.batch_size.knee import Knee, fit_knee, time_updates, typical


def test_below_the_knee_an_update_costs_what_one_at_the_knee_does():
    knee = Knee(0.5, 8.0, 0.0)
    assert [knee.seconds(batch) for batch in (2, 8, 32)] == [4.0, 4.0, 16.0]


def test_the_order_in_which_batch_sizes_were_timed_does_not_matter():
    times = {64: 12.5, 1: 1.0, 16: 3.1, 4: 1.3}
    assert fit_knee(times) == fit_knee(dict(sorted(times.items())))


@pytest.mark.parametrize(
    "times", [{1: 1.0, 2: 1.2, 4: 1.7, 8: 4.0}, {1: 1.0, 2: 0.6, 4: 1.0}, {4: 1.0, 8: 1.5}, {1: 1.0, 2: 1.5, 4: 1.0}]
)
def test_the_misfit_is_the_largest_deviation_as_a_share_of_what_was_measured(times):
    found = fit_knee(times)
    shares = [found.seconds(batch) / spent - 1 for batch, spent in times.items()]
    assert found.misfit == pytest.approx(max(max(shares), -min(shares)))


def test_a_fitted_line_that_lies_below_a_time_misses_it_as_well():
    """One time in five is twice the others, in logarithms a fifth of that is fitted: it is missed by the most."""
    assert fit_knee({4: 1.0, 8: 1.0, 16: 2.0, 32: 1.0, 64: 1.0}).misfit == pytest.approx(1 - 2**0.2 / 2, abs=1e-3)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_one_bad_time_among_good_ones_is_refused(bad):
    with pytest.raises(ValueError, match="a knee needs positive times"):
        fit_knee({4: 1.0, 8: bad, 16: 2.0})


def test_an_update_that_takes_long_is_made_once_in_each_of_five_rounds():
    """One that takes 10 ms fills about 20 ms, of which each value is the mean, in two."""
    made, now = [], [0.0]

    def update(batch):
        made.append(batch)
        now[0] += {1: 0.01, 64: 0.5}[batch]

    taken = time_updates(update, [1, 64], clock=lambda: now[0])
    assert made[4:] == [1, 1, 64] * 5
    assert taken == {1: [pytest.approx(0.01)] * 5, 64: [pytest.approx(0.5)] * 5}


def test_one_spell_of_another_process_does_not_move_what_is_typical():
    assert typical({4: [1.0, 90.0, 1.2], 8: [2.0]}) == {4: 1.2, 8: 2.0}
