"""How small a departure a rule would catch, from the interval at hand."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist

from suite.claims.estimate import Estimate
from suite.claims.judge import Claim

CAUGHT = 0.8  # share of departures that a rule's power speaks of


def power(claim: Claim, ours: Estimate) -> tuple[float, ...]:
    """For each value, the smallest departure from the rule that it would catch four times in five.

    In the value's unit: how far beyond what the claim prints the truth must lie for the whole interval to fall
    outside the tolerance with probability ``CAUGHT``, if measurements scatter as the interval at hand says (normal,
    95%). Infinite where the interval is; the tolerance itself where it has no width.
    """
    reach = NormalDist().inv_cdf(CAUGHT)
    tolerances: Iterable[float] = claim.tolerances(len(ours.values)) if claim.rule in ("within", "bound") else (0.0,)
    given = list(tolerances)
    given += [given[-1]] * (len(ours.values) - len(given))
    departures = []
    for (_, low, high), tolerance in zip(ours.spans, given, strict=False):
        half = (high - low) / 2
        departures.append(tolerance + half + reach * half / 1.96 if math.isfinite(half) else math.inf)
    return tuple(departures)
