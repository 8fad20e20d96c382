"""The measuring rule: first crossing without patience, exact replay, exact early exit, censoring."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from suite.batch_size.trainer import Monitor, Search
from suite.training.loss_reading import read_loss


class Trajectory:
    """Losses by number of updates; counts how often each update is made and read."""

    def __init__(self, losses):
        self.losses, self.made, self.read = losses, 0, []

    def advance(self, state, first, last):
        assert state == first, "an update must continue from the state after the one before it"
        self.made += last - first
        return last

    def reader(self, state, threshold):
        self.read.append(state)
        return read_loss([(self.losses[state], 1)], 1, threshold)


def drive(search, advance):
    """Run one search to its end; ``advance(state, t0, t1)`` applies the updates t0 .. t1 - 1."""
    while not search.done:
        update, state = search.position
        search.see(advance(state, update, search.next_update))


def first_below(losses, threshold):
    return next((k for k, loss in enumerate(losses) if k and loss < threshold), None)


def find(losses, thresholds, *, growth=0.01, limit=None, every=1):
    path = Trajectory(losses)
    monitor = Monitor("training", path.reader, thresholds)
    limit = limit or len(losses) - 1
    drive(Search([monitor], 0, growth=growth, limit=limit, every=every), path.advance)
    return monitor.crossed, path


def falling(updates, seed=0, noise=0.0):
    draw = random.Random(seed)
    return [2.3 * math.exp(-k / 300) * (1 + noise * draw.uniform(-1, 1)) for k in range(updates + 1)]


@pytest.mark.parametrize("growth", [0.0, 0.01, 0.1, 1.0])
def test_finds_the_first_crossing_of_a_falling_loss(growth):
    losses = falling(1500)
    crossed, _ = find(losses, (1.0, 0.5, 0.05), growth=growth)
    assert crossed == {t: first_below(losses, t) for t in (1.0, 0.5, 0.05)}


@pytest.mark.parametrize("seed", range(5))
def test_testing_every_update_is_the_definition(seed):
    losses = falling(800, seed, noise=0.2)
    crossed, _ = find(losses, (1.0, 0.6), growth=0.0)
    assert crossed == {t: first_below(losses, t) for t in (1.0, 0.6)}


@pytest.mark.parametrize("seed", range(10))
def test_a_grid_finds_a_crossing_at_or_after_the_first_and_within_a_bracket(seed):
    losses = falling(1500, seed, noise=0.1)
    crossed, _ = find(losses, (0.3,), growth=0.01)
    found, first = crossed[0.3], first_below(losses, 0.3)
    assert losses[found] < 0.3
    assert losses[found - 1] >= 0.3, (
        "the update before the one found lies above: it is a first crossing of its bracket"
    )
    assert first <= found <= 1.1 * first


def test_thresholds_are_crossed_once():
    losses = [2.0, 0.9, 2.0, 0.4, 2.0, 0.4]
    crossed, _ = find(losses, (1.0, 0.5), growth=0.0)
    assert crossed == {1.0: 1, 0.5: 3}


def test_a_threshold_never_reached_is_censored_and_ends():
    crossed, path = find([2.0] * 501, (1.0,), limit=500)
    assert crossed == {}
    assert path.made == 500


def test_the_crossing_at_the_limit_counts():
    losses = [2.0] * 500 + [0.5]
    assert find(losses, (1.0,), growth=0.3)[0] == {1.0: 500}


def test_the_grid_is_geometric():
    path = Trajectory([2.0] * 10_001)
    search = Search([Monitor("training", path.reader, (1.0,))], 0, growth=0.01, limit=10_000)
    drive(search, path.advance)
    tests = [test.update for test in search.tests]
    assert tests[:100] == list(range(1, 101))
    steps = [(b - a) / a for a, b in itertools.pairwise(tests) if a >= 200]
    assert max(steps) <= 0.01
    assert len(tests) < 700


def test_two_monitors_are_independent():
    a, b = Trajectory(falling(900)), Trajectory([x * 1.5 for x in falling(900)])
    monitors = [Monitor("training", a.reader, (0.5,)), Monitor("validation", b.reader, (0.5,))]
    drive(Search(monitors, 0, growth=0.05, limit=900), a.advance)
    assert monitors[0].crossed == {0.5: first_below(a.losses, 0.5)}
    assert monitors[1].crossed == {0.5: first_below(b.losses, 0.5)}


def test_early_exit_agrees_with_the_whole_sum():
    draw = random.Random(1)
    for _ in range(300):
        chunks = [(draw.expovariate(1.0) * 10, 10) for _ in range(20)]
        threshold = draw.uniform(0.5, 1.5)
        whole = sum(part for part, _ in chunks) / 200
        reading = read_loss(iter(chunks), 200, threshold)
        assert (reading.loss < threshold) == (whole < threshold)
        assert reading.loss <= whole + 1e-12
        assert reading.cut or reading.loss == pytest.approx(whole, rel=1e-12)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="at least 0"):
        read_loss([(-1.0, 5)], 5, 1.0)


def test_a_loss_at_a_threshold_is_not_below_it():
    assert find([2.0, 0.5, 0.5, 0.4], (1.0, 0.5), growth=0.0)[0] == {1.0: 1, 0.5: 3}
