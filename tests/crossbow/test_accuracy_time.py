"""TTA(x) on scripted accuracy curves."""

from __future__ import annotations

import math

from paper_figures.crossbow.readings import epochs_to_accuracy


def test_median_of_the_last_five_by_hand():
    """Epochs 5 to 8 have medians 0.3, 0.4, 0.5, 0.9: 0.5 is reached at epoch 7."""
    curve = [0.1, 0.2, 0.3, 0.4, 0.9, 0.5, 0.9, 0.95]
    assert epochs_to_accuracy(curve, 0.5) == 7


def test_equal_counts_as_reached_and_a_spike_does_not():
    assert epochs_to_accuracy([0.8] * 5, 0.8) == 5
    assert epochs_to_accuracy([0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.9, 0.1], 0.8) == math.inf


def test_never_reached_too_short_or_diverged():
    assert epochs_to_accuracy([0.99] * 4, 0.5) == math.inf
    assert epochs_to_accuracy([], 0.5) == math.inf
    assert epochs_to_accuracy([0.7] * 100, 0.71) == math.inf
    assert epochs_to_accuracy([0.9, 0.9, math.nan, 0.9, 0.9, 0.9, 0.9], 0.5) == math.inf
