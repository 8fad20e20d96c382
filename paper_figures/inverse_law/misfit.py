"""How far the law is off where it holds, and from which batch size on it holds: numbers that no claim asks for."""

from __future__ import annotations

from collections.abc import Sequence

from paper_figures.inverse_law.exponents import FAR
from paper_figures.inverse_law.readings import families, law_fit, stored_rows
from paper_figures.inverse_law.settings import BY_NAME
from suite.batch_size.law import FitError, InverseLawFit, Updates
from suite.claims.estimate import exact
from suite.claims.intervals import log_interval
from suite.papers.artifact import Evidence, Missing, Quantities

SLOW = 0.01  # the rate at which the law holds at every batch size
BREAKS = "mnist_medium-lr0p05"  # the curve that leaves the law at small batches
NEAR = 0.1  # misfit up to which a batch size is said to follow the law


def misfit(fit: InverseLawFit, updates: Updates) -> float:
    """Typical (geometric mean) updates at a batch size over those of the law, minus one."""
    return log_interval([n / fit.predict(updates.batch) for n in updates.seen if n is not None]).mean - 1


def measure_misfit(evidence: Evidence) -> Quantities:
    """The largest misfit in % of the law fitted to every batch size, over all MNIST curves at the slow rate."""
    rows = [row for row in stored_rows(evidence) if row.data == "mnist" and row.rate == SLOW]
    if not rows:
        raise Missing(f"no curve at rate {SLOW} at {evidence.profile}")
    found, runs = [], []
    for row in rows:
        thresholds, read = families(evidence, row)
        found += list(thresholds.values())
        runs += [run.id for run in read]
    largest = max(abs(misfit(law_fit(counted), u)) for counted in found for u in counted if not u.censored)
    points = [u for counted in found for u in counted if not u.censored]
    sizes = [u.batch for u in points]
    yield "largest-misfit", exact(100 * largest, runs=runs, note=f"rate {SLOW}, every batch size fitted")
    seeds = min(len(u.seen) for u in points)
    behind = "networks, curves, smallest and largest batch size, seeds a point"
    yield "misfit-behind", exact((len(rows), len(found), min(sizes), max(sizes), seeds), runs=runs, note=behind)


def measure_onset(evidence: Evidence) -> Quantities:
    """By threshold: the least batch size from which on the law of large batches is met within ``NEAR``."""
    thresholds, behind = families(evidence, BY_NAME[BREAKS])
    onsets = [(threshold, _onset(counted)) for threshold, counted in sorted(thresholds.items(), reverse=True)]
    runs = [run.id for run in behind]
    yield "onset-thresholds", exact([threshold for threshold, _ in onsets], runs=runs)
    yield "onset-rule", exact((100 * NEAR, FAR), note="misfit allowed in %; batch sizes from here on fit the law")
    yield "onset-batches", exact([batch for _, batch in onsets], runs=runs)


def _onset(counted: Sequence[Updates]) -> int:
    try:
        fit = law_fit([u for u in counted if u.batch >= FAR])
    except FitError as error:
        raise Missing(str(error)) from error
    least = FAR
    for updates in sorted((u for u in counted if u.batch < FAR), key=lambda u: -u.batch):
        if updates.censored or abs(misfit(fit, updates)) > NEAR:
            break
        least = updates.batch
    return least
