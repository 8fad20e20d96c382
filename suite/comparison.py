"""Regressions between two sources of runs: the same specifications, different code or machine.

Results are deterministic on one machine and build, so convergence is compared run by run: a run that finished
and now diverges, or whose test error rose by more than the spread over seeds explains, is a regression.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from suite.archive import Runs
from suite.spec import canonical, thaw
from suite.statistics import paired_difference

ERRORS = ("test_error", "test_loss", "train_loss")


def compare_runs(base: Runs, new: Runs) -> dict[str, Any]:
    """Pairs runs by specification and groups them over seeds; returns plain values with ``regressions``."""
    shared = sorted(base.ids() & new.ids())
    groups: dict[str, list[tuple[Any, Any]]] = {}
    regressions: list[str] = []
    for run_id in shared:
        before, after = base.read(run_id), new.read(run_id)
        if before.status == "finished" and after.status != "finished":
            regressions.append(f"{run_id} ({before.spec.experiment}): finished before, {after.status} now")
            continue
        key = canonical({"experiment": before.spec.experiment, "settings": thaw(before.spec.settings)})
        groups.setdefault(key, []).append((before, after))
    changed = []
    for pairs in groups.values():
        for name in ERRORS:
            a = [p[0].results[name] for p in pairs if isinstance(p[0].results.get(name), float)]
            b = [p[1].results[name] for p in pairs if isinstance(p[1].results.get(name), float)]
            if not a or len(a) != len(b) or a == b:
                continue
            interval = paired_difference(a, b)
            ids = [p[0].id for p in pairs]
            entry = {"runs": ids, "quantity": name, "change": interval.mean, "n": interval.n}
            changed.append(entry | {"low": _plain(interval.low), "high": _plain(interval.high)})
            if interval.low > 0 and math.isfinite(interval.low):
                regressions.append(f"{ids[0]} and {len(ids) - 1} more: {name} rose by {interval.mean:.4g}")
    return {
        "compared": len(shared),
        "only_in_base": len(base.ids() - new.ids()),
        "only_in_new": len(new.ids() - base.ids()),
        "changed": changed,
        "regressions": regressions,
    }


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def lines(found: Mapping[str, Any]) -> Sequence[str]:
    """The comparison as text."""
    summary = (
        f"{found['compared']} runs compared, {len(found['changed'])} groups differ, "
        f"{found['only_in_base']} only in the base, {found['only_in_new']} only in the new"
    )
    changes = [
        f"~ {entry['quantity']} {entry['change']:+.4g} over {entry['n']} runs ({entry['runs'][0]} ...)"
        for entry in found["changed"]
    ]
    return [summary, *changes, *(f"REGRESSION {line}" for line in found["regressions"])]
