"""The knee of seconds per update, and how updates are timed for it."""

from __future__ import annotations

import math

import pytest

from suite.batch_size.chosen import Knee, fit_knee, time_updates


def test_below_the_knee_an_update_costs_what_one_at_the_knee_does():
    knee = Knee(0.5, 8.0, 0.0)
    assert [knee.seconds(batch) for batch in (2, 8, 32)] == [4.0, 4.0, 16.0]


@pytest.mark.parametrize("knee", [1.0, 3.0, 16.0, 100.0, 1024.0])
def test_a_planted_knee_is_found(knee):
    times = {2**k: 1e-4 * max(2**k, knee) for k in range(11)}
    found = fit_knee(times)
    assert found.knee == pytest.approx(knee, rel=1e-9)
    assert found.seconds_per_example == pytest.approx(1e-4, rel=1e-9)
    assert found.misfit < 1e-9


def test_the_knee_fit_is_the_least_of_all_positions():
    times = {1: 1.0, 2: 1.1, 4: 1.3, 8: 1.9, 16: 3.1, 32: 6.0, 64: 12.5}

    def misfit(corner):
        logs = [math.log(t / max(m, corner)) for m, t in times.items()]
        mean = sum(logs) / len(logs)
        return sum((v - mean) ** 2 for v in logs)

    found = misfit(fit_knee(times).knee)
    assert found <= min(misfit(math.exp(i / 500)) for i in range(2100)) + 1e-12


def test_bad_times_are_refused():
    with pytest.raises(ValueError, match="two batch sizes"):
        fit_knee({4: 1.0})
    with pytest.raises(ValueError, match="positive"):
        fit_knee({4: 1.0, 8: 0.0})


@pytest.mark.parametrize(
    "times", [{1: 1.0, 2: 1.2, 4: 1.7, 8: 4.0}, {1: 1.0, 2: 0.6, 4: 1.0}, {4: 1.0, 8: 1.5}, {1: 1.0, 2: 1.5, 4: 1.0}]
)
def test_the_misfit_is_the_largest_deviation_as_a_share_of_what_was_measured(times):
    found = fit_knee(times)
    shares = [found.seconds(batch) / spent - 1 for batch, spent in times.items()]
    assert found.misfit == pytest.approx(max(max(shares), -min(shares)))


@pytest.mark.parametrize(
    ("seconds", "rounds", "turn"),
    [
        ({1: 1e-3, 4: 4e-3}, {"rounds": 3, "seconds_each": 0.008}, [1] * 8 + [4] * 2),
        ({1: 0.01, 64: 0.5}, {}, [1, 1, 64]),  # five rounds, each of about 20 ms, or of one update that takes longer
    ],
)
def test_timing_takes_turns_after_two_updates_to_warm_up(seconds, rounds, turn):
    made, now = [], [0.0]

    def update(batch):
        made.append(batch)
        now[0] += seconds[batch]

    taken = time_updates(update, list(seconds), clock=lambda: now[0], **rounds)
    count = rounds.get("rounds", 5)
    assert made[4:] == turn * count
    assert taken == {batch: pytest.approx([each] * count) for batch, each in seconds.items()}
