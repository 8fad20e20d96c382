"""Equation 9: the best batch size of several learners, the larger of a square root in P and weak scaling's M_T P.

Weak scaling is therefore not always best: the square root holds while communication counts, and M_T P takes over
at P = alpha delta / (N_inf gamma M_T^2).
"""

from __future__ import annotations

import math

from paper_figures.inverse_law.synthetic_systems import across, draws, numeric_optimum, relative
from reference_impls import inverse_law_model as forms
from reference_impls.inverse_law_model import Law, System
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Quantities


def measure_optimum(evidence: Evidence) -> Quantities:
    """Eq. 9 against search, where weak scaling stops short of it, its growth and its crossover."""
    both = [*draws(100), *draws(100, seed=1, topology="server")]
    yield (
        "argmin",
        exact(
            max(
                relative(forms.minimal_seconds(law, system, p), numeric_optimum(law, system, p)[1])
                for law, system, p in both
            ),
            note="as the relative excess of the time at the closed form, which is flat around its minimum",
        ),
    )
    short, slopes, crossings = [], [], []
    for law, system, _ in draws(100, seed=2):
        crossover = forms.weak_scaling_is_optimal_from(law, system)
        if crossover > 20:
            short.append(forms.optimal_batch(law, system, 2) - system.knee * 2)
            slopes.append(
                math.log(forms.optimal_batch(law, system, 16) / forms.optimal_batch(law, system, 4)) / math.log(4)
            )
            crossings.append(_found_crossover(law, system) / crossover)
    yield "weak-not-optimal", exact(min(short))
    yield "sqrt-growth", across(slopes)
    yield "crossover", across(crossings)


def _found_crossover(law: Law, system: System) -> float:
    """The number of learners at which searching finds the best batch to be M_T P, by bisection."""
    linear = lambda p: relative(_searched(law, system, p), system.knee * p) < 1e-6
    low, high = 2.0, 1e12
    for _ in range(80):
        middle = math.sqrt(low * high)
        if middle in (low, high):  # neighbouring numbers
            break
        low, high = (low, middle) if linear(middle) else (middle, high)
    return high


def _searched(law: Law, system: System, learners: float) -> float:
    """Minimiser over M >= M_T P of Eq. 5, by ternary search (the time is unimodal in log M)."""
    gamma, delta = system.seconds_per_example, system.exchange_seconds
    seconds = lambda m: (law.floor + law.sensitivity / m) * (gamma * max(m / learners, system.knee) + delta)
    low = math.log(system.knee * learners)
    high = low + 40.0
    for _ in range(200):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        narrower = (low, b) if seconds(math.exp(a)) <= seconds(math.exp(b)) else (a, high)
        if narrower == (low, high):
            break
        low, high = narrower
    return math.exp((low + high) / 2)


ARTIFACTS = (Artifact("inverse_law/eq9", "Best batch size of several learners", measures=(measure_optimum,)),)
