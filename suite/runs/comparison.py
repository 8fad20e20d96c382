"""Regressions between two sources of runs: the same specifications, different code or machine.

Results are deterministic on one machine and build, so runs are compared pair by pair (to the bit, unless one went
on with another build on its way): one that finished and no
longer does is a regression, and so is an error, or a number of updates to a target, that rose by more than the
spread over the pairs explains. Pairs are taken over the seeds of one setting, and over all runs of one
experiment, which finds a small common rise where every setting has one seed only. All tests of one comparison
together alarm with probability ``ALARM`` when nothing but rounding has changed. Seconds are not compared: two
stores were not timed side by side.

Where nothing was meant to move, a fall is as red as a rise (``either_way``): a quantity of one setting has then
moved if its mean change, beyond what the spread over the pairs explains, exceeds ``NEGLIGIBLE`` standard deviations
over the seeds.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from suite.claims.intervals import paired_difference, paired_ratio
from suite.runs.archive import Runs
from suite.runs.store import Run
from suite.spec import canonical

ERRORS = ("test_error", "test_loss", "train_error", "train_loss")
ALARM = 0.01
NEGLIGIBLE = 0.01  # a bias of rounding can be as steady as a fault, but is far smaller

Pair = tuple[Run, Run]


def quantity(run: Run, name: str) -> float | None:
    """A result that is better when smaller, or None if the run has none; ``updates`` count only to a target."""
    value = run.results.get(name)
    if name == "updates" and not (run.spec.settings.get("stop") or run.spec.settings.get("monitors")):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def identical(before: Run, after: Run) -> bool:
    """Whether two runs came to the same, to the bit, in everything but wall time (``*seconds``)."""

    def numbers(run: Run) -> str:
        kept = {name: value for name, value in run.results.items() if not name.endswith("seconds")}
        return json.dumps([run.status, kept], sort_keys=True)

    if numbers(before) != numbers(after) or before.curves != after.curves:
        return False
    unlike = [name for name in before.curves if before.files[f"{name}.parquet"] != after.files[f"{name}.parquet"]]
    return all(
        a.columns.equals(b.columns) and all(a[c].equals(b[c]) for c in a.columns if not c.endswith("seconds"))
        for name in unlike
        for a, b in [(before.curve(name), after.curve(name))]
    )


def several_builds(run: Run) -> bool:
    """Whether a run went on with another build of the native step than it began with: it has no twin to the bit."""
    return "builds" in run.environment.get("execution", {})


def compare_runs(base: Runs, new: Runs, *, either_way: bool = False) -> dict[str, Any]:
    """Pairs runs by specification; returns plain values with ``regressions`` in sentences.

    ``either_way`` counts a fall as well as a rise, of single settings, at the same probability of a false alarm.

    Raises DamagedRun when a run of either side does not verify.
    """
    old_ids, new_ids = base.ids(), new.ids()
    groups: dict[tuple[str, str], list[Pair]] = {}
    regressions: list[str] = []
    differ: list[str] = []
    for run_id in sorted(old_ids & new_ids):
        before, after = base.read(run_id), new.read(run_id)
        name = before.spec.experiment
        if not (several_builds(before) or several_builds(after) or identical(before, after)):
            differ.append(run_id)
        if before.status == "finished" and after.status != "finished":
            regressions.append(f"{run_id} ({name}): finished before, {after.status} now")
        if before.status == after.status == "finished":
            groups.setdefault((f"{name}, one setting", canonical(before.spec.settings)), []).append((before, after))
            if not either_way:
                groups.setdefault((f"{name}, all settings", ""), []).append((before, after))
    changed = [
        (place, name, [p[0].id for p in pairs], a, b)
        for (place, _), pairs in groups.items()
        for name in (*ERRORS, "updates")
        for a, b in [_columns(pairs, name)]
        if a != b
    ]
    rows = []
    tails = 1 if either_way else 2  # an interval errs on two sides; only one of them matters unless both do
    for place, name, ids, a, b in changed:
        negligible = NEGLIGIBLE * statistics.stdev(a) if either_way and len(a) > 1 else 0.0
        row = _row(place, name, ids, a, b, 1 - tails * ALARM / len(changed), negligible)
        rows.append(row)
        if row["rose"] or (either_way and row["fell"]):
            moved = f"{'rose' if row['rose'] else 'fell'} by {abs(row['change']):.4g}"
            regressions.append(f"{place}: {name} {moved} over {row['n']} runs, {ids[0]} first")
    return {
        "compared": len(old_ids & new_ids),
        "only_in_base": len(old_ids - new_ids),
        "only_in_new": len(new_ids - old_ids),
        "differ": differ,
        "changed": rows,
        "regressions": regressions,
    }


def _columns(pairs: Sequence[Pair], name: str) -> tuple[list[float], list[float]]:
    both = [(quantity(before, name), quantity(after, name)) for before, after in pairs]
    kept = [(a, b) for a, b in both if a is not None and b is not None]
    return [a for a, _ in kept], [b for _, b in kept]


def _row(
    place: str,
    name: str,
    ids: Sequence[str],
    a: Sequence[float],
    b: Sequence[float],
    confidence: float,
    negligible: float,
) -> dict[str, Any]:
    """The change of one quantity over its pairs, with an interval; of ratios where settings differ in scale."""
    ratios = place.endswith("all settings") and min(*a, *b) > 0
    interval = paired_ratio(a, b, confidence) if ratios else paired_difference(a, b, confidence)
    unchanged = 1.0 if ratios else 0.0
    return {
        "group": place,
        "runs": list(ids),
        "quantity": name,
        "change": interval.mean - unchanged,
        "relative": ratios,
        "n": interval.n,
        "low": _plain(interval.low - unchanged),
        "high": _plain(interval.high - unchanged),
        "rose": interval.low > unchanged + negligible,
        "fell": interval.high < unchanged - negligible,
    }


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def lines(found: Mapping[str, Any]) -> Sequence[str]:
    """The comparison as text."""
    summary = (
        f"{found['compared']} runs compared, {len(found['changed'])} quantities differ, "
        f"{found['only_in_base']} only in the base, {found['only_in_new']} only in the new"
    )
    changes = [
        f"~ {row['group']}: {row['quantity']} {row['change']:+.4g}{' relative' if row['relative'] else ''} "
        f"over {row['n']} runs ({row['runs'][0]} first)"
        for row in found["changed"]
    ]
    return [summary, *changes, *(f"REGRESSION {line}" for line in found["regressions"])]
