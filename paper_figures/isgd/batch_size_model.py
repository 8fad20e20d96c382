"""Equations 19 to 22: time per update, updates in a given time, loss after them, and the best batch size.

With C1 images/s and C2 s per exchange, an update at batch size n costs n/C1 + C2 seconds (Eq. 19), so t seconds
hold T = t / (n/C1 + C2) updates (Eq. 20), after which the loss is 1/sqrt(n T) + 1/T, the bound of Eq. 21 taken
as an equality. Substituting T and multiplying by t gives Eq. 22. At a fixed loss psi, Eq. 22 is a quadratic in
sqrt(t); the batch size that minimises t solves

    4 psi n^3 - 2 K n - K^2 = 0,    K = C1 C2.

For psi -> 0 its positive root grows as sqrt(K / (2 psi)), for psi -> inf as (K^2 / (4 psi))^(1/3). So two systems
whose K differ by a factor of two have optima in a ratio between sqrt(2) and 2^(2/3), whatever psi is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from paper_figures.isgd.printed import printed
from paper_figures.isgd.stated import SYSTEMS
from suite.claims.measured import Measured, exact, interval
from suite.papers.artifact import Evidence

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

AXIS = (1, 3000)  # batch sizes of Fig. 3
LOSSES = tuple(10 ** (exponent / 8) for exponent in range(-96, 65))  # psi from 1e-12 to 1e8
DRAWN_LOSS = 5.5e-4  # not stated; here both optima lie in the range that Fig. 3 shows


def seconds_per_update(batch: float, c1: float, c2: float) -> float:
    """Eq. 19."""
    return batch / c1 + c2


def updates_within(seconds: float, batch: float, c1: float, c2: float) -> float:
    """Eq. 20."""
    return seconds / seconds_per_update(batch, c1, c2)


def loss_after(updates: float, batch: float) -> float:
    """Eq. 21 as an equality; its unit is not stated, since all constants are dropped."""
    return 1 / math.sqrt(batch * updates) + 1 / updates


def seconds_to(psi: float, batch: Any, c1: float, c2: float) -> Any:
    """Eq. 22 solved for the time at which the loss is psi; ``batch`` is a number or an array of them."""
    slope = ((batch + c1 * c2) / (batch * c1)) ** 0.5
    constant = seconds_per_update(batch, c1, c2)
    return ((slope + (slope**2 + 4 * psi * constant) ** 0.5) / (2 * psi)) ** 2


def best_batch(psi: float, c1: float, c2: float) -> float:
    """The positive root of 4 psi n^3 - 2 K n - K^2; there is one, because its coefficients change sign once."""
    from scipy.optimize import brentq

    k = c1 * c2
    bound = 2 * (math.sqrt(k / (2 * psi)) + (k * k / (4 * psi)) ** (1 / 3))
    return float(brentq(lambda n: 4 * psi * n**3 - 2 * k * n - k * k, 0.0, bound, xtol=1e-12, rtol=1e-14))


def loss_with_best_batch(batch: float, c1: float, c2: float) -> float:
    """The psi at which ``batch`` is the best batch size."""
    k = c1 * c2
    return k * (2 * batch + k) / (4 * batch**3)


def optima(_: Evidence) -> Iterable[tuple[str, Measured]]:
    """Each printed optimum against the one that Eq. 22 gives at the psi which the other printed one needs."""
    (first, second) = SYSTEMS
    (said_first,), (said_second,) = printed("fig3/opt-first"), printed("fig3/opt-second")
    for name, system, said, other in (
        ("opt-first", first, said_second, second),
        ("opt-second", second, said_first, first),
    ):
        psi = loss_with_best_batch(said, *other)
        note = f"at psi = {psi:.4g}, where C1 = {other[0]:g} has its optimum at {said:g}"
        yield name, exact(best_batch(psi, *system), note=note)
    ratios = [best_batch(psi, *first) / best_batch(psi, *second) for psi in LOSSES]
    yield "ratio", exact((min(ratios), max(ratios)), note="over psi from 1e-12 to 1e8; limits sqrt(2) and 2^(2/3)")


def shapes(_: Evidence) -> Iterable[tuple[str, Measured]]:
    """Statements on Fig. 3 that must hold at every psi whose two optima lie inside its axis."""
    import numpy as np

    first, second = SYSTEMS
    sizes = np.arange(AXIS[0], AXIS[1] + 1)
    shown = [psi for psi in LOSSES if sizes[1] <= best_batch(psi, *second) and best_batch(psi, *first) <= sizes[-2]]
    note = f"{len(shown)} values of psi from {shown[0]:.2g} to {shown[-1]:.2g}"
    larger = [best_batch(psi, *first) - best_batch(psi, *second) for psi in shown]
    yield "faster-larger", _ends(larger, note)
    times = {(psi, system): seconds_to(psi, sizes, *system) for psi in shown for system in SYSTEMS}
    bowls = [single_minimum(curve) for curve in times.values()]
    yield "u-shape", exact(sum(bowls) / len(bowls), note=f"{len(bowls)} curves; {note}")
    saved = np.concatenate([times[psi, second] / times[psi, first] - 1 for psi in shown])
    yield "faster-below", _ends(saved, f"{len(sizes)} batch sizes; {note}")


def single_minimum(times: np.ndarray) -> bool:
    """Whether a curve falls strictly, turns once inside its range, and rises strictly."""
    import numpy as np

    rises = np.diff(times) > 0
    falls = np.diff(times) < 0
    lowest = int(times.argmin())
    return bool(0 < lowest < len(times) - 1 and falls[:lowest].all() and rises[lowest:].all())


def _ends(values: Sequence[float] | np.ndarray, note: str = "") -> Measured:
    """The middle of many exact values with the smallest and the largest."""
    ranked = sorted(map(float, values))
    return interval(ranked[len(ranked) // 2], ranked[0], ranked[-1], kind="exact", n=len(ranked), note=note)


def configurations(_: Evidence) -> Iterable[tuple[str, Measured]]:
    (c1, c2), (other, same) = SYSTEMS
    assert c2 == same
    yield "configurations", exact((c1, other, c2), note="the systems of the curves drawn here")


def substitution(_: Evidence) -> Iterable[tuple[str, Measured]]:
    """Eq. 22 with psi from Eq. 21 and T from Eq. 20 put in: the largest relative gap between its two sides."""
    gaps, steps = [], []
    for c1, c2 in (*SYSTEMS, (37.0, 0.011)):
        for batch in (1, 16, 500, 3000):
            for seconds in (0.5, 10.0, 86_400.0):
                psi = loss_after(updates_within(seconds, batch, c1, c2), batch)
                right = math.sqrt((batch + c1 * c2) / (batch * c1)) * math.sqrt(seconds) + batch / c1 + c2
                gaps.append(abs(psi * seconds - right) / right)
                more = updates_within(seconds, batch, c1, c2) / updates_within(seconds, 2 * batch, c1, c2)
                steps.append(more - 1)
    yield "follows", exact(max(gaps), note=f"largest of {len(gaps)} points, relative to the right side")
    yield "fewer-updates", _ends(steps)


def draw(_: Evidence, figure: Figure) -> None:
    """The two curves at one psi with both kinds of optimum, and the ratio of optima at every psi."""
    curves, ratios = figure.subplots(1, 2)
    said = {SYSTEMS[0]: printed("fig3/opt-first")[0], SYSTEMS[1]: printed("fig3/opt-second")[0]}
    sizes = range(20, AXIS[1] + 1, 10)
    for colour, (c1, c2) in zip(("C0", "C1"), SYSTEMS, strict=True):
        times = [seconds_to(DRAWN_LOSS, n, c1, c2) / 1e3 for n in sizes]
        curves.plot(sizes, times, color=colour, label=f"C1 = {c1:g} images/s, C2 = {c2:g} s")
        best = best_batch(DRAWN_LOSS, c1, c2)
        curves.plot(best, seconds_to(DRAWN_LOSS, best, c1, c2) / 1e3, "o", color=colour)
        curves.plot(said[c1, c2], seconds_to(DRAWN_LOSS, said[c1, c2], c1, c2) / 1e3, "x", color=colour)
    curves.set(
        xlabel="batch size (images)",
        ylabel="time to the loss (10$^3$ s, constants dropped)",
        title=f"Eq. 22 at psi = {DRAWN_LOSS:g}\n(dot: optimum, cross: printed)",
    )
    curves.set_ylim(0, 2.5 * min(seconds_to(DRAWN_LOSS, n, *SYSTEMS[1]) for n in sizes) / 1e3)
    curves.legend(fontsize="small")
    ratios.semilogx(LOSSES, [best_batch(psi, *SYSTEMS[0]) / best_batch(psi, *SYSTEMS[1]) for psi in LOSSES])
    for limit in (math.sqrt(2), 2 ** (2 / 3)):
        ratios.axhline(limit, linestyle=":", color="0.5")
    ratios.axhline(said[SYSTEMS[0]] / said[SYSTEMS[1]], color="C3", label="as printed: 500 / 1000")
    ratios.axhline(said[SYSTEMS[1]] / said[SYSTEMS[0]], color="C3", linestyle="--", label="with the two swapped")
    ratios.set(xlabel="loss psi (unit not stated)", ylabel="ratio of optima, faster / slower", ylim=(0, 2.2))
    ratios.legend(fontsize="small", loc="center right")
