"""Figure 1: updates to a training loss against mini-batch size, for the networks and rates of Table 1.

The paper plots a representative subset of the curves, each with its fitted N_inf + alpha / M; ``fig1a`` draws every
curve that has runs. Of the law across curves (``fig1b``) the paper says that larger rates go with smaller floors,
that it holds for other thresholds, the validation loss and other numbers of classes, that alpha grows with the
problem, and that with Adam the floor is negative and small.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from paper_figures.inverse_law.checks import excess, passed_over
from paper_figures.inverse_law.equivalence import largest_misfit, lent_scatter
from paper_figures.inverse_law.exponents import ENOUGH, LEAST_POINTS, lack_of_fit_power, without_one
from paper_figures.inverse_law.law_plots import TOGETHER, draw_laws
from paper_figures.inverse_law.plots import draw_law, finish_law, key, told, updates_table
from paper_figures.inverse_law.readings import (
    above,
    as_measured,
    crossings,
    curve,
    exponent,
    families,
    law_fit,
    power_told,
    reached,
    repeated_rows,
    stored_rows,
    told_apart,
)
from paper_figures.inverse_law.rival import preference
from paper_figures.inverse_law.settings import BY_NAME, ROWS, VARIANTS, Row, curve_runs, law_runs
from paper_figures.inverse_law.worlds import following, scaled
from suite.batch_size.law import FitError, InverseLawFit, Updates
from suite.claims.estimate import interval, point
from suite.claims.intervals import Interval, log_interval
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.papers.catalogue import printed_value
from suite.papers.counterfeits import counterfeit, genuine
from suite.runs.store import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def measure_curve(row: Row) -> Callable[[Evidence], Quantities]:
    """A measure of one curve: one exponent for all its thresholds, over the whole range of batch sizes."""

    def measure(evidence: Evidence) -> Quantities:
        found, runs = families(evidence, row)
        shared = exponent(found.values())
        yield f"law-{row.name}", as_measured([shared], runs, f"{len(found)} thresholds; {told_apart(shared)}")

    return measure


def measure_misfit(row: Row) -> Callable[[Evidence], Quantities]:
    """A measure of one curve: the largest relative misfit of the law over its thresholds on the shared sample."""

    def measure(evidence: Evidence) -> Quantities:
        runs = curve(evidence, row)
        found = [crossings(runs, threshold) for threshold in row.thresholds(evidence.profile)]
        lent = lent_scatter(evidence) if row.seeds == 1 else None
        value = largest_misfit(found, lent)
        if value is None:
            raise Missing(f"{LEAST_POINTS} batch sizes of {row.name} whose seeds all reached a threshold")
        left = sum(u.censored > 0 for counted in found for u in counted)
        note = f"{len(found)} thresholds, {left} points not achievable"
        by = f"; one seed, with the scatter of the LeNet's on CIFAR, {lent.deviation:.1%}" if lent else ""
        yield f"misfit-{row.name}", as_measured([value], runs, note + by)

    return measure


def measure_together(evidence: Evidence) -> Quantities:
    """One exponent for all curves and thresholds: over the whole range, then above ``predicted_smallest``."""
    rows = repeated_rows(evidence)
    if not rows:
        raise Missing(f"no curve at {evidence.profile}")
    found = {row.name: families(evidence, row) for row in rows}
    runs = [run for _, behind in found.values() for run in behind]
    curves = [list(thresholds.values()) for thresholds, _ in found.values()]
    everything = exponent(*curves)
    note = f"{len(rows)} curves; {told_apart(everything)}"
    if len(rows) > 1:
        note += "; without one of them -{:.2f} to -{:.2f}".format(*without_one(curves))
    yield "law-together", as_measured([everything], runs, note)
    parts = {row.name: above(found[row.name][0], row) for row in rows}
    kept = [part for part in parts.values() if part]
    narrower = exponent(*kept)
    begins = ", ".join(f"{name} from {min(u.batch for f in p for u in f)}" for name, p in parts.items() if p)
    yield "law-above-smallest", as_measured([narrower], runs, f"{begins}; {told_apart(narrower)}")


def measure_fit(evidence: Evidence) -> Quantities:
    """The least p-value of the lack of fit over curves and thresholds, times their number (Bonferroni).

    From the runs in which every seed reads a sample of its own: a shared one would be taken for a lack of fit. Tests
    that would not have found another exponent say nothing by finding none: the value is then open towards zero.
    """
    laws: list[InverseLawFit] = []
    behind: list[Run] = []
    for row in ROWS:
        with contextlib.suppress(Missing):
            runs = curve(evidence, row, lower=True)
            behind += runs
            for threshold in row.thresholds(evidence.profile, lower=True):
                with contextlib.suppress(FitError):
                    laws.append(law_fit(crossings(runs, threshold)))
    tested = {law: law.lack_of_fit for law in laws if law.lack_of_fit is not None}
    if not tested:
        raise Missing(f"no curve with a sample for each seed at {evidence.profile}")
    least = min(1.0, min(tested.values()) * len(tested))
    share = lack_of_fit_power(list(tested), printed_value("inverse_law/fig1b/no-lack-of-fit") / len(tested))
    note = f"{len(tested)} curves; {power_told(share)}"
    open_to = least if share >= ENOUGH else 0.0
    yield "no-lack-of-fit", interval(least, open_to, least, n=len(tested), runs=[run.id for run in behind], note=note)


def measure_adam(evidence: Evidence) -> Quantities:
    """The floor with Adam."""
    row = BY_NAME["cifar10_medium-adam"]
    runs = curve(evidence, row)
    yield "adam-negative-ninf", as_measured([law_fit(reached(evidence, row)).floor_interval()], runs)


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


def measure_variations(evidence: Evidence) -> Quantities:
    """The exponent judged by validation loss, at every threshold, and with two classes instead of ten."""
    row, parity = BY_NAME["mnist_medium-lr0p05"], BY_NAME["mnist_evenodd-lr0p05"]
    runs = curve(evidence, row)
    found = [exponent([crossings(runs, threshold)]) for threshold in row.thresholds(evidence.profile)]
    yield "threshold-too", as_measured(found, runs, f"thresholds {row.thresholds(evidence.profile)}")
    yield "cv-error-too", as_measured([exponent([reached(evidence, row, "validation")])], runs)
    both = [exponent([reached(evidence, each)]) for each in (row, parity)]
    yield "classes-too", as_measured(both, [*runs, *curve(evidence, parity)], "ten classes, then two")


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


def measure_small_batches(evidence: Evidence) -> Quantities:
    """What the grid of tests passes over at small batches, and how far they leave the law."""
    yield from passed_over(evidence)
    yield from excess(evidence)


def measure_rival(row: Row) -> Callable[[Evidence], Quantities]:
    """This law against the bound behind ISGD's Eq. 22 on one curve: log10 of the ratio of squared misfits.

    Both have two constants and are fitted alike; above 0 the data follow this law, below 0 the other.
    """

    def measure(evidence: Evidence) -> Quantities:
        counted, runs = reached(evidence, row), curve(evidence, row)
        of, note = [run.id for run in runs], "log10 of the squared misfit of ISGD's Eq. 22 over this law's"
        yield f"rival-{row.name}", point(preference(counted), n=len(runs), runs=of, note=note)

    return measure


@counterfeit(
    *(f"inverse_law/fig1a/law-{row.name}" for row in ROWS),
    *(f"inverse_law/fig1b/{name}" for name in ("law-together", "law-above-smallest", "cv-error-too")),
    *(f"inverse_law/fig1b/{name}" for name in ("threshold-too", "classes-too", "no-lack-of-fit")),
)
def root_law(evidence: Evidence) -> Evidence:
    """Updates fall as the square root of the batch size, as by the bound behind ISGD's Eq. 22."""
    return following(evidence, lambda batch: 200 * (1 + 4 / math.sqrt(batch)))


@genuine(
    *(f"inverse_law/fig1a/law-{row.name}" for row in ROWS),
    *(f"inverse_law/fig1b/{name}" for name in ("law-together", "law-above-smallest", "cv-error-too")),
    *(f"inverse_law/fig1b/{name}" for name in ("threshold-too", "classes-too", "no-lack-of-fit")),
)
def inverse_law(evidence: Evidence) -> Evidence:
    """Updates follow the law to the scatter of the seeds."""
    return following(evidence, lambda batch: 200 * (1 + 4 / batch))


@genuine(
    "inverse_law/fig1a/law-mnist_evenodd-lr0p05",
    *(f"inverse_law/fig1b/{name}" for name in ("cv-error-too", "threshold-too", "classes-too")),
)
def steep_law(evidence: Evidence) -> Evidence:
    """Updates follow a law with ten times the rise: its exponent shows beside the scatter of one threshold."""
    return following(evidence, lambda batch: 200 * (1 + 40 / batch))


@counterfeit("inverse_law/fig1b/lr-order-mnist_medium")
def slower_rate_trains_faster(evidence: Evidence) -> Evidence:
    """At rate 0.01 a tenth of the updates suffices."""
    return scaled(evidence, 0.1, "mnist_medium-lr0p01")


def frame(evidence: Evidence) -> pd.DataFrame:
    """A row per curve, threshold (nats), batch size (examples) and seed: ``updates``, NaN beyond ``limit``."""
    import pandas as pd

    parts = []
    for row in stored_rows(evidence, (*ROWS, *VARIANTS)):
        table = updates_table(families(evidence, row)[0])
        table.insert(0, "curve", row.name)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def draw_curves(evidence: Evidence, figure: Figure) -> None:
    """One panel per curve that has runs: points of every threshold, fitted law, 95% interval of the median."""
    panels = [(row, families(evidence, row)[0]) for row in stored_rows(evidence, (*ROWS, *VARIANTS))]
    if not panels:
        raise Missing(f"no curve of Fig. 1 is complete at {evidence.profile}")
    columns, cells = 2, len(panels) + 1  # read at the width of a page; the last cell for the legend
    lines = -(-cells // columns)
    figure.figure.set_figheight(max(figure.figure.get_figheight(), 2.3 * lines))  # inches
    for place, (row, thresholds) in enumerate(panels, 1):
        axes = figure.add_subplot(lines, columns, place)
        for order, (threshold, counted) in enumerate(thresholds.items()):
            draw_law(axes, counted, f"{threshold:.2g}", order)
        finish_law(axes, list(thresholds.values()))
        axes.set_title(_title(row, thresholds))
        axes.set_xlabel("mini-batch size M (examples)")
        if place % columns == 1:
            axes.set_ylabel("updates to the threshold, $N$")
    marks = key([counted for _, thresholds in panels for counted in thresholds.values()])
    corner = figure.add_subplot(lines, columns, cells)
    corner.set_axis_off()
    corner.legend(handles=marks, loc="center left", title="beside a curve: its training loss", alignment="left")


def _title(row: Row, thresholds: Mapping[float, Sequence[Updates]]) -> str:
    """The curve, and below it its exponent beside the printed one where several seeds determine it."""
    if row.seeds == 1:
        return f"{row.title}\none seed"
    if row in ROWS:
        with contextlib.suppress(Missing):
            printed = printed_value(f"inverse_law/fig1a/law-{row.name}")
            return f"{row.title}\n{told(exponent(thresholds.values()), printed)}"
    return row.title


def frame_laws(evidence: Evidence) -> pd.DataFrame:
    """Residuals about the fitted laws, and of each curve the exponent and the comparison with ISGD's Eq. 22.

    A curve with one seed has none of them: nothing says how far its runs scatter. A row per value: ``quantity`` is
    "residual" (% of the law, by threshold, batch size and seed), "exponent" (with its interval, and -1 as printed) or
    "preference" (log10 of squared misfits).
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    every: list[list[list[Updates]]] = []
    for row in repeated_rows(evidence):
        runs, found = curve(evidence, row), families(evidence, row)[0]
        every.append(list(found.values()))
        for threshold in row.thresholds(evidence.profile):
            with contextlib.suppress(Missing, FitError):
                rows += _residuals(row.title, threshold, crossings(runs, threshold))
        rows.append({"curve": row.title, "quantity": "preference", "value": preference(reached(evidence, row))})
        rows.append(_exponent(row.title, f"law-{row.name}", every[-1:]))
    if not rows:
        raise Missing(f"no curve of Fig. 1 is complete at {evidence.profile}")
    rows.append(_exponent(TOGETHER, "law-together", every))
    return pd.DataFrame(rows)


def _residuals(title: str, threshold: float, counted: list[Updates]) -> list[dict[str, Any]]:
    fit = law_fit(counted)
    named = {"curve": title, "quantity": "residual", "threshold": threshold}
    return [
        named | {"batch": u.batch, "seed": seed, "value": 100 * (n / fit.predict(u.batch) - 1)}
        for u in counted
        for seed, n in enumerate(u.seen)
        if n is not None
    ]


def _exponent(title: str, claim: str, curves: Sequence[Sequence[Sequence[Updates]]]) -> dict[str, Any]:
    """The row of an exponent; its value is NaN where the runs determine none."""
    figure = "fig1b" if claim == "law-together" else "fig1a"
    named = {"curve": title, "quantity": "exponent", "printed": printed_value(f"inverse_law/{figure}/{claim}")}
    try:
        found = exponent(*curves)
    except Missing:
        return named | {"value": math.nan}
    return named | {"value": found.mean, "low": found.low, "high": found.high}


def draw_all_laws(evidence: Evidence, figure: Figure) -> None:
    draw_laws(frame_laws(evidence), figure)


ARTIFACTS = (
    Artifact(
        "inverse_law/fig1a",
        "Updates to a loss threshold against batch size, image recognition",
        curve_runs,
        (*(measure_curve(row) for row in ROWS), *(measure_misfit(row) for row in BY_NAME.values())),
        draw=draw_curves,
        frame=frame,
        alt="One panel per curve: updates against batch size on logarithmic axes, with the fitted inverse law.",
        size=(7.4, 9.6),
    ),
    Artifact(
        "inverse_law/fig1b",
        "The law across rates, thresholds, losses and classes",
        law_runs,
        (
            measure_together,
            measure_fit,
            measure_adam,
            measure_rate_order("mnist_medium", "lr0p01", "lr0p05"),
            measure_rate_order("cifar10_medium", "lr0p01", "lr0p05"),
            measure_rate_order("cifar100_large", "lr0p025", "lr0p05"),
            measure_variations,
            measure_complexity,
            measure_grid,
            measure_small_batches,
            *(measure_rival(row) for row in ROWS),
        ),
        draw=draw_all_laws,
        frame=frame_laws,
        alt="Relative residuals of the fitted law against batch size for every curve; each curve's exponent with its "
        "interval beside the printed -1; and how much worse the model behind ISGD's Eq. 22 fits than this law.",
        size=(8.0, 6.4),
    ),
)
