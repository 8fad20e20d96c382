"""A number of ours, with everything a verdict needs to know about it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from operator import gt, lt
from typing import Any

from suite.claims.intervals import Interval, mean_interval

# The scale of a number, the best first: derived by suite.papers.grades. Whole contradicts nothing that the paper
# prints; reduced has less of something printed; a stand-in has another data set, network, rate or machine; modelled
# is virtual time or a cost model; exact is a property of our code, a setting, or arithmetic on print.
WHOLE, REDUCED, STAND_IN, MODELLED, EXACT = GRADES = ("whole", "reduced", "stand-in", "modelled", "exact")
COMPUTED = (MODELLED, EXACT)  # no training and no clock had a say in it


@dataclass(frozen=True)
class Estimate:
    """One or several values with intervals.

    ``n``: independent repetitions behind each value; ``runs``: ids of the stored runs it was read from.
    ``freedom``: degrees of freedom of the intervals, the fewest of several; 0 where Student's t made none of them,
    None where all are ranges.
    ``proxy``: it is another quantity than the claim's, shown beside it because it is near (the accuracy on another
    data set, a row that a model was fitted on): no rule is applied to it. What a number *rests on* is never said
    here; ``suite.papers.grades`` derives it.
    """

    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    n: int = 1
    runs: tuple[str, ...] = ()
    note: str = ""
    proxy: bool = False
    freedom: float | None = 0
    part: str = ""  # of the seeds, where not all are stored: "1 of 5 seeds at reduced"

    def __post_init__(self) -> None:
        if not self.values or not len(self.values) == len(self.low) == len(self.high):
            raise ValueError("a measured quantity needs as many bounds as values, and at least one")
        if any(map(gt, self.low, self.high)):
            raise ValueError(f"interval ends out of order: {self.low} .. {self.high}")

    @property
    def finite(self) -> bool:
        return all(math.isfinite(v) for v in (*self.values, *self.low, *self.high))

    @property
    def known(self) -> bool:
        """Whether there is something to show: a value may be infinite."""
        return not any(map(math.isnan, self.values))

    @property
    def decidable(self) -> bool:
        """Whether rules can be applied: an interval may be open at an end, and its finite end then speaks."""
        return all(map(math.isfinite, self.values)) and not any(map(math.isnan, (*self.low, *self.high)))

    @property
    def spread(self) -> bool:
        """Whether a value has an interval of some width."""
        return any(map(lt, self.low, self.high))

    @property
    def ranged(self) -> bool:
        """Whether the ends are those of ranges, and of no confidence interval."""
        return self.freedom is None

    @property
    def spans(self) -> tuple[tuple[float, float, float], ...]:
        """Each value with the ends of its interval: (value, low, high)."""
        return tuple(zip(self.values, self.low, self.high, strict=True))


Value = Any
"""What a quantity returns: a number or an :class:`Interval`, several of them in a list, or a series of one value per
seed, of which the mean is taken with Student's interval."""


def over_seeds(value: Value, runs: Iterable[str] = (), note: str = "", *, proxy: bool = False) -> Estimate:
    """The estimate of a quantity's value; a number alone has no width, ``n`` is the fewest seeds among several."""
    if hasattr(value, "to_numpy"):
        value = mean_interval(value.tolist())
    several = value if isinstance(value, list | tuple) else [value]
    found = [each if isinstance(each, Interval) else Interval(each, each, each, 1) for each in several]
    freedoms = [i.freedom for i in found if i.low < i.high]
    ranged = set(freedoms) == {None}
    return Estimate(
        tuple(float(i.mean) for i in found),
        tuple(float(i.low) for i in found),
        tuple(float(i.high) for i in found),
        min((i.n for i in found), default=0),
        tuple(runs),
        note,
        proxy,
        None if ranged else min(filter(None, freedoms), default=0),
    )
