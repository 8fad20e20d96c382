"""Figure 1: updates to a training loss against mini-batch size, for the networks and rates of Table 1.

The paper plots a representative subset of the curves, each with its fitted N_inf + alpha / M; ``fig1a`` draws every
curve that has runs. Of the law across curves (``fig1b``) the paper says that larger rates go with smaller floors,
that it holds for other thresholds, the validation loss and other numbers of classes, that alpha grows with the
problem, and that with Adam the floor is negative and small.

``fig1b`` also fits the other batch-size model of the suite to the same data, the bound behind ISGD's Eq. 22. ISGD
takes the loss after t iterations of batch size n to be psi = c1 / sqrt(n t) + c2 / t. Solved for the iterations to
reach psi, with u = c1 / (2 psi) and v = c2 / psi,

    N(M) = (u / sqrt(M) + sqrt(u^2 / M + v))^2,

which falls as 1/sqrt(M) towards its floor v; this paper's N falls as 1/M. No data can follow both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from paper_figures.inverse_law.plots import draw_law, finish_law
from paper_figures.inverse_law.readings import (
    as_measured,
    crossings,
    curve,
    exponent,
    law_fit,
    reached,
    stored_rows,
    together,
)
from paper_figures.inverse_law.settings import BY_NAME, ROWS, Row, curve_runs, law_runs
from suite.batch_size.law import FitError, Updates
from suite.claims.intervals import Interval, log_interval
from suite.claims.measured import point
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.runs.store import Run

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure


def measure_curve(row: Row) -> Callable[[Evidence], Quantities]:
    """A measure of one curve at its lowest threshold: p-value of the lack of fit, and exponent."""

    def measure(evidence: Evidence) -> Quantities:
        runs = curve(evidence, row)
        counted = reached(evidence, row)
        fit = law_fit(counted)
        if fit.lack_of_fit is not None:
            yield f"lack-of-fit-{row.name}", point(fit.lack_of_fit, kind="measured", n=fit.runs, note=fit.verdict)
        yield f"law-{row.name}", as_measured([exponent(counted)], runs)

    return measure


def measure_adam(evidence: Evidence) -> Quantities:
    """The floor with Adam, and by how much alpha exceeds its size."""
    row = BY_NAME["cifar10_medium-adam"]
    runs = curve(evidence, row)
    fit = law_fit(reached(evidence, row))
    floor, alpha = fit.floor_interval(), fit.sensitivity_interval()
    yield "adam-negative-ninf", as_measured([floor], runs)
    size = max(abs(floor.low), abs(floor.high))
    step = Interval(alpha.mean - abs(floor.mean), alpha.low - size, alpha.high, alpha.n)
    yield "adam-small-floor", as_measured([step], runs)


def measure_rate_order(model: str, slow: str, fast: str) -> Callable[[Evidence], Quantities]:
    """How much lower the floor is at the larger rate: the step from N_inf at ``fast`` to N_inf at ``slow``."""

    def measure(evidence: Evidence) -> Quantities:
        (low_rate, runs), (high_rate, more) = (_floor(evidence, f"{model}-{rate}") for rate in (slow, fast))
        step = Interval(
            low_rate.mean - high_rate.mean, low_rate.low - high_rate.high, low_rate.high - high_rate.low, low_rate.n
        )
        yield f"lr-order-{model}", as_measured([step], [*runs, *more])

    return measure


def _floor(evidence: Evidence, name: str) -> tuple[Interval, tuple[Run, ...]]:
    row = BY_NAME[name]
    return law_fit(reached(evidence, row)).floor_interval(), curve(evidence, row)


def measure_floors(evidence: Evidence) -> Quantities:
    """N_inf of every curve of the profile trained by SGD."""
    names = [row.name for row in stored_rows(evidence) if row.rate is not None]
    if not names:
        raise Missing(f"no curve at {evidence.profile}")
    found = [_floor(evidence, name) for name in names]
    yield "positive-floor", as_measured([f for f, _ in found], [run for _, runs in found for run in runs])


def measure_variations(evidence: Evidence) -> Quantities:
    """The exponent judged by validation loss, at every threshold, and with two classes instead of ten."""
    row, parity = BY_NAME["mnist_medium-lr0p05"], BY_NAME["mnist_evenodd-lr0p05"]
    runs = curve(evidence, row)
    found = [exponent(crossings(runs, threshold)) for threshold in row.thresholds(evidence.profile)]
    yield "threshold-too", as_measured(together(found), runs, f"thresholds {row.thresholds(evidence.profile)}")
    yield "cv-error-too", as_measured([exponent(reached(evidence, row, "validation"))], runs)
    both = [exponent(reached(evidence, row)), exponent(reached(evidence, parity))]
    yield "classes-too", as_measured(together(both), [*runs, *curve(evidence, parity)], "ten classes, then two")


def measure_complexity(evidence: Evidence) -> Quantities:
    """Steps of alpha, and of the onset alpha / N_inf, from MNIST to CIFAR-10 to CIFAR-100, medium models."""
    names = ("mnist_medium-lr0p05", "cifar10_medium-lr0p05", "cifar100_medium-lr0p05")
    runs = [run for name in names for run in curve(evidence, BY_NAME[name])]
    fits = [law_fit(reached(evidence, BY_NAME[name])) for name in names]
    alphas = [fit.sensitivity_interval() for fit in fits]
    onsets = []
    for fit, alpha in zip(fits, alphas, strict=True):
        floor = fit.floor_interval()
        low, high = (alpha.low / floor.high, alpha.high / floor.low) if floor.low > 0 else (-math.inf, math.inf)
        onsets.append(Interval(fit.sensitivity / fit.floor, low, high, alpha.n))
    yield "alpha-grows", as_measured(_steps(alphas), runs)
    yield "floor-onset", as_measured(_steps(onsets), runs)


def _steps(values: Sequence[Interval]) -> list[Interval]:
    return [Interval(b.mean - a.mean, b.low - a.high, b.high - a.low, a.n) for a, b in pairwise(values)]


def measure_grid(evidence: Evidence) -> Quantities:
    """Updates found on the grid with few test images over those of every update with all 12,000 (same seeds)."""
    row = BY_NAME["mnist_medium-lr0p05"]
    if "every-update" not in evidence.groups:
        raise Missing(f"no run tested at every update at {evidence.profile}")
    full = evidence.runs("every-update")
    batch = full[0].spec.settings["batch"]
    same = [run for run in curve(evidence, row) if run.spec.settings["batch"] == batch]
    if not same:
        raise Missing(f"runs of batch size {batch} of {row.name} at {evidence.profile}")
    ratios = []
    for threshold in row.thresholds(evidence.profile):
        (whole,), (part,) = crossings(full, threshold), crossings(same, threshold)
        ratios += [a / b for a, b in zip(part.seen, whole.seen, strict=False) if a and b]
    found = log_interval(ratios)
    yield "grid-against-every-update", as_measured([found], [*full, *same])


def measure_rival(row: Row) -> Callable[[Evidence], Quantities]:
    """This law against the bound behind ISGD's Eq. 22 on one curve: log10 of the ratio of squared misfits.

    Both have two constants and are fitted alike; above 0 the data follow this law, below 0 the other.
    """

    def measure(evidence: Evidence) -> Quantities:
        counted, runs = reached(evidence, row), curve(evidence, row)
        of, note = [run.id for run in runs], "log10 of the squared misfit of ISGD's Eq. 22 over this law's"
        yield f"rival-{row.name}", point(preference(counted), kind="measured", n=len(runs), runs=of, note=note)

    return measure


def preference(counted: Sequence[Updates]) -> float:
    """log10 of the rival's squared misfit over the inverse law's, both fitted by least squares on logarithms.

    Two constants each, to the finished runs; above 0 the inverse law fits better.
    """
    import numpy as np
    from scipy.optimize import least_squares

    batch = np.array([float(u.batch) for u in counted for n in u.seen if n is not None])
    y = np.log([n for u in counted for n in u.seen if n is not None])

    def inverse(theta: np.ndarray) -> np.ndarray:
        return np.log(np.exp(theta[0]) + np.exp(theta[1]) / batch) - y

    def rival(theta: np.ndarray) -> np.ndarray:
        return 2 * np.log(rival_root(batch, np.exp(theta[0]), np.exp(theta[1]))) - y

    floor = float(y.min())
    starts = [floor - 3, floor - 1, floor, floor + 2]
    ours = min(2 * float(least_squares(inverse, [floor, start]).cost) for start in starts)
    theirs = min(2 * float(least_squares(rival, [start / 2, floor]).cost) for start in starts)
    return math.log10(theirs / ours) if ours > 0 else math.inf


def rival_root(batch: float | np.ndarray, u: float, v: float) -> Any:
    """Square root of the iterations of ISGD's model at a batch size, or at an array of them."""
    import numpy as np

    root = u / np.sqrt(batch)
    return root + np.sqrt(root**2 + v)


def draw_curves(evidence: Evidence, figure: Figure) -> None:
    """One panel per curve that has runs: points of every threshold, fitted law, 95% interval of the median."""
    panels = [(row, curve(evidence, row)) for row in stored_rows(evidence)]
    if not panels:
        raise Missing(f"no curve of Fig. 1 is complete at {evidence.profile}")
    columns = 2 if len(panels) <= 4 else 3
    for place, (row, runs) in enumerate(panels, 1):
        axes = figure.add_subplot(-(-len(panels) // columns), columns, place)
        found = []
        for order, threshold in enumerate(row.thresholds(evidence.profile)):
            try:
                found.append(crossings(runs, threshold))
            except Missing:
                continue
            draw_law(axes, found[-1], f"loss {threshold:.3g}", order)
        finish_law(axes, found)
        axes.set_title(row.title)
    figure.supxlabel("mini-batch size M (examples)", fontsize="medium")
    figure.supylabel("updates to the threshold", fontsize="medium")


def draw_residuals(evidence: Evidence, figure: Figure) -> None:
    """Residuals of every run about its fitted law, and each curve's misfit beside that of ISGD's Eq. 22."""
    from suite.report.style import MARKERS, PALETTE

    rows = stored_rows(evidence)
    if not rows:
        raise Missing(f"no curve of Fig. 1 is complete at {evidence.profile}")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    sizes: set[int] = set()
    shift = 0.5 / len(rows)
    for place, row in enumerate(rows):
        runs, x, y = curve(evidence, row), [], []
        for threshold in row.thresholds(evidence.profile):
            try:
                counted = crossings(runs, threshold)
                fit = law_fit(counted)
            except (Missing, FitError):
                continue
            for u in counted:
                seen = [n for n in u.seen if n is not None]
                x += [u.batch * 2 ** (shift * (place - (len(rows) - 1) / 2))] * len(seen)
                y += [100 * (n / fit.predict(u.batch) - 1) for n in seen]
                sizes.add(u.batch)
        marker, colour = MARKERS[place % len(MARKERS)], PALETTE[place % len(PALETTE)]
        left.plot(x, y, linestyle="none", marker=marker, color=colour, markersize=3, label=row.title)
    left.axhline(0, linewidth=0.8, color="0.5", linestyle="-")
    left.set_xscale("log", base=2)
    left.set_xticks(sorted(sizes), [str(size) for size in sorted(sizes)])
    left.minorticks_off()
    left.set_xlabel("mini-batch size M (examples)")
    left.set_ylabel("updates, % above the fitted law")
    left.set_title("residuals, all thresholds")
    figure.legend(fontsize="x-small", loc="outside lower left", ncols=3)
    preferences = [preference(reached(evidence, row)) for row in rows]
    right.barh(range(len(rows)), preferences, color=[PALETTE[i % len(PALETTE)] for i in range(len(rows))], height=0.6)
    right.axvline(0, linewidth=0.8, color="0.5", linestyle="-")
    right.set_yticks([])
    right.invert_yaxis()
    right.set_xlabel("log10 of the ratio of squared misfits\n(right of 0: this law fits better)")
    right.set_title("against ISGD's Eq. 22")


ARTIFACTS = (
    Artifact(
        "inverse_law/fig1a",
        "Updates to a loss threshold against batch size, image recognition",
        curve_runs,
        tuple(measure_curve(row) for row in ROWS),
        draw=draw_curves,
        alt="One panel per curve: updates against batch size on logarithmic axes, with the fitted inverse law.",
        size=(10.0, 7.0),
    ),
    Artifact(
        "inverse_law/fig1b",
        "The law across rates, thresholds, losses and classes",
        law_runs,
        (
            measure_adam,
            measure_rate_order("mnist_medium", "lr0p01", "lr0p05"),
            measure_rate_order("cifar10_medium", "lr0p01", "lr0p05"),
            measure_rate_order("cifar100_large", "lr0p025", "lr0p05"),
            measure_floors,
            measure_variations,
            measure_complexity,
            measure_grid,
            *(measure_rival(row) for row in ROWS),
        ),
        draw=draw_residuals,
        alt="Relative residuals of the fitted law against batch size for every curve and threshold; and for each "
        "curve how much worse the model behind ISGD's Eq. 22 fits than this law.",
        size=(8.0, 4.5),
    ),
)
