"""Equations 1-12 and the method on synthetic systems: what arithmetic alone can decide.

Every quantity is the worst case over seeded random constants that span the regimes of the paper: floors of
10 .. 10^4 updates, sensitivities up to 10^6, knees of 1 .. 100 examples, communication from negligible to
dominant. The constants are redrawn the same way on every call.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Literal

from reference_impls import inverse_law_model as forms
from reference_impls.inverse_law_model import Law, Prices, System
from suite.claims.measured import Measured, exact, interval
from suite.papers.artifact import Evidence, Quantities

Topology = Literal["all_reduce", "server"]
DRAWS = 300
LEARNERS = (2, 3, 8, 64, 512, 4096)


def draws(count: int = DRAWS, seed: int = 0, topology: Topology = "all_reduce") -> Iterator[tuple[Law, System, int]]:
    """Random laws and systems, with a number of learners."""
    draw = random.Random(seed)
    for _ in range(count):
        law = Law(10 ** draw.uniform(1, 4), 10 ** draw.uniform(2, 6))
        system = System(10 ** draw.uniform(-6, -3), 10 ** draw.uniform(0, 2), 10 ** draw.uniform(-5, -1), topology)
        yield law, system, draw.choice(LEARNERS)


def numeric_optimum(law: Law, system: System, learners: int) -> tuple[float, float]:
    """(M, T) of the least Eq. 5 found by search alone: a grid over 12 decades, then golden sections."""
    from scipy.optimize import minimize_scalar

    seconds = lambda log_batch: forms.convergence_seconds(law, system, math.exp(log_batch), learners)
    grid = [i * 0.05 for i in range(-20, 561)]
    near = min(grid, key=seconds)
    found = minimize_scalar(seconds, bounds=(near - 0.05, near + 0.05), method="bounded", options={"xatol": 1e-12})
    return math.exp(found.x), float(found.fun)


def relative(a: float, b: float) -> float:
    return abs(a - b) / max(abs(a), abs(b), 1e-300)


def across(values: list[float]) -> Measured:
    """All exact cases as one value, their middle, and the interval from the least to the largest."""
    low, high = min(values), max(values)
    return interval((low + high) / 2, low, high, kind="exact", n=len(values))


def worst(values: Iterator[float]) -> float:
    return max(values)


def update_time(evidence: Evidence) -> Quantities:
    """Eq. 3 written out beside the reference's, and no communication for one learner."""

    def difference(law: Law, system: System, learners: int, batch: float) -> float:
        seconds = system.seconds_per_example * max(batch / learners, system.knee) + system.exchange_seconds
        return abs(seconds - system.update(batch, learners))

    yield "sum", exact(worst(difference(*draw, 10.0**k) for draw in draws() for k in range(4)))
    yield "no-comm-single", exact(worst(system.exchange(1) for _, system, _ in draws()))


def combined(evidence: Evidence) -> Quantities:
    """Eq. 5 is Eq. 2 times Eqs. 3-4, written out here without the reference's functions."""

    def difference(law: Law, system: System, learners: int, batch: float) -> float:
        seconds = system.seconds_per_example * max(batch / learners, system.knee) + system.exchange_seconds
        product = (law.floor + law.sensitivity / batch) * seconds
        return relative(product, forms.convergence_seconds(law, system, batch, learners))

    yield "combines", exact(worst(difference(*draw, 10.0**k) for draw in draws() for k in range(6)))


def single_learner(evidence: Evidence) -> Quantities:
    """Eq. 7 is Eq. 5 with P = 1 and no communication."""

    def difference(law: Law, system: System, learners: int, batch: float) -> float:
        alone = (law.floor + law.sensitivity / batch) * system.seconds_per_example * max(batch, system.knee)
        return relative(alone, forms.convergence_seconds(law, system, batch, 1))

    yield "special-case", exact(worst(difference(*draw, 10.0**k) for draw in draws() for k in range(6)))


def knee_is_best(evidence: Evidence) -> Quantities:
    """Eq. 8, as the relative distance of the knee from the numeric minimiser."""
    yield "knee", exact(worst(relative(numeric_optimum(law, s, 1)[0], s.knee) for law, s, _ in draws(100)))


def amortised(evidence: Evidence) -> Quantities:
    """Eq. 6: what validation adds per update is its own cost over the updates between two validations."""
    held, cases = 0, 0
    for law, system, learners in draws():
        plain = forms.convergence_seconds(law, system, 256, learners)
        added = [
            forms.validated_seconds(
                law,
                system,
                256,
                learners,
                validation_examples=12_000,
                updates_per_validation=every,
                validation=system,
            )
            - plain
            for every in (1, 10, 100)
        ]
        once = law.updates(256) * system.compute(12_000 / learners)
        cases += 1
        # ten times rarer costs ten times less, and nothing else is added: no communication
        held += all(relative(cost * every, once) < 1e-6 for cost, every in zip(added, (1, 10, 100), strict=True))
    yield "cv-amortised", exact(held / cases)


def several_learners(evidence: Evidence) -> Quantities:
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
        low, high = (low, b) if seconds(math.exp(a)) <= seconds(math.exp(b)) else (a, high)
    return math.exp((low + high) / 2)


def least_time(evidence: Evidence) -> Quantities:
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


def scaling(evidence: Evidence) -> Quantities:
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


def hardware_mix(evidence: Evidence) -> Quantities:
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
