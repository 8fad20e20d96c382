"""Fig. 3: predicted training time against batch size for two systems, by Eq. 22.

The paper shows a bowl for each: too small a batch wastes time on synchronisation, too large a one on updates. It
says that the system of 2000 images/s has its optimum at 500 images and that of 1000 images/s at 1000, and in the
next sentence that the faster system has the larger optimum, which is what Eq. 22 gives.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paper_figures.isgd.batch_size_model import best_batch, loss_with_best_batch, seconds_to
from paper_figures.isgd.readings import extremes
from paper_figures.isgd.settings import SYSTEMS
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.published import printed_value

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

AXIS = (1, 3000)  # batch sizes of Fig. 3
LOSSES = tuple(10 ** (exponent / 8) for exponent in range(-96, 65))  # psi from 1e-12 to 1e8
DRAWN_LOSS = 5.5e-4  # not stated; here both optima lie in the range that Fig. 3 shows


def single_minimum(times: np.ndarray) -> bool:
    """Whether a curve falls strictly, turns once inside its range, and rises strictly."""
    import numpy as np

    rises = np.diff(times) > 0
    falls = np.diff(times) < 0
    lowest = int(times.argmin())
    return bool(0 < lowest < len(times) - 1 and falls[:lowest].all() and rises[lowest:].all())


def measure_optima(_: Evidence) -> Quantities:
    """Each printed optimum against the one that Eq. 22 gives at the psi which the other printed one needs."""
    first, second = SYSTEMS
    said_first, said_second = printed_value("isgd/fig3/opt-first"), printed_value("isgd/fig3/opt-second")
    for name, system, said, other in (
        ("opt-first", first, said_second, second),
        ("opt-second", second, said_first, first),
    ):
        psi = loss_with_best_batch(said, *other)
        note = f"at psi = {psi:.4g}, where C1 = {other[0]:g} has its optimum at {said:g}"
        yield name, exact(best_batch(psi, *system), note=note)
    ratios = [best_batch(psi, *first) / best_batch(psi, *second) for psi in LOSSES]
    yield "ratio", exact((min(ratios), max(ratios)), note="over psi from 1e-12 to 1e8; limits sqrt(2) and 2^(2/3)")


def measure_shapes(_: Evidence) -> Quantities:
    """Statements on Fig. 3 that must hold at every psi whose two optima lie inside its axis."""
    import numpy as np

    first, second = SYSTEMS
    sizes = np.arange(AXIS[0], AXIS[1] + 1)
    shown = [psi for psi in LOSSES if sizes[1] <= best_batch(psi, *second) and best_batch(psi, *first) <= sizes[-2]]
    note = f"{len(shown)} values of psi from {shown[0]:.2g} to {shown[-1]:.2g}"
    larger = [best_batch(psi, *first) - best_batch(psi, *second) for psi in shown]
    yield "faster-larger", extremes(larger, note=note)
    times = {(psi, system): seconds_to(psi, sizes, *system) for psi in shown for system in SYSTEMS}
    bowls = [single_minimum(curve) for curve in times.values()]
    yield "u-shape", exact(sum(bowls) / len(bowls), note=f"{len(bowls)} curves; {note}")
    saved = np.concatenate([times[psi, second] / times[psi, first] - 1 for psi in shown])
    yield "faster-below", extremes(saved, note=f"{len(sizes)} batch sizes; {note}")


def measure_configurations(_: Evidence) -> Quantities:
    (c1, c2), (other, same) = SYSTEMS
    assert c2 == same
    yield "configurations", exact((c1, other, c2), note="the systems of the curves drawn here")


def draw(_: Evidence, figure: Figure) -> None:
    """The two curves at one psi with both kinds of optimum, and the ratio of optima at every psi."""
    curves, ratios = figure.subplots(1, 2)
    said = dict(zip(SYSTEMS, map(printed_value, ("isgd/fig3/opt-first", "isgd/fig3/opt-second")), strict=True))
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


ARTIFACTS = (
    Artifact(
        "isgd/fig3",
        "Predicted training time against batch size for two system configurations",
        measures=(measure_optima, measure_shapes, measure_configurations),
        draw=draw,
        alt="Left: time by Eq. 22 against batch size, U-shaped for both systems; the faster system's optimum lies at "
        "the larger batch, the printed optima elsewhere. Right: the ratio of the optima stays between 1.41 and 1.59.",
        size=(9.6, 4.2),
    ),
)
