"""Figure 1: updates to a training loss against mini-batch size, for the networks and rates of Table 1.

The paper plots a representative subset of the curves, each with its fitted N_inf + alpha / M; ``fig1a`` draws every
curve that has runs. Of the law across curves (``fig1b``) the paper says that larger rates go with smaller floors,
that it holds for other thresholds, the validation loss and other numbers of classes, that alpha grows with the
problem, and that with Adam the floor is negative and small.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from paper_figures.inverse_law import drawing, law, misfits, settings
from paper_figures.inverse_law.settings import BY_NAME, Row
from suite.batch_size.law import FitError, InverseLawFit, Updates, fit_inverse_law
from suite.claims.intervals import Interval
from suite.papers.figure import Artifact, Figure, Frame, Missing, pd, printed_value, scipy

FIG1A = Artifact(
    "inverse_law/fig1a",
    "Updates to a loss threshold against batch size, image recognition",
    settings.curve_runs,
    size=(10.2, 14.2),
)
COLUMNS = 3  # of panels
FIG1B = Artifact(
    "inverse_law/fig1b",
    "The law across rates, thresholds, losses and classes",
    settings.law_runs,
    alt="Relative residuals of the fitted law against batch size for every curve, a panel for each data set; and "
    "each curve's exponent with its interval beside the -1 that follows from Eq. 2.",
    size=(8.0, 10.5),
)


# ---------------------------------------------------------------- Fig. 1a: each curve by itself


def on_shared_sample(frame: Frame, row: Row) -> list[list[Updates]]:
    """A curve's updates to its thresholds on the sample that all seeds share."""
    runs = law.curve(frame, row)
    return [law.crossings(runs, threshold) for threshold in row.thresholds(frame.profile)]


def misfit(frame: Frame, row: Row) -> Interval:
    """The largest relative misfit of the law over a curve's thresholds on the shared sample."""
    return misfits.largest_misfit(on_shared_sample(frame, row))


def misfit_told(frame: Frame, row: Row) -> str:
    found = on_shared_sample(frame, row)
    left = sum(u.censored > 0 for thresholds in found for u in thresholds)
    return f"{len(found)} thresholds, {left} points not achievable"


for row in BY_NAME.values():
    law.counted(FIG1A, f"misfit-{row.name}", [row], misfit, misfit_told)
FIG1A.quantities.update(misfits.ANSWERED)


# ---------------------------------------------------------------- Fig. 1b: how well the law fits


def lower_groups(frame: Frame) -> law.Groups:
    """Searches in which every seed reads a sample of its own: a shared one would be taken for a lack of fit."""
    rows = law.stored_rows(frame, lower=True)
    if not rows:
        raise Missing(f"no curve with a sample for each seed at {frame.profile}")
    return [group for row in rows for group in law.curve_groups(frame, row, lower=True)]


def tested_laws(frame: Frame) -> dict[InverseLawFit, float]:
    """The p-value of the lack of fit of each law that has one, over curves and lower thresholds."""
    laws = []
    for row in law.stored_rows(frame, lower=True):
        runs = law.curve(frame, row, lower=True)
        for threshold in row.thresholds(frame.profile, lower=True):
            with contextlib.suppress(FitError):
                laws.append(law.law_fit(law.crossings(runs, threshold)))
    return {fit: fit.lack_of_fit for fit in laws if fit.lack_of_fit is not None}


def lack_of_fit_power(laws: Sequence[InverseLawFit], level: float) -> float:
    """The probability that one of these tests finds an exponent of ``law.ALTERNATIVES``, the one found less often.

    The truth has the constants of each fit but for the exponent; the tests are independent, all at ``level``.
    """
    missed = [math.prod(1 - _found(fit, exponent, level) for fit in laws) for exponent in law.ALTERNATIVES]
    return 1 - max(missed)


def _found(fit: InverseLawFit, exponent: float, level: float) -> float:
    """Power of one F test: its noncentrality is the misfit of the best inverse law to the truth."""
    truth = {batch: fit.floor + fit.sensitivity * batch**-exponent for batch in fit.batches}
    nearest = fit_inverse_law([Updates(batch, (updates,)) for batch, updates in truth.items()])
    misfit = math.fsum(math.log(updates / nearest.predict(batch)) ** 2 for batch, updates in truth.items())
    spare, runs = len(fit.batches) - 2, fit.runs / len(fit.batches)
    repeats = fit.degrees - spare
    critical = scipy.special.fdtri(spare, repeats, 1 - level)
    return 1 - float(scipy.special.ncfdtr(spare, repeats, runs * misfit / fit.scatter**2, critical))


def fit_power(tested: Mapping[InverseLawFit, float]) -> float:
    return lack_of_fit_power(list(tested), printed_value("inverse_law/fig1b/no-lack-of-fit") / len(tested))


def tests_told(frame: Frame) -> str:
    tested = tested_laws(frame)
    return f"{len(tested)} curves; {law.power_told(fit_power(tested))}"


@FIG1B.quantity("no-lack-of-fit", lower_groups, note=tests_told)
def lack_of_fit(frame: Frame) -> Interval:
    """The least p-value of the lack of fit times their number (Bonferroni).

    Tests that would not have found another exponent say nothing by finding none: the value is then open towards zero.
    """
    tested = tested_laws(frame)
    if not tested:
        raise Missing(f"no law that its seeds can put to the test at {frame.profile}")
    least = min(1.0, min(tested.values()) * len(tested))
    return Interval(least, least if fit_power(tested) >= law.ENOUGH else 0.0, least, len(tested))


# ---------------------------------------------------------------- floors, sensitivities, other losses


def steps(values: Iterable[Interval]) -> list[Interval]:
    """From each value to the next, of which nothing but the two intervals is known."""
    return [
        Interval(more.mean - less.mean, more.low - less.high, more.high - less.low, less.n, less.freedom)
        for less, more in pairwise(values)
    ]


def onset(fit: InverseLawFit) -> Interval:
    """alpha / N_inf, the batch size at which the floor sets in."""
    alpha, floor = fit.sensitivity_interval(), fit.floor_interval()
    low, high = (alpha.low / floor.high, alpha.high / floor.low) if floor.low > 0 else (-math.inf, math.inf)
    return Interval(fit.sensitivity / fit.floor, low, high, alpha.n, alpha.freedom)


def steps_of(value: Callable[[InverseLawFit], Interval], frame: Frame, *rows: Row) -> list[Interval]:
    """Steps of a constant of the law from one curve to the next."""
    return steps(value(law.law_fit(law.reached(frame, row))) for row in rows)


MEDIUM = BY_NAME["mnist_medium-lr0p05"]
HARDER = [BY_NAME[f"{data}_medium-lr0p05"] for data in ("mnist", "cifar10", "cifar100")]
law.counted(FIG1B, "adam-negative-ninf", [BY_NAME["cifar10_medium-adam"]], law.floors)
reached_in_validation = lambda frame, row: misfits.largest_misfit([law.reached(frame, row, "validation")])
law.counted(FIG1B, "misfit-validation", [MEDIUM], reached_in_validation)
law.counted(FIG1B, "alpha-grows", HARDER, partial(steps_of, InverseLawFit.sensitivity_interval))
law.counted(FIG1B, "floor-onset", HARDER, partial(steps_of, onset))
for model, *rates in (
    ("mnist_medium", "lr0p01", "lr0p05"),
    ("cifar10_medium", "lr0p01", "lr0p05"),
    ("cifar100_large", "lr0p025", "lr0p05"),
):
    lower = lambda frame, slow, fast: steps(law.floors(frame, fast, slow))  # is the floor at the larger rate
    law.counted(FIG1B, f"lr-order-{model}", [BY_NAME[f"{model}-{rate}"] for rate in rates], lower)


# ---------------------------------------------------------------- drawing


@FIG1A.table
def table(frame: Frame) -> pd.DataFrame:
    """A row per curve, threshold (nats), batch size (examples) and seed: ``updates``, NaN beyond ``limit``."""
    shown = law.stored_rows(frame, (*settings.ROWS, *settings.VARIANTS))
    parts = [drawing.updates_table(law.families(frame, row), curve=row.name) for row in shown]
    return pd.concat(parts, ignore_index=True)


@FIG1A.drawing
def draw_curves(frame: Frame, figure: Figure) -> None:
    """One panel per curve: updates against batch size on logarithmic axes, with the fitted inverse law.

    A curve that was prepared otherwise stands behind its own.
    """
    curves = [row for base in settings.ROWS for row in (base, *settings.VARIANTS) if row.name.startswith(base.name)]
    panels = [(row, law.families(frame, row)) for row in law.stored_rows(frame, curves)]
    if not panels:
        raise Missing(f"no curve of Fig. 1 is complete at {frame.profile}")
    lines = -(-len(panels) // COLUMNS)
    if figure is figure.figure:  # by itself: beside other settings the height is that of all
        figure.set_figheight(2.2 * lines + 1)  # inches
    for place, (row, thresholds) in enumerate(panels, 1):
        axes = figure.add_subplot(lines, COLUMNS, place)
        for order, (threshold, updates) in enumerate(thresholds.items()):
            drawing.draw_law(axes, updates, f"{threshold:.2g}", order)
        drawing.finish_law(axes, list(thresholds.values()))
        title = row.title.replace(", pixels", "\npixels")
        with contextlib.suppress(Missing):  # how far its farthest point lies from the law, as the claims have it
            found = misfit(frame, row)
            mean, low, high = (100 * share for share in (found.mean, found.low, found.high))
            separated = ", " if row in settings.VARIANTS else "\n"
            title += f"{separated}misfit {mean:.0f} [{low:.0f}, {high:.0f}]%"
        axes.set_title(title)
        if place > len(panels) - COLUMNS:  # none is below it
            axes.set_xlabel("mini-batch size M (examples)")
        if place % COLUMNS == 1:
            axes.set_ylabel("updates to the threshold, $N$")
    marks = drawing.key([updates for _, thresholds in panels for updates in thresholds.values()])
    title = "beside a curve: its training loss; misfit: distance from the law of the farthest point"
    figure.legend(handles=marks, loc="outside lower left", ncols=3, title=title, alignment="left")


@FIG1B.table
def table_of_laws(frame: Frame) -> pd.DataFrame:
    """Residuals about the fitted laws, and each curve's exponent.

    A curve with one seed has neither: nothing says how far its runs scatter. A row per value: ``quantity`` is
    "residual" (% of the law, by threshold, batch size and seed) or "exponent" (with its interval, and Eq. 2's -1).
    """
    rows: list[dict[str, Any]] = []
    every: list[list[list[Updates]]] = []
    for row in law.stored_rows(frame):
        runs, found = law.curve(frame, row), law.families(frame, row)
        if len({run.seed for run in runs}) < 2:
            continue
        every.append(list(found.values()))
        for threshold in row.thresholds(frame.profile):
            with contextlib.suppress(Missing, FitError):
                rows += drawing.residuals(row.title, threshold, law.crossings(runs, threshold))
        rows.append(drawing.exponent_row(row.title, every[-1:]))
    if not rows:
        raise Missing(f"no curve of Fig. 1 is complete at {frame.profile}")
    rows.append(drawing.exponent_row(drawing.TOGETHER, every))
    return pd.DataFrame(rows)


FIG1B.drawing(lambda frame, figure: drawing.draw_laws(table_of_laws(frame), figure))
