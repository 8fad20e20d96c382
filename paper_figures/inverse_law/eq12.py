"""Equations 11 and 12: at the best mix for a budget, money on bandwidth and on compute gains the same time."""

from __future__ import annotations

import random

from paper_figures.inverse_law.synthetic_systems import draws, relative
from reference_impls import inverse_law_model as forms
from reference_impls.inverse_law_model import Law, Prices
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Quantities


def measure_mix(evidence: Evidence) -> Quantities:
    """Eqs. 11 and 12: marginal gains at the best mix, and the mix against a search over mixes."""
    from scipy.optimize import minimize_scalar

    balances, mixes = [], []
    draw = random.Random(5)
    for law, system, p in draws(100, seed=5):
        prices = Prices(10 ** draw.uniform(-5, -2), 10 ** draw.uniform(-4, 0))
        money = 10 ** draw.uniform(0, 3)
        seconds = lambda share, law=law, knee=system.knee, p=p, prices=prices, money=money: forms.minimal_seconds(
            law, prices.system(share * money, (1 - share) * money, knee), p
        )
        compute, bandwidth = forms.best_mix(law, prices, system.knee, p, money)
        share = compute / money
        found = minimize_scalar(seconds, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-13})
        mixes.append(seconds(share) / float(found.fun) - 1)
        balances.append(_imbalance(law, prices, system.knee, p, compute, bandwidth))
    yield "balance", exact(max(balances), note="relative difference of the two marginal gains")
    yield "closed-form-used", exact(max(mixes), note="relative excess of the time over a search of all mixes")


def _imbalance(law: Law, prices: Prices, knee: float, learners: int, compute: float, bandwidth: float) -> float:
    """Relative difference of d T_min / d money spent on either, by central differences."""
    seconds = lambda c, b: forms.minimal_seconds(law, prices.system(c, b, knee), learners)
    h = 1e-5
    by_compute = (seconds(compute * (1 + h), bandwidth) - seconds(compute * (1 - h), bandwidth)) / (2 * h * compute)
    by_bandwidth = (seconds(compute, bandwidth * (1 + h)) - seconds(compute, bandwidth * (1 - h))) / (
        2 * h * bandwidth
    )
    return relative(by_compute, by_bandwidth)


ARTIFACTS = (Artifact("inverse_law/eq12", "Best mix of hardware for a budget", measures=(measure_mix,)),)
