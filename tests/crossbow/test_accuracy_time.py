"""TTA(x) on scripted accuracy curves, and the cost model of a server."""

from __future__ import annotations

import math

from suite.clock import Link
from suite.model_averaging.time_to_accuracy import MultiGpuServer, epochs_to_accuracy


def test_median_of_the_last_five_by_hand():
    """Epochs 5 to 8 have medians 0.3, 0.4, 0.5, 0.9: 0.5 is reached at epoch 7."""
    curve = [0.1, 0.2, 0.3, 0.4, 0.9, 0.5, 0.9, 0.95]
    assert epochs_to_accuracy(curve, 0.5) == 7


def test_equal_counts_as_reached_and_a_spike_does_not():
    assert epochs_to_accuracy([0.8] * 5, 0.8) == 5
    assert epochs_to_accuracy([0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.9, 0.1], 0.8) is None


def test_never_reached_too_short_or_diverged():
    assert epochs_to_accuracy([0.99] * 4, 0.5) is None
    assert epochs_to_accuracy([], 0.5) is None
    assert epochs_to_accuracy([0.7] * 100, 0.71) is None
    assert epochs_to_accuracy([0.9, 0.9, math.nan, 0.9, 0.9, 0.9, 0.9], 0.5) is None


def test_server_by_hand():
    """Two GPUs: a ring of two steps of half a model, 2 * (0.5e6 / 1e6) s, and 0.25 s for each of two learners."""
    server = MultiGpuServer({1: 1.0, 2: 1.5}, 1e6, Link(0.0, 1e6), local_seconds=0.25)
    assert server.synchronisation(2, 2) == 1.5
    assert server.iteration(2, 2) == 3.0
    assert server.iteration(2, 2, tau=3) == 2.0
    assert server.iteration(2, 2, tau=None) == 1.5
    assert server.throughput(10, 2, 2) == 40 / 3
