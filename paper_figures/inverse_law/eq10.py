"""Equation 10: the least time to converge, and what it says of optimal scaling.

It is never slower than strong or weak scaling, equals weak scaling with M_T examples each for many learners, and a
lower floor lets more learners help.
"""

from __future__ import annotations

import math

from paper_figures.inverse_law.synthetic_systems import draws, relative
from reference_impls import inverse_law_model as forms
from reference_impls.inverse_law_model import Law, System
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Quantities


def measure_least_time(evidence: Evidence) -> Quantities:
    """Eq. 10 and what it says of optimal scaling."""
    cases = [*draws(), *draws(seed=3, topology="server")]
    yield (
        "closed-form",
        exact(
            max(
                relative(
                    forms.minimal_seconds(law, s, p),
                    forms.convergence_seconds(law, s, forms.optimal_batch(law, s, p), p),
                )
                for law, s, p in cases
            )
        ),
    )
    gains = []
    for law, system, p in cases:
        best = forms.minimal_seconds(law, system, p)
        others = [forms.strong_scaling_seconds(law, system, batch, p) for batch in (32, 256, 2048)]
        others += [forms.weak_scaling_seconds(law, system, share * system.knee, p) for share in (0.5, 1, 4)]
        gains.append(min(others) / best)
    yield "beats-others", exact(min(gains))
    far = []
    for law, system, _ in draws():
        p = max(2, math.ceil(2 * forms.weak_scaling_is_optimal_from(law, system)))
        far.append(
            relative(forms.minimal_seconds(law, system, p), forms.weak_scaling_seconds(law, system, system.knee, p))
        )
    yield "equals-weak-large-p", exact(max(far))
    steps = []
    for law, system, p in draws(seed=4):
        lower = Law(law.floor / 2, law.sensitivity)
        steps.append(_speed_up(lower, system, p) - _speed_up(law, system, p))
    yield "lower-floor-scales-better", exact(min(steps))


def _speed_up(law: Law, system: System, learners: int) -> float:
    """Of many learners without communication cost over one, each at its best batch size."""
    free = System(system.seconds_per_example, system.knee)
    return forms.minimal_seconds(law, free, 1) / forms.minimal_seconds(law, free, learners)


ARTIFACTS = (Artifact("inverse_law/eq10", "Least time to converge", measures=(measure_least_time,)),)
