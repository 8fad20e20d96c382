"""Updates by batch size, read from the searches of a frame: curves, their thresholds, and the laws fitted to them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from paper_figures.inverse_law.exponents import ALTERNATIVES, LEAST_POINTS, joint_exponent, power
from paper_figures.inverse_law.settings import ROWS, Row
from suite.batch_size.law import FitError, InverseLawFit, Updates, fit_inverse_law
from suite.claims.intervals import Interval
from suite.papers.artifact import Missing
from suite.papers.panel import Frame, Panel, Quantity

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
        for row in (frame.rows[at] for at in frame.here(group)):
            settings = frame.stored[row["run"]].spec.settings
            batch = settings["batch"] if "batch" in settings else settings["words"]
            found.append(Search(batch, row["seed"], float(settings["limit"]), row))
    return found


def crossings(runs: Iterable[Search], threshold: float, monitor: str = "training") -> list[Updates]:
    """Updates to one threshold by batch size, seeds in ascending order."""
    table: dict[int, dict[int, float | None]] = {}
    limits: dict[int, float] = {}
    for run in runs:
        thresholds = run.results.get(f"thresholds_{monitor}")
        if not isinstance(thresholds, Sequence) or threshold not in thresholds:
            raise Missing(f"threshold {threshold} of the {monitor} loss at batch size {run.batch}")
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
        raise Missing(f"{len(found)} of {len(points)} batch sizes of {row.name} at {frame.profile}")
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


def repeated_rows(frame: Frame) -> list[Row]:
    """Those of several seeds, whose scatter says how far a fitted exponent can be trusted."""
    return [row for row in stored_rows(frame) if len({run.seed for run in curve(frame, row)}) > 1]


# ---------------------------------------------------------------- counts


def curve(frame: Frame, row: Row, *, lower: bool = False) -> list[Search]:
    """The searches of a curve, or those for its lower thresholds."""
    return searches(frame, curve_groups(frame, row, lower=lower))


def families(frame: Frame, row: Row) -> dict[float, list[Updates]]:
    """Updates to every threshold of a curve that has runs, the lower ones too.

    A threshold is left out that no run of the larger half of the batch sizes reached. Raises Missing without any.
    """
    found: dict[float, list[Updates]] = {}
    for lower in (False, True):
        try:
            runs = curve(frame, row, lower=lower)
        except Missing:
            if not lower:
                raise
            continue
        counted = {t: crossings(runs, t) for t in row.thresholds(frame.profile, lower=lower)}
        found |= {t: c for t, c in counted.items() if not any(u.censored for u in c[len(c) // 2 :])}
    if not found:
        raise Missing(f"a threshold of {row.name} that the larger batch sizes reached")
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
    raise Missing(f"two batch sizes of {row.name} that reached a threshold of the {monitor} loss")


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
    try:
        free = joint_exponent([list(thresholds) for thresholds in curves])
    except FitError as error:
        raise Missing(str(error)) from error
    return Interval(-free.mean, -free.high, -free.low, free.n)


def told_apart(found: Interval) -> str:
    """The power of the rule on exponents against those it must tell from -1."""
    return power_told(power(found, TOLERANCE))


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
    panel: Panel,
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
