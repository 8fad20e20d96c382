"""The knee of seconds per update, and how updates are timed for it."""

from __future__ import annotations

import pytest

from suite.batch_size.knee import Knee, fit_knee, time_updates


def test_below_the_knee_an_update_costs_what_one_at_the_knee_does():
    knee = Knee(0.5, 8.0, 0.0)
    assert [knee.seconds(batch) for batch in (2, 8, 32)] == [4.0, 4.0, 16.0]


@pytest.mark.parametrize(
    "times", [{1: 1.0, 2: 1.2, 4: 1.7, 8: 4.0}, {1: 1.0, 2: 0.6, 4: 1.0}, {4: 1.0, 8: 1.5}, {1: 1.0, 2: 1.5, 4: 1.0}]
)
def test_the_misfit_is_the_largest_deviation_as_a_share_of_what_was_measured(times):
    found = fit_knee(times)
    shares = [found.seconds(batch) / spent - 1 for batch, spent in times.items()]
    assert found.misfit == pytest.approx(max(max(shares), -min(shares)))


def test_an_update_that_takes_long_is_made_once_in_each_of_five_rounds():
    """One that takes 10 ms fills about 20 ms, of which each value is the mean, in two."""
    made, now = [], [0.0]

    def update(batch):
        made.append(batch)
        now[0] += {1: 0.01, 64: 0.5}[batch]

    taken = time_updates(update, [1, 64], clock=lambda: now[0])
    assert made[4:] == [1, 1, 64] * 5
    assert taken == {1: [pytest.approx(0.01)] * 5, 64: [pytest.approx(0.5)] * 5}
