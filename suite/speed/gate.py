"""The benchmark gate: is our side of a workload slower, beside its rival, than when the baseline was accepted?

What is tested is log(ours / rival) of each round (``suite.speed.baselines``). Each workload is tested on wall time,
and on processor time where both sides ran on one thread, which other programs hardly disturb.

Unchanged code differs from session to session (process to process) a little more than its rounds tell, so the null
hypothesis is a slowdown of at most the workload's *threshold*: ``FLOOR``, or more where the baseline's sessions lie
further apart than that. It is tested by ranks (``suite.speed.rank_shift``) with Holm's procedure over all rows. Half
of ``ALARM``, the probability of any false alarm, is spent on the thresholds and half on the tests. For each row the
gate says which slowdown it would have found with probability ``POWER``; where that is above ``TARGET`` on every
clock, its silence means nothing and it asks for more rounds.

A slowdown of two per cent a week is never a regression: each step stays below ``FLOOR``, and each is accepted. So
beside the baseline lies the *level*: of each workload the fastest baseline that was ever accepted, until somebody
takes the present one as wanted. The same test against the level finds what has crept in.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from suite.claims.intervals import holm, quantile
from suite.speed.baselines import GateError, Sessions, baseline, find_baseline, place, read, write
from suite.speed.rank_shift import detectable, lower_limit, p_value, shift

FLOOR = 0.05  # slowdowns below this are nobody's regression
ALARM = 0.01  # probability of a false alarm, all rows together
POWER = 0.9
TARGET = 0.2  # the slowdown that must be found
ENOUGH = 5  # sessions from which their own spread makes the threshold
MOST_ROUNDS = 400
LEVEL = "level.json"  # beside the baseline


def compare(base: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Compare two results of ``baseline``; returns plain values with ``regressions`` in sentences.

    Raises GateError when they are of different machine classes.
    """
    ours, theirs = new["machine"]["class"], base["machine"]["class"]
    if ours != theirs:
        raise GateError(f"the baseline is of machine class {theirs}, the new document of {ours}: not comparable")
    measured = {(name, clock): now for name, clocks in new["workloads"].items() for clock, now in clocks.items()}
    pairs = [
        (name, clock, old, measured[name, clock])
        for name, clocks in base["workloads"].items()
        for clock, old in clocks.items()
        if (name, clock) in measured
    ]
    slower = alarms([(old, now) for _, _, old, now in pairs])
    faster = alarms([(now, old) for _, _, old, now in pairs])
    rows = [
        {"workload": name, "clock": clock, **_row(old, now, ALARM / 2 / len(pairs)), "slower": s, "faster": f}
        for (name, clock, old, now), s, f in zip(pairs, slower, faster, strict=True)
    ]
    blind = {row["workload"] for row in rows} - {r["workload"] for r in rows if _sees(r["detectable"])}
    return {
        "machine_class": ours,
        "rows": rows,
        "regressions": [_slowdown(row) for row in rows if row["slower"]],
        "creeping": [],
        "undecided": {name: _advice([row for row in rows if row["workload"] == name]) for name in sorted(blind)},
        "missing": sorted(set(base["workloads"]) - {row["workload"] for row in rows}),
        "without_baseline": sorted(set(new["workloads"]) - {row["workload"] for row in rows}),
        "versions_changed": {
            package: [base["versions"].get(package), version]
            for package, version in new.get("versions", {}).items()
            if base.get("versions", {}).get(package) != version
        },
    }


def _slowdown(row: Mapping[str, Any]) -> str:
    return (
        f"{row['workload']}: {row['change']:+.1%} by {row['clock']} time, at least {row['low']:+.1%} "
        f"(threshold {row['threshold']:.1%}, p = {row['p']:.1e})"
    )


def level(folder: Path, new: Mapping[str, Any]) -> dict[str, Any] | None:
    """The level of a machine class, or its baseline that has none yet; None where other versions made it."""
    path = place(folder, new["machine"]["class"])
    found = next((each for each in (path.with_name(LEVEL), path) if each.exists()), None)
    known = read(found) if found else None
    return known if known and known.get("versions") == new["versions"] else None


def accept(documents: Sequence[Mapping[str, Any]], folder: Path, *, anew: bool = False) -> Path:
    """Write the baseline of a machine class and its level below ``folder``; returns the path of the baseline.

    ``anew`` takes the present level as wanted.
    """
    made = baseline(documents)
    path = place(folder, made["machine"]["class"])
    known = None if anew else level(folder, made)
    fastest = dict(made["workloads"])
    if known:
        gained = {row["workload"] for row in compare(known, made)["rows"] if row["faster"]}
        fastest |= {name: row for name, row in known["workloads"].items() if name not in gained}
    write(path, made)
    write(path.with_name(LEVEL), {**made, "workloads": dict(sorted(fastest.items()))})
    return path


def judged(new: Mapping[str, Any], folder: Path, only: str = "") -> dict[str, Any]:
    """``compare`` with the baseline in ``folder``, and as ``creeping`` what is slower than the level there alone.

    ``only`` is a regular expression: workloads of the baseline that it does not find are left out. Raises GateError
    without a baseline.
    """
    base = baseline([read(find_baseline(folder, new["machine"]["class"]))])
    base["workloads"] = {name: row for name, row in base["workloads"].items() if re.search(only, name)}
    found = compare(base, new)
    known, seen = level(folder, new), {row["workload"] for row in found["rows"] if row["slower"]}
    crept = compare(known, new)["rows"] if known else []
    found["creeping"] = [_slowdown(row) for row in crept if row["slower"] and row["workload"] not in seen]
    return found


def alarms(pairs: Sequence[tuple[Sessions, Sessions]]) -> list[bool]:
    """Which of (sessions before, sessions now) became slower, the larger part of the sessions being the baseline."""
    level = ALARM / 2 / max(len(pairs), 1)
    most = [threshold(max(pair, key=len), level) for pair in pairs]
    p_values = [p_value(_flat(now), _flat(old), at) for (old, now), at in zip(pairs, most, strict=True)]
    return holm(p_values, ALARM / 2)


def threshold(sessions: Sessions, level: float) -> float:
    """The log ratio up to which a workload counts as unchanged, from the baseline's own spread.

    With ``ENOUGH`` sessions, what the difference between a new session's median and theirs exceeds with probability
    ``level`` (Student's t). With fewer, whose spread says too little, one standard deviation of the rounds, taken
    from their quartiles: a median of many rounds strays less. Never below ``FLOOR``.
    """
    if len(sessions) >= ENOUGH:
        medians = [statistics.median(session) for session in sessions]
        reach = quantile(len(medians) - 1, 2 * level)  # of one side
        spread = reach * statistics.stdev(medians) * math.sqrt(1 + 1 / len(medians))
    else:
        low, _, high = statistics.quantiles([*_residuals(sessions), 0.0], n=4)
        spread = (high - low) / 1.349
    return max(math.log1p(FLOOR), float(spread))


def _residuals(sessions: Sessions) -> list[float]:
    """Log ratios less the median of their session."""
    return [value - statistics.median(session) for session in sessions for value in session]


def _flat(sessions: Sessions) -> list[float]:
    return [value for session in sessions for value in session]


def _row(old: Sessions, now: Sessions, level: float) -> dict[str, Any]:
    """What one workload shows on one clock, and what it could have shown. Shares, not logarithms."""
    base, new, at = _flat(old), _flat(now), threshold(old, level)
    residuals = [*_residuals(old), *_residuals(now)]
    finds = lambda rounds: _plain(detectable(residuals, rounds, len(base), at, level, POWER))
    found, rounds = finds(len(new)), len(new)
    while not _sees(finds(rounds)) and rounds <= MOST_ROUNDS:
        rounds = math.ceil(rounds * 1.5)
    return {
        "sessions": len(old),
        "base_rounds": len(base),
        "rounds": len(new),
        "change": math.expm1(shift(new, base)),
        "low": math.expm1(lower_limit(new, base, level)),
        "threshold": math.expm1(at),
        "p": p_value(new, base, at),
        "detectable": found,
        "rounds_needed": rounds if rounds <= MOST_ROUNDS else None,
    }


def _plain(log_ratio: float) -> float | None:
    return math.expm1(log_ratio) if math.isfinite(log_ratio) else None


def _sees(slowdown: float | None) -> bool:
    return slowdown is not None and slowdown <= TARGET


def _advice(rows: Sequence[Mapping[str, Any]]) -> str:
    """What would let the gate see the slowdown it must find."""
    needed = [row["rounds_needed"] for row in rows if row["rounds_needed"]]
    if needed:
        return f"measure {min(needed)} rounds, in longer sessions or in several"
    return "more rounds will not do: measure on a quieter machine, or accept a baseline of more sessions and rounds"


def lines(found: Mapping[str, Any]) -> Iterable[str]:
    """The comparison as text."""
    yield (
        f"machine class {found['machine_class']}; false alarms below {ALARM:.0%} over all {len(found['rows'])} rows; "
        f"'finds' is the slowdown found with probability {POWER:.0%}"
    )
    width = max((len(row["workload"]) for row in found["rows"]), default=0)
    for row in found["rows"]:
        finds = "nothing" if row["detectable"] is None else f"{row['detectable']:7.1%}"
        verdict = "REGRESSION" if row["slower"] else "faster" if row["faster"] else "ok"
        yield (
            f"{row['workload']:<{width}} {row['clock']:<9} {row['change']:+7.1%}  threshold {row['threshold']:5.1%}  "
            f"finds {finds}  {row['rounds']} rounds against {row['base_rounds']} of {row['sessions']} sessions  "
            f"{verdict}"
        )
    for name, (before, now) in found["versions_changed"].items():
        yield f"note: the baseline was measured with {name} {before}, not {now}"
    if any(row["faster"] for row in found["rows"]):
        yield "note: what is faster stays guarded against the old pace only; accept a new baseline to keep the gain"
    if any(row["sessions"] < ENOUGH for row in found["rows"]):
        yield f"note: a baseline of {ENOUGH} sessions or more bounds how sessions differ; accept one of more"
    for name in found["without_baseline"]:
        yield f"note: {name} has no baseline"
    for name in found["missing"]:
        yield f"MISSING {name}: in the baseline, not measured now"
    for name, advice in found["undecided"].items():
        yield f"UNDECIDED {name}: a slowdown of {TARGET:.0%} could go unseen; {advice}"
    for line in found["regressions"]:
        yield f"REGRESSION {line}"
    for line in found["creeping"]:
        yield f"CREEPING {line}"


def exit_code(found: Mapping[str, Any]) -> int:
    """1 for a regression, at once or crept up; 3 when none is to be seen but one could hide; 0 when all is well."""
    if found["regressions"] or found["creeping"]:
        return 1
    return 3 if found["undecided"] or found["missing"] else 0
