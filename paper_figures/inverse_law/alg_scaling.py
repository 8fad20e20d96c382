"""Strong, weak and optimal scaling: the batch, the batch per learner, or neither held as learners are added.

Strong scaling keeps the number of updates and stops helping where a learner's share reaches the knee; weak scaling
needs ever fewer updates but never fewer than N_inf; optimal scaling takes the best batch for each number of learners.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paper_figures.inverse_law.plots import logarithmic
from paper_figures.inverse_law.synthetic_systems import across, draws, relative
from reference_impls import inverse_law_model as forms
from reference_impls.inverse_law_model import Law, System
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def measure_scaling(evidence: Evidence) -> Quantities:
    """Strong and weak scaling, Eq. 5 with M or M / P held."""
    pairs = [(2**k, 2 ** (k + 1)) for k in range(1, 12)]
    constant, floors, falls, steady, above, uneven = [], [], [], [], [], []
    for law, system, _ in draws():
        batch = 4096.0
        constant += [abs(forms.strong_scaling_seconds(law, system, batch, p) / system.update(batch, p)
                         - law.updates(batch)) / law.updates(batch) for p, _ in pairs]  # fmt: skip
        floors.append(_last_gain(law, system, batch) / (batch / system.knee))
        share = 2 * system.knee
        falls += [law.updates(share * p) - law.updates(share * q) for p, q in pairs]
        steady += [relative(system.update(share * p, p), system.update(share * q, q)) for p, q in pairs]
        above += [
            forms.weak_scaling_seconds(law, system, share, p) / (law.floor * system.update(share * p, p))
            for p, _ in pairs
        ]
        parts = [(m, p) for m in (100, 1000) for p in (3, 7, 64) if m / p > system.knee]
        uneven += [_uneven(system, m, p) / system.update(m, p) for m, p in parts]
    yield "strong-updates-constant", exact(max(constant))
    yield "strong-floor", across(floors)
    yield "weak-updates-fall", exact(min(falls))
    yield "weak-update-time-constant", exact(max(steady))
    yield "weak-floor", exact(min(above))
    yield "load-imbalance", exact(min(uneven))


def _last_gain(law: Law, system: System, batch: float) -> float:
    """The number of learners from which more of them no longer shorten strong scaling, by bisection."""
    seconds = lambda p: law.updates(batch) * (system.seconds_per_example * max(batch / p, system.knee))
    low, high = 1.0, batch * 1e3
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if seconds(middle) > seconds(high) * (1 + 1e-12) else (low, middle)
    return high


def _uneven(system: System, batch: int, learners: int) -> float:
    """Seconds per update when whole examples are dealt out: the fullest learner decides."""
    return system.compute(math.ceil(batch / learners)) + system.exchange(learners)


def draw(evidence: Evidence, figure: Figure) -> None:
    """Strong, weak and optimal scaling of one system by the closed forms: time to converge, and its batch size."""
    law, system, strong, knee = forms.Law(500, 50_000), forms.System(1e-3, 8, 5e-2), 256, 8
    learners = [2**k for k in range(1, 13)]
    lines = (
        (f"strong, M = {strong}", "-", forms.strong_scaling_seconds, strong, lambda p: strong),
        (f"weak, M = {knee} P", "--", forms.weak_scaling_seconds, knee, lambda p: knee * p),
    )
    left, right = figure.subplots(1, 2)
    for label, style, seconds, size, batch in lines:
        left.plot(learners, [seconds(law, system, size, p) for p in learners], style, label=label)
        right.plot(learners, [batch(p) for p in learners], style)
    best = [forms.optimal_scaling_seconds(law, system, p) for p in learners]
    left.plot(learners, best, linestyle=":", linewidth=2.2, label="optimal")
    right.plot(learners, [forms.optimal_batch(law, system, p) for p in learners], linestyle=":", linewidth=2.2)
    turns = (
        (strong / knee, "strong scaling ends"),
        (
            law.sensitivity * system.exchange_seconds / (law.floor * system.seconds_per_example * knee**2),
            "weak is optimal",
        ),
    )
    for at, label in turns:
        for axes in (left, right):
            axes.axvline(at, linewidth=0.8, linestyle="--", color="0.5")
        left.annotate(
            label,
            (at, 0.97),
            xycoords=("data", "axes fraction"),
            xytext=(2, 0),
            textcoords="offset points",
            rotation=90,
            verticalalignment="top",
            fontsize="x-small",
        )
    for axes in (left, right):
        logarithmic(axes, learners)
        axes.set_xlabel("learners P")
    left.set_ylabel("seconds to converge (model)")
    right.set_ylabel("mini-batch size M (examples)")
    left.legend(fontsize="small")


ARTIFACTS = (
    Artifact(
        "inverse_law/alg-scaling",
        "Strong, weak and optimal scaling",
        measures=(measure_scaling,),
        draw=draw,
        alt="Time to converge and batch size against learners under strong, weak and optimal scaling.",
        size=(8.0, 4.0),
    ),
)
