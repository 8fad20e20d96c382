"""Figure 1: updates to a loss threshold against batch size for the rows of Table 1, and the law fitted to them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from paper_figures.inverse_law import drawing, short
from paper_figures.inverse_law.rival import compare
from paper_figures.inverse_law.runs import BY_NAME, ROWS, Row, check_specs, curve_specs
from suite.batch_size.law import FitError, InverseLawFit, Updates, fit_inverse_law, free_exponent
from suite.claims.intervals import Interval, log_interval
from suite.claims.measured import Measured, interval, point
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Quantities
from suite.runs.store import Run
from suite.spec import RunSpec

LEAST_POINTS = 3  # batch sizes: two fit any curve
MNIST = ("mnist_small-lr0p01", "mnist_medium-lr0p01", "mnist_medium-lr0p05", "mnist_evenodd-lr0p05")


def curve_runs(profile: str) -> Groups:
    """A group of runs per point of every curve that the profile has, named CURVE/M."""
    groups: dict[str, tuple[RunSpec, ...]] = {}
    for row in ROWS:
        for spec in curve_specs(row, profile):
            name = f"{row.name}/{spec.settings['batch']}"
            groups[name] = (*groups.get(name, ()), spec)
    return groups


def law_runs(profile: str) -> Groups:
    """Curves, the runs tested at every update, and the small experiments on noise and learners."""
    groups = {**curve_runs(profile), **short.noise_runs(profile)}
    if check := check_specs(profile):
        groups["every-update"] = check
    return groups


def size_of(run: Run) -> int:
    """The batch size of a search: examples, or words in translation."""
    settings = run.spec.settings
    return settings["batch"] if "batch" in settings else settings["words"]


def crossings(runs: Iterable[Run], threshold: float, monitor: str = "training") -> list[Updates]:
    """Updates to one threshold by batch size, seeds in ascending order, from stored searches."""
    table: dict[int, dict[int, float | None]] = {}
    limits: dict[int, float] = {}
    for run in runs:
        thresholds = run.results.get(f"thresholds_{monitor}", [])
        if threshold not in thresholds:
            raise Missing(f"threshold {threshold} of the {monitor} loss in run {run.id}")
        found = run.results[f"crossed_{monitor}"][thresholds.index(threshold)]
        batch = size_of(run)
        table.setdefault(batch, {})[run.spec.seed] = None if found < 0 else float(found)
        limits[batch] = float(run.spec.settings["limit"])
    return [
        Updates(batch, tuple(seen for _, seen in sorted(seeds.items())), limits[batch])
        for batch, seeds in sorted(table.items())
    ]


def curve(evidence: Evidence, row: Row) -> tuple[Run, ...]:
    """The runs of a curve at every batch size whose seeds are all stored.

    A curve may be judged while some of its batch sizes are still to run: the intervals say what that leaves
    open, and the quantities name the batch sizes they come from. Raises Missing for fewer than three.
    """
    points = [name for name in evidence.groups if name.startswith(f"{row.name}/")]
    if not points:
        raise Missing(f"no runs of {row.name} at {evidence.profile}")
    found: list[tuple[Run, ...]] = []
    for name in points:
        with contextlib.suppress(Missing):
            found.append(evidence.runs(name))
    if len(found) < LEAST_POINTS:
        raise Missing(f"{len(found)} of {len(points)} batch sizes of {row.name} at {evidence.profile}")
    return tuple(run for runs in found for run in runs)


def stored_rows(evidence: Evidence) -> list[Row]:
    """The curves of the profile that have enough stored runs."""
    rows = []
    for row in ROWS:
        with contextlib.suppress(Missing):
            curve(evidence, row)
            rows.append(row)
    return rows


def thresholds(row: Row, profile: str) -> tuple[float, ...]:
    """The thresholds of a curve, highest first."""
    from paper_figures.inverse_law.runs import PAPER_HALVINGS

    return tuple(row.threshold(h) for h in (PAPER_HALVINGS if profile == "paper" else row.halvings))


def reached(evidence: Evidence, row: Row, monitor: str = "training") -> list[Updates]:
    """Updates to the lowest threshold that at least two batch sizes reached."""
    runs = curve(evidence, row)
    for threshold in reversed(thresholds(row, evidence.profile)):
        try:
            found = crossings(runs, threshold, monitor)
        except Missing:
            continue
        if sum(u.censored < len(u.seen) for u in found) >= 2:
            return found
    raise Missing(f"two batch sizes of {row.name} that reached a threshold of the {monitor} loss")


def law_fit(counted: Sequence[Updates]) -> InverseLawFit:
    """The fit with seeds as blocks where every batch size has the same ones."""
    return fit_inverse_law(counted, blocks=_paired(counted))


def _paired(counted: Sequence[Updates]) -> bool:
    usable = [u for u in counted if u.censored < len(u.seen)]
    return len(usable[0].seen) > 1 and len({len(u.seen) for u in usable}) == 1


def exponent(counted: Sequence[Updates]) -> Interval:
    """Exponent of M in N - N_inf: minus the free exponent of the fit. Raises Missing where it has none."""
    try:
        free = free_exponent(counted, blocks=_paired(counted))
    except FitError as error:
        raise Missing(str(error)) from error
    return Interval(-free.mean, -free.high, -free.low, free.n)


def together(found: Sequence[Interval]) -> list[Interval]:
    """Several intervals as one that covers them: all lie within bounds when it does."""
    middle = math.fsum(i.mean for i in found) / len(found)
    return [Interval(middle, min(i.low for i in found), max(i.high for i in found), min(i.n for i in found))]


def as_measured(found: Sequence[Interval], runs: Sequence[Run], note: str = "") -> Measured:
    """Intervals as evidence, with the batch sizes and seeds of the runs behind them."""
    batches = sorted({run.spec.settings["batch"] for run in runs})
    seeds = len({run.spec.seed for run in runs})
    where = f"M = {', '.join(map(str, batches))}; {seeds} seeds"
    return interval(
        [i.mean for i in found],
        [i.low for i in found],
        [i.high for i in found],
        kind="measured",
        n=min(i.n for i in found),
        runs=[run.id for run in runs],
        note=f"{note}; {where}" if note else where,
    )


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


def measure_law(evidence: Evidence) -> Quantities:
    """Over the MNIST curves: exponent, floor, and updates against the measured variance of the gradient."""
    rows = [BY_NAME[name] for name in MNIST]
    runs = [run for row in rows for run in curve(evidence, row)]
    counted = [reached(evidence, row) for row in rows]
    exponents = [exponent(c) for c in counted]
    yield "law", as_measured(together(exponents), runs, "the four MNIST curves at their lowest thresholds")
    yield "floor", as_measured([law_fit(c).floor_interval() for c in counted], runs)
    slope = short.noise_slope(evidence.run("noise").curve("variance"))
    scaled = [Interval(e.mean / slope.mean, e.high / slope.mean, e.low / slope.mean, e.n) for e in exponents]
    yield (
        "linear-in-variance",
        as_measured(together(scaled), runs, "exponent of the gradient's variance in N - N_inf"),
    )


def _floor(evidence: Evidence, name: str) -> tuple[Interval, tuple[Run, ...]]:
    row = BY_NAME[name]
    return law_fit(reached(evidence, row)).floor_interval(), curve(evidence, row)


def measure_rate_order(model: str, slow: str, fast: str) -> Callable[[Evidence], Quantities]:
    """How much lower the floor is at the larger rate: the step from N_inf at ``fast`` to N_inf at ``slow``."""

    def measure(evidence: Evidence) -> Quantities:
        (low_rate, runs), (high_rate, more) = (_floor(evidence, f"{model}-{rate}") for rate in (slow, fast))
        step = Interval(
            low_rate.mean - high_rate.mean, low_rate.low - high_rate.high, low_rate.high - high_rate.low, low_rate.n
        )
        yield f"lr-order-{model}", as_measured([step], [*runs, *more])

    return measure


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
    found = [exponent(crossings(runs, threshold)) for threshold in thresholds(row, evidence.profile)]
    yield "threshold-too", as_measured(together(found), runs, f"thresholds {thresholds(row, evidence.profile)}")
    yield "cv-error-too", as_measured([exponent(reached(evidence, row, "validation"))], runs)
    both = [exponent(reached(evidence, row)), exponent(reached(evidence, parity))]
    yield "classes-too", as_measured(together(both), [*runs, *curve(evidence, parity)], "ten classes, then two")


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
    for threshold in thresholds(row, evidence.profile):
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
        preference = compare(counted).preference
        of, note = [run.id for run in runs], "log10 of the squared misfit of ISGD's Eq. 22 over this law's"
        yield f"rival-{row.name}", point(preference, kind="measured", n=len(runs), runs=of, note=note)

    return measure


FIG1A = Artifact(
    "inverse_law/fig1a",
    "Updates to a loss threshold against batch size, image recognition",
    curve_runs,
    tuple(measure_curve(row) for row in ROWS),
    draw=drawing.draw_curves,
    alt="One panel per curve: updates against batch size on logarithmic axes, with the fitted inverse law.",
    size=(10.0, 7.0),
)
FIG1B = Artifact(
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
    draw=drawing.draw_residuals,
    alt="Relative residuals of the fitted law against batch size for every curve and threshold; and for each curve "
    "how much worse the model behind ISGD's Eq. 22 fits than this law.",
    size=(8.0, 4.5),
)
