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

A run's id says what was to be computed, not what came out. Two sources may hold different results under one id:

``equal``             the same deterministic tables and times
``timed again``       the same deterministic tables, or an experiment whose results rest on times: times never contest
``confirmed``         the same deterministic tables from another execution; of arithmetic to rounding
``other execution``   other tables from another execution; the spread over the seeds judges whether that is plausible
``contested``         other tables, though source, versions, execution and processor are the same: one is wrong.
                      Of arithmetic, which every execution computes alike, though source and versions are

A checksum shows damage, not forgery: whoever changes a number can seal the folder again. What this module shows is
that two sources disagree, which no seal can hide.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from suite.claims.intervals import paired_difference, paired_ratio, quantile
from suite.clock import counted
from suite.runs.archive import Runs
from suite.runs.run import Run
from suite.spec import canonical

ERRORS = ("test_error", "test_loss", "train_error", "train_loss")
ALARM = 0.01
NEGLIGIBLE = 0.01  # a bias of rounding can be as steady as a fault, but is far smaller

Pair = tuple[Run, Run]


def quantity(run: Run, name: str) -> float | None:
    """A result that is better when smaller, or None if the run has none; ``updates`` count only to a target."""
    if name == "updates" and not (run.spec.settings.get("stop") or run.spec.settings.get("monitors")):
        return None
    return _numbers(run).get(name)


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
    pairs = [(base.read(run_id), new.read(run_id)) for run_id in sorted(old_ids & new_ids)]
    differ = [a.id for a, b in pairs if not (several_builds(a) or several_builds(b) or identical(a, b))]
    regressions = [
        f"{a.id} ({a.spec.experiment}): finished before, {b.status} now"
        for a, b in pairs
        if a.status == "finished" and b.status != "finished"
    ]
    regressions += [
        f"{a.id} ({a.spec.experiment}): {name} was {before:.4g}, and is no number now"
        for a, b in pairs
        for name in (*ERRORS, "updates")
        if a.status == b.status == "finished" and name in b.results
        if (before := quantity(a, name)) is not None and quantity(b, name) is None
    ]
    changed = []
    for place, group in _groups(pairs, settings_alone=either_way):
        for name in (*ERRORS, "updates"):
            ids, a, b = _columns(group, name)
            if a != b:
                changed.append((place, name, ids, a, b))
    rows = []
    tails = 1 if either_way else 2  # an interval errs on two sides; only one of them matters unless both do
    for place, name, ids, a, b in changed:
        negligible = NEGLIGIBLE * statistics.stdev(a) if either_way and len(a) > 1 else 0.0
        row = _row(place, name, ids, a, b, 1 - tails * ALARM / len(changed), negligible)
        rows.append(row)
        if row["rose"] or (either_way and row["fell"]):
            moved = f"{'rose' if row['rose'] else 'fell'} by {abs(row['change']):.4g}"
            regressions.append(f"{place}: {name} {moved} over {counted(row['n'], 'run')}, {ids[0]} first")
    return {
        "compared": len(old_ids & new_ids),
        "only_in_base": len(old_ids - new_ids),
        "only_in_new": len(new_ids - old_ids),
        "differ": differ,
        "changed": rows,
        "regressions": regressions,
    }


def _groups(pairs: Sequence[Pair], *, settings_alone: bool) -> list[tuple[str, list[Pair]]]:
    """Pairs that both finished: those of each setting, and unless these are asked for alone of each experiment."""
    groups: dict[tuple[str, str], list[Pair]] = {}
    for before, after in pairs:
        if before.status == after.status == "finished":
            name = before.spec.experiment
            groups.setdefault((f"{name}, one setting", canonical(before.spec.settings)), []).append((before, after))
            if not settings_alone:
                groups.setdefault((f"{name}, all settings", ""), []).append((before, after))
    return [(place, found) for (place, _), found in groups.items()]


def _columns(pairs: Sequence[Pair], name: str) -> tuple[list[str], list[float], list[float]]:
    """Ids and both numbers of the pairs that have both."""
    both = [(before.id, quantity(before, name), quantity(after, name)) for before, after in pairs]
    kept = [(run_id, a, b) for run_id, a, b in both if a is not None and b is not None]
    return [run_id for run_id, _, _ in kept], [a for _, a, _ in kept], [b for _, _, b in kept]


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
        f"{counted(found['compared'], 'run')} compared, {len(found['changed'])} quantities differ, "
        f"{found['only_in_base']} only in the base, {found['only_in_new']} only in the new"
    )
    changes = [
        f"~ {row['group']}: {row['quantity']} {row['change']:+.4g}{' relative' if row['relative'] else ''} "
        f"over {counted(row['n'], 'run')} ({row['runs'][0]} first)"
        for row in found["changed"]
    ]
    return [summary, *changes, *(f"REGRESSION {line}" for line in found["regressions"])]


SURVEY_ALARM = 0.01  # probability that one survey calls an honest execution implausible
FEWEST_SEEDS = 3  # from which their spread says anything
NOTES = ("measured", "reason", "refused")  # of an execution: why it was chosen, not what it is

ROUNDING = 1e-6  # relative difference of two numbers that count as the same arithmetic

Kind = Callable[[str], bool]  # whether an experiment, by name, is of a kind: its results rest on times, or arithmetic


def made_by(run: Run, arithmetic: bool = False) -> str:
    """What promises a run the same bits: source, versions, execution, device and processor, as text.

    Arithmetic needs no more than the first two.
    """
    where = run.environment
    if arithmetic:
        return json.dumps([where.get("code", where.get("source")), where.get("versions")], sort_keys=True)
    execution = {name: value for name, value in where.get("execution", {}).items() if name not in NOTES}
    cpu = where.get("machine", {}).get("cpu")
    parts = where.get("code", where.get("source")), where.get("versions"), execution, where.get("device"), cpu
    return json.dumps(parts, sort_keys=True)


def relation(one: Run, other: Run, *, timed: bool, arithmetic: bool = False) -> str:
    """How two versions of a run relate, in a word of this module's docstring."""
    if one.files == other.files:
        return "equal"
    # Where on its way a run changed its build nothing records, so equal records promise no equal bits.
    same_maker = made_by(one) == made_by(other) and not several_builds(one)
    if identical(one, other):
        return "timed again" if same_maker else "confirmed"
    if timed and same_maker:
        return "timed again"
    shared = one.results.keys() & other.results.keys()  # one source may give results that another does not
    if arithmetic and _alike(_content(one, shared), _content(other, shared)):
        return "confirmed"
    same_maker = same_maker or (arithmetic and made_by(one, arithmetic) == made_by(other, arithmetic))
    return "contested" if same_maker else "other execution"


def _content(run: Run, results: Collection[str]) -> list[object]:
    """All that a run came to, of its results these, as plain values."""
    curves = {name: run.curve(name).to_dict("list") for name in run.curves}
    return [run.status, {name: run.results[name] for name in results}, curves]


def _alike(one: object, other: object) -> bool:
    """Whether two plain values are the same but for the rounding of their numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=ROUNDING) or (math.isnan(one) and math.isnan(other))
    return one == other


def implausible(run: Run, seeds: Sequence[Run], alarm: float) -> str | None:
    """Which result of ``run`` lies outside what ``seeds``, runs of its setting by another execution, let expect.

    A prediction interval (Student's t) of each plain number, together alarming with probability ``alarm``. Empty
    when all lie within, None with too few seeds to tell.
    """
    if len(seeds) < FEWEST_SEEDS:
        return None
    numbers = [_numbers(seed) for seed in seeds]
    names = sorted(set(_numbers(run)).intersection(*numbers))
    for name in names:
        values = [found[name] for found in numbers]
        mean, spread = statistics.fmean(values), max(statistics.stdev(values), 1e-6 * max(map(abs, values)))
        reach = quantile(len(values) - 1, alarm / len(names)) * spread * math.sqrt(1 + 1 / len(values))
        value = _numbers(run)[name]
        if abs(value - mean) > reach:
            return f"{name} is {value:.6g}, where {len(values)} seeds lead to expect {mean:.6g} +- {reach:.2g}"
    return ""


def _numbers(run: Run) -> dict[str, float]:
    """The finite plain numbers among a run's results, less its times."""
    return {
        name: float(value)
        for name, value in run.results.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
        if not name.endswith("seconds")
    }


@dataclass
class Survey:
    """What the versions of many runs came to."""

    kinds: dict[str, str] = field(default_factory=dict)  # run id -> relation of the version that differs most
    contested: dict[str, str] = field(default_factory=dict)  # run id -> why a verdict must not rest on it
    untold: set[str] = field(default_factory=set)  # of another execution, with too few seeds to judge it

    def add(self, other: Survey) -> None:
        self.kinds |= other.kinds
        self.contested |= other.contested
        self.untold |= other.untold

    def lines(self) -> list[str]:
        """The survey as text; nothing where every run has one version."""
        if not self.kinds:
            return []
        counts = Counter(self.kinds.values())
        text = ", ".join(f"{counts[kind]} {kind}" for kind in SEVERITY if counts[kind])
        runs = f"{counted(len(self.kinds), 'run')} {'are' if len(self.kinds) > 1 else 'is'} held"
        found = [f"{runs} in several versions: {text}; the first source decides"]
        return found + [f"CONTESTED {why}" for why in self.contested.values()]


SEVERITY = ("equal", "timed again", "confirmed", "other execution", "contested")


def survey(held: Mapping[str, Sequence[Run]], timed: Kind, arithmetic: Kind = lambda name: False) -> Survey:
    """Judge the versions of runs, by run id, the deciding version first; runs of one version are no matter."""
    found = Survey()
    several = {run_id: list(runs) for run_id, runs in held.items() if len(runs) > 1}
    odd: list[tuple[str, Run, Run]] = []
    for run_id, (first, *others) in several.items():
        name = first.spec.experiment
        kinds = [relation(first, other, timed=timed(name), arithmetic=arithmetic(name)) for other in others]
        kind = max(kinds, key=SEVERITY.index)
        found.kinds[run_id] = kind
        if kind == "contested":
            found.contested[run_id] = (
                f"run {run_id} ({name}): two versions of the same source"
                + (" " if arithmetic(name) else ", execution and processor ")
                + "hold different tables; find out which is right and remove the other"
            )
        elif kind == "other execution" and not timed(first.spec.experiment):
            odd.append((run_id, first, others[kinds.index(kind)]))
    settings = {run_id: (run.spec.experiment, canonical(run.spec.settings)) for run_id, (run, *_) in several.items()}
    for run_id, first, other in odd:
        maker, siblings = made_by(other), [each for each in several if settings[each] == settings[run_id]]
        # of a sibling's versions by that maker the first decides
        alike = {each: run for each in siblings for run in reversed(several[each]) if made_by(run) == maker}
        why = implausible(first, [*alike.values()], SURVEY_ALARM / len(odd))
        if why is None:
            found.untold.add(run_id)
        elif why:
            found.contested[run_id] = f"run {run_id} ({first.spec.experiment}), of two executions: {why}"
    return found
