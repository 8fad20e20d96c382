"""Fig. 3: predicted training time against batch size for two systems, by Eqs. 19 to 22.

With C1 images/s and C2 s per exchange, an update at batch size n costs n/C1 + C2 seconds (Eq. 19), so t seconds hold
T = t / (n/C1 + C2) updates (Eq. 20), after which the loss is 1/sqrt(n T) + 1/T, the bound of Eq. 21 taken as an
equality. Substituting T and multiplying by t gives Eq. 22. At a fixed loss psi, Eq. 22 is a quadratic in sqrt(t);
the batch size that minimises t solves

    4 psi n^3 - 2 K n - K^2 = 0,    K = C1 C2.

For psi -> 0 its positive root grows as sqrt(K / (2 psi)), for psi -> inf as (K^2 / (4 psi))^(1/3). So two systems
whose K differ by a factor of two have optima in a ratio between sqrt(2) and 2^(2/3), whatever psi is. The paper says
that the system of 2000 images/s has its optimum at 500 images and that of 1000 images/s at 1000, and in the next
sentence that the faster system has the larger optimum, which is what Eq. 22 gives.
"""

from __future__ import annotations

import math
from typing import Any

from suite.papers.figure import Artifact, Axes, Figure, Frame, printed_value, scipy

SYSTEMS = ((2000.0, 0.3), (1000.0, 0.3))  # (C1 images/s, C2 s), section 3.4.2 and the legend of Fig. 3
AXIS = (1, 3000)  # batch sizes of Fig. 3
LOSSES = tuple(10 ** (exponent / 8) for exponent in range(-96, 65))  # psi from 1e-12 to 1e8
DRAWN_LOSS = 5.5e-4  # not stated; here both optima lie in the range that Fig. 3 shows

PANEL = Artifact(
    "isgd/fig3", "Predicted training time against batch size for two system configurations", size=(9.6, 4.2)
)


def seconds_to(psi: float, batch: Any, c1: float, c2: float) -> Any:
    """Eq. 22 solved for the time at which the loss is psi; ``batch`` is a number or an array of them."""
    slope = ((batch + c1 * c2) / (batch * c1)) ** 0.5
    constant = batch / c1 + c2
    return ((slope + (slope**2 + 4 * psi * constant) ** 0.5) / (2 * psi)) ** 2


def best_batch(psi: float, c1: float, c2: float) -> float:
    """The positive root of 4 psi n^3 - 2 K n - K^2; there is one, because its coefficients change sign once."""
    k = c1 * c2
    bound = 2 * (math.sqrt(k / (2 * psi)) + (k * k / (4 * psi)) ** (1 / 3))
    return float(
        scipy.optimize.brentq(lambda n: 4 * psi * n**3 - 2 * k * n - k * k, 0.0, bound, xtol=1e-12, rtol=1e-14)
    )


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Left: time by Eq. 22 against batch size, U-shaped for both systems; the faster system's optimum lies at the
    larger batch, the printed optima elsewhere. Right: the ratio of the optima stays between 1.41 and 1.59.
    """
    curves, ratios = figure.subplots(1, 2)
    said = dict(zip(SYSTEMS, map(printed_value, ("isgd/fig3/opt-first", "isgd/fig3/opt-second")), strict=True))
    draw_times(curves, said)
    shares = [best_batch(psi, *SYSTEMS[0]) / best_batch(psi, *SYSTEMS[1]) for psi in LOSSES]
    ratios.semilogx(LOSSES, shares, label="by Eq. 22")
    for limit in (math.sqrt(2), 2 ** (2 / 3)):
        ratios.axhline(limit, linestyle=":", color="0.5")
    ratios.axhline(said[SYSTEMS[0]] / said[SYSTEMS[1]], color="C3", label="as printed: 500 / 1000")
    ratios.axhline(said[SYSTEMS[1]] / said[SYSTEMS[0]], color="C3", linestyle="--", label="with the two swapped")
    ratios.set(xlabel="loss psi (unit not stated)", ylabel="ratio of optima, faster / slower", ylim=(0, 2.2))
    ratios.legend(fontsize="small", loc="center right")


def draw_times(axes: Axes, said: dict[tuple[float, float], float]) -> None:
    """Time over batch size of both systems; a dot at each optimum, a cross where it is printed."""
    sizes = range(20, AXIS[1] + 1, 10)
    for colour, (c1, c2) in zip(("C0", "C1"), SYSTEMS, strict=True):
        times = [seconds_to(DRAWN_LOSS, n, c1, c2) / 1e3 for n in sizes]
        axes.plot(sizes, times, color=colour, label=f"C1 = {c1:g} images/s, C2 = {c2:g} s")
        for mark, at in (("o", best_batch(DRAWN_LOSS, c1, c2)), ("x", said[c1, c2])):
            axes.plot(at, seconds_to(DRAWN_LOSS, at, c1, c2) / 1e3, mark, color=colour)
    axes.set(
        xlabel="batch size (images)",
        ylabel="time to the loss (10$^3$ s, constants dropped)",
        title=f"Eq. 22 at psi = {DRAWN_LOSS:g}\n(dot: optimum, cross: printed)",
    )
    axes.set_ylim(0, 2.5 * min(seconds_to(DRAWN_LOSS, n, *SYSTEMS[1]) for n in sizes) / 1e3)
    axes.legend(fontsize="small")
