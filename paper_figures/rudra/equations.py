"""Eq. 7: hardsync depends on mu lambda alone. Eqs. 1 to 6 are held by tests of the update rules."""

from __future__ import annotations

from paper_figures.rudra import errors
from paper_figures.rudra.plans import BASELINE, training_groups
from suite.papers.artifact import Artifact

EQ7 = Artifact(
    "rudra/eq7",
    "Hardsync depends on mu lambda alone",
    lambda profile: training_groups(profile, [BASELINE, (0, 4, 30)]),
    beside=errors.own_seeds,
)
EQ7.quantities["same-error"] = errors.differences((BASELINE, (0, 4, 30)))
