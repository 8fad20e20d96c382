"""Updates by batch size, from the searches of a frame; laws fitted to them, and one exponent for all.

Model: log N = log(F + A / M^p) with its own F and A for every *family*, the updates of one curve to one
threshold, and one p for all. Seeds are what is repeated: the runs of one share weights, data order and all
thresholds. The interval is the wider of Student's t on the jackknife over seeds and of the scatter of the
points about their curves, as if all thresholds of a curve said the same; the latter holds what seeds share.
Where a seed did not get there within its limit, the mean is a bound: a law below it misfits, one above it does
not.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple

from paper_figures.inverse_law.settings import ROWS, Row
from suite.batch_size.law import FitError, InverseLawFit, Updates, fit_inverse_law
from suite.claims.intervals import LEVEL, Interval, jackknife_variance, quantile
from suite.papers.figure import Artifact, Frame, Missing, Quantity, Run, np, scipy

LEAST_POINTS = 4  # batch sizes of a family: F, A and p fit any three
RANGE = (0.05, 5.0)  # in which the exponent is looked for
LEAST = 1e-9  # updates, in units of the least ones: a fit may try a negative constant
UNTOLD = 1e-9  # squared change of log updates, per change of the log exponent, that is none
ALTERNATIVES = (0.7, 1.3)  # exponents that a rule must be able to tell from 1
ENOUGH = 0.8  # power against these from which on a test that finds nothing says something


class Family(NamedTuple):
    """Batch sizes [B], logarithms of the updates of every seed [B, S], and where a limit stands for some [B]."""

    batch: np.ndarray
    logs: np.ndarray
    limited: np.ndarray

    def without(self, seed: int) -> Family:
        """The family without one of its seeds."""
        return self._replace(logs=np.delete(self.logs, seed, 1))


def joint_exponent(curves: Sequence[Sequence[Sequence[Updates]]]) -> Interval:
    """The common exponent p, 1 by the law, of ``curves`` [curve][threshold][batch size], with its 95% interval.

    Curves with equally many seeds share them; ``n`` of the interval is the fewest. With one seed the interval is
    infinite. Where p lies at an end of the range searched, the interval is open at that end, and its other end is the
    exponent at which the squares rise above what the scatter of the points allows.

    Raises:
        FitError: no family, or one with fewer than ``LEAST_POINTS`` batch sizes.
    """
    families = [[_family(counted) for counted in curve] for curve in curves]
    points = [len(family.batch) for curve in families for family in curve]
    if not all(families) or min(points, default=0) < LEAST_POINTS:
        raise FitError(f"a free exponent needs {LEAST_POINTS} batch sizes of every curve; run more of them")
    seeds = [curve[0].logs.shape[1] for curve in families]
    whole, misfit = _fitted(families, None)
    if min(seeds) < 2:
        return Interval(whole, -math.inf, math.inf, min(seeds))
    if not RANGE[0] * 1.01 < whole < RANGE[1] * 0.99:
        other = _other_end(families, whole)
        ends = (other, math.inf) if whole > 1 else (-math.inf, other)
        return Interval(whole, *ends, min(seeds), sum(points) - 1 - 2 * len(points))
    variances = {count: _jackknife(families, count, whole) for count in sorted(set(seeds))}
    total = sum(variances.values())
    degrees = total**2 / sum(v**2 / (n - 1) for n, v in variances.items()) if total else 1.0  # Welch, Satterthwaite
    spare = sum(len(curve[0].batch) for curve in families) - 1 - 2 * len(families)
    between = misfit * math.sqrt(max(len(curve) for curve in families))
    errors = ((math.sqrt(total), degrees), (between, spare))
    half, freedom = max((quantile(freedom, LEVEL) * error, freedom) for error, freedom in errors)
    return Interval(whole, whole - half, whole + half, min(seeds), freedom)


def _other_end(families: Sequence[Sequence[Family]], whole: float) -> float:
    """Where the profile of squares crosses its F bound on the way from an end of the range; infinite if nowhere."""
    points = sum(len(family.batch) for curve in families for family in curve)
    spare = points - 1 - 2 * sum(map(len, families))
    alike = max(map(len, families))  # thresholds of a curve, as if all of them said the same
    least = _least_squares(families, (whole,), fixed=True).cost
    bound = least * (1 + alike * float(scipy.special.fdtri(1, spare, 1 - LEVEL)) / spare)

    def excess(logarithm: float) -> float:
        return _least_squares(families, (math.exp(logarithm),), fixed=True).cost - bound

    start, far = math.log(whole), math.log(RANGE[0] if whole > 1 else RANGE[1])
    if excess(far) <= 0:
        return -math.inf if whole > 1 else math.inf
    return math.exp(float(scipy.optimize.brentq(excess, start, far, xtol=1e-3)))


def _jackknife(families: Sequence[Sequence[Family]], count: int, whole: float) -> float:
    """Variance of the exponent from leaving out one seed at a time of the curves that have ``count`` of them."""
    left_out = []
    for j in range(count):
        rest = [[f.without(j) if f.logs.shape[1] == count else f for f in curve] for curve in families]
        left_out.append(_fitted(rest, whole)[0])
    return float(jackknife_variance(np.array(left_out)))


def _family(counted: Sequence[Updates]) -> Family:
    logs = [[math.log(n if n is not None else u.limit or math.nan) for n in u.seen] for u in counted]
    limited = np.array([u.censored > 0 for u in counted])
    return Family(np.array([float(u.batch) for u in counted]), np.array(logs), limited)


def _fitted(curves: Sequence[Sequence[Family]], start: float | None) -> tuple[float, float]:
    """The exponent of least squares on the means over seeds, and its standard error from the misfit.

    The error is infinite where no exponent fits better than another: updates that do not fall with the batch size.
    """
    found = _least_squares(curves, (0.6, 1.0, 1.8) if start is None else (start,))
    exponent = math.exp(found.x[0])
    spare = len(found.fun) - len(found.x)  # at least 1, with four batch sizes and two constants of each family
    own, others = found.jac[:, 0], found.jac[:, 1:]
    told = own - others @ np.linalg.lstsq(others, own)[0]  # what the constants of the curves cannot make up for
    information = float(told @ told)
    if information < UNTOLD:
        return exponent, math.inf
    return exponent, exponent * math.sqrt(2 * found.cost / spare / information)


def _least_squares(curves: Sequence[Sequence[Family]], starts: Sequence[float], *, fixed: bool = False) -> Any:
    """The best fit from these exponents, all families at once; ``fixed`` leaves the exponent where it starts."""
    families = [family for curve in curves for family in curve]
    means = [family.logs.mean(1) for family in families]
    floors = [float(mean.min()) for mean in means]
    # All families end to end, so that a residual is a few operations on one array: [P] points of all of them.
    sizes = [len(family.batch) for family in families]
    batch, mean_logs = np.concatenate([family.batch for family in families]), np.concatenate(means)
    limited, floor = np.concatenate([family.limited for family in families]), np.repeat(floors, sizes)
    points, place = np.arange(len(batch)), np.repeat(np.arange(len(families)), sizes)

    def law(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A / M^p and F + A / M^p of all points."""
        fall = np.repeat(np.exp(theta[2::2]), sizes) * batch ** -math.exp(theta[0])
        return fall, np.maximum(np.repeat(theta[1::2], sizes) + fall, LEAST)

    def residuals(theta: np.ndarray) -> np.ndarray:
        misfit = np.log(law(theta)[1]) + floor - mean_logs
        return np.where(limited, np.minimum(misfit, 0), misfit)

    def jacobian(theta: np.ndarray) -> np.ndarray:
        fall, updates = law(theta)
        free = (updates > LEAST) & ~(limited & (np.log(updates) + floor >= mean_logs))
        share = free / updates
        found = np.zeros((len(batch), len(theta)))  # [P, 1 + 2 families]
        found[:, 0] = -share * fall * np.log(batch) * math.exp(theta[0])
        found[points, 1 + 2 * place], found[points, 2 + 2 * place] = share, share * fall
        return found

    def begin(p: float) -> list[float]:
        """F as the least updates and A from the smallest batch size, both in units of the least updates."""
        theta = [math.log(p)]
        for family, mean, floor in zip(families, means, floors, strict=True):
            first = int(family.batch.argmin())
            rise = math.exp(mean[first] - floor) - 0.9
            theta += [0.9, math.log(rise * family.batch[first] ** p)]
        return theta

    bounds = [-np.inf] * (1 + 2 * len(families)), [np.inf] * (1 + 2 * len(families))
    bounds[0][0], bounds[1][0] = math.log(RANGE[0]), math.log(RANGE[1])
    if fixed:
        bounds[0][0], bounds[1][0] = math.log(starts[0]) - 1e-6, math.log(starts[0]) + 1e-6
    return min(
        (scipy.optimize.least_squares(residuals, begin(p), jacobian, bounds) for p in starts),
        key=lambda fit: fit.cost,
    )


def power(found: Interval, tolerance: float) -> float:
    """How probably the whole interval falls outside 1 +- tolerance when the truth is one of ``ALTERNATIVES``."""
    half = (found.high - found.low) / 2
    if not math.isfinite(half):
        return 0.0
    nearest = min(abs(p - 1) for p in ALTERNATIVES)
    return NormalDist().cdf((nearest - tolerance - half) / (half / 1.96)) if half else float(nearest > tolerance)


TOLERANCE = 0.15  # of the exponent, as published
Groups = list[str]


class Search(NamedTuple):
    """A stored search: its batch size in examples (words in translation), seed, limit and results."""

    batch: int
    seed: int
    limit: float
    results: Mapping[str, Any]


def searches(frame: Frame, groups: Iterable[str]) -> list[Search]:
    """The searches of these groups."""
    found = []
    for group in groups:
        for row in frame.results(group):
            run = frame.stored[row["run"]]
            settings = run.spec.settings
            batch = settings["batch"] if "batch" in settings else settings["words"]
            normed = settings.get("model", {}).get("name") == "resnet20"  # the one network here with batch norm
            found.append(Search(batch, row["seed"], float(settings["limit"]), as_tested(run) if normed else row))
    return found


def as_tested(run: Run) -> Mapping[str, Any]:
    """A search's results, no crossing after a test of the grid that found the loss below its threshold.

    Until 28 November 2026 a replay went on with the running statistics of batch norm that this test had, and so could
    miss what it found. Tests lie one hundredth of the updates apart.
    """
    tests, found = run.curve("tests"), dict(run.results)
    for monitor in run.spec.settings["monitors"]:
        seen = tests[(tests["monitor"] == monitor) & ~tests["cut"]]
        passed = [seen["update"][seen["loss"] < below].min() for below in found[f"thresholds_{monitor}"]]  # or NaN
        both = zip(found[f"crossed_{monitor}"], passed, strict=True)
        found[f"crossed_{monitor}"] = [at if math.isnan(test) or 0 <= at <= test else int(test) for at, test in both]
    return found


def crossings(runs: Iterable[Search], threshold: float, monitor: str = "training") -> list[Updates]:
    """Updates to one threshold by batch size, seeds in ascending order."""
    table: dict[int, dict[int, float | None]] = {}
    limits: dict[int, float] = {}
    for run in runs:
        thresholds = run.results.get(f"thresholds_{monitor}")
        if not isinstance(thresholds, Sequence) or threshold not in thresholds:
            raise Missing(f"lacks threshold {threshold} of the {monitor} loss at batch size {run.batch}")
        found = run.results[f"crossed_{monitor}"][thresholds.index(threshold)]
        table.setdefault(run.batch, {})[run.seed] = None if found < 0 else float(found)
        limits[run.batch] = run.limit
    return [
        Updates(batch, tuple(seen for _, seen in sorted(seeds.items())), limits[batch])
        for batch, seeds in sorted(table.items())
    ]


# ---------------------------------------------------------------- which groups a curve is read from


def curve_groups(frame: Frame, row: Row, *, lower: bool = False) -> Groups:
    """The groups of a curve, or those for its lower thresholds, of every batch size whose seeds are all stored.

    Where a point was tested after every update, as in the paper, these runs count and those on a grid do not.
    A curve may be judged while some of its batch sizes are still to run: the intervals say what that leaves
    open, and the quantities name the batch sizes they come from. Raises Missing for fewer than four.
    """
    names = [f"{row.name}/{batch}{'/lower' if lower else ''}" for batch in row.powers]
    points = [name for name in names if not frame.groups.keys().isdisjoint((name, f"{name}/every"))]
    if not points:
        raise Missing(f"no runs of {row.name} at {frame.profile}")
    found = []
    for name in points:
        found += [each for each in (f"{name}/every", name) if frame.whole(each)][:1]
    if len(found) < LEAST_POINTS:
        raise Missing(f"has {len(found)} of {len(points)} batch sizes of {row.name} at {frame.profile}")
    return found


def family_groups(frame: Frame, row: Row) -> Groups:
    """The groups of a curve with those of its lower thresholds, where there are enough."""
    found = curve_groups(frame, row)
    with contextlib.suppress(Missing):
        found += curve_groups(frame, row, lower=True)
    return found


def stored_rows(frame: Frame, rows: Iterable[Row] = ROWS, *, lower: bool = False) -> list[Row]:
    """The curves that have enough stored runs at the profile, or enough of those for their lower thresholds."""
    found = []
    for row in rows:
        with contextlib.suppress(Missing):
            curve_groups(frame, row, lower=lower)
            found.append(row)
    return found


# ---------------------------------------------------------------- counts


def curve(frame: Frame, row: Row, *, lower: bool = False) -> list[Search]:
    """The searches of a curve, or those for its lower thresholds."""
    return searches(frame, curve_groups(frame, row, lower=lower))


def families(frame: Frame, row: Row) -> dict[float, list[Updates]]:
    """Updates to every threshold of a curve that has runs, the lower ones too.

    A threshold counts that every run of the larger half of the batch sizes reached. Raises Missing without any.
    """
    found: dict[float, list[Updates]] = {}
    searched = {False: curve(frame, row)}
    with contextlib.suppress(Missing):
        searched[True] = curve(frame, row, lower=True)
    for lower, runs in searched.items():
        counted = {t: crossings(runs, t) for t in row.thresholds(frame.profile, lower=lower)}
        found |= {t: c for t, c in counted.items() if not any(u.censored for u in c[len(c) // 2 :])}
    if not found:
        raise Missing(f"lacks a threshold of {row.name} that the larger batch sizes reached")
    return found


def reached(frame: Frame, row: Row, monitor: str = "training") -> list[Updates]:
    """Updates to the lowest threshold that at least two batch sizes reached."""
    runs = curve(frame, row)
    for threshold in reversed(row.thresholds(frame.profile)):
        try:
            found = crossings(runs, threshold, monitor)
        except Missing:
            continue
        if sum(u.censored < len(u.seen) for u in found) >= 2:
            return found
    raise Missing(f"lacks two batch sizes of {row.name} that reached a threshold of the {monitor} loss")


# ---------------------------------------------------------------- laws fitted to them


def law_fit(counted: Sequence[Updates]) -> InverseLawFit:
    """The fit with seeds as blocks where every batch size has the same ones."""
    usable = [u for u in counted if u.censored < len(u.seen)]
    paired = len(usable[0].seen) > 1 and len({len(u.seen) for u in usable}) == 1
    return fit_inverse_law(counted, blocks=paired)


def floors(frame: Frame, *rows: Row) -> list[Interval]:
    """N_inf of each curve at its lowest threshold."""
    return [law_fit(reached(frame, row)).floor_interval() for row in rows]


def exponent(*curves: Iterable[Sequence[Updates]]) -> Interval:
    """Exponent of M in N - N_inf, one for all thresholds of all curves: minus the fitted one.

    Raises Missing where it has none.
    """
    return _exponent(tuple(tuple(map(tuple, thresholds)) for thresholds in curves))


@cache
def _exponent(curves: tuple[tuple[tuple[Updates, ...], ...], ...]) -> Interval:
    """Several claims and drawings ask for the same curves, and each answer is as many fits as there are seeds."""
    try:
        free = joint_exponent(curves)
    except FitError as error:
        raise Missing(str(error)) from error
    return Interval(-free.mean, -free.high, -free.low, free.n, free.freedom)


def power_told(share: float) -> str:
    """The probability of telling the law from ``ALTERNATIVES``, in words."""
    return f"power against {' and '.join(f'-{p:g}' for p in ALTERNATIVES)}: {share:.0%}"


# ---------------------------------------------------------------- quantities of searches


def behind(frame: Frame) -> str:
    """Batch sizes and number of seeds of a frame's searches."""
    runs = searches(frame, frame.groups)
    sizes, seeds = sorted({run.batch for run in runs}), {run.seed for run in runs}
    return f"M = {', '.join(map(str, sizes))}; {len(seeds)} seeds"


def counted(
    panel: Artifact,
    name: str,
    rows: Sequence[Row],
    value: Callable[..., Interval | Sequence[Interval]],
    note: Callable[..., str] | str = "",
    groups: Callable[[Frame, Row], Groups] = curve_groups,
) -> None:
    """Add a quantity of curves to a panel: only seeds repeat, and beside it stand the sizes it comes from.

    ``value`` and ``note`` are functions of the frame and of each curve; ``groups`` says which runs of one they read.
    """

    def needed(frame: Frame) -> Groups:
        return [group for row in rows for group in groups(frame, row)]

    def repeated(frame: Frame) -> list[Interval]:
        found, seeds = value(frame, *rows), frame.runs["seed"].nunique()
        return [replace(each, n=min(each.n, seeds)) for each in ([found] if isinstance(found, Interval) else found)]

    def told(frame: Frame) -> str:
        text = note if isinstance(note, str) else note(frame, *rows)
        return "; ".join(filter(None, (text, behind(frame))))

    panel.quantities[name] = Quantity(repeated, needed, note=told)
