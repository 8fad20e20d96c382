"""Several versions of one run: equal, timed again, of another execution, or contested.

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
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from suite.claims.intervals import quantile
from suite.runs.comparison import identical, several_builds
from suite.runs.store import Run
from suite.spec import canonical

ALARM = 0.01  # probability that one survey calls an honest execution implausible
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
    if arithmetic and _alike(_content(one), _content(other)):
        return "confirmed"
    same_maker = same_maker or (arithmetic and made_by(one, arithmetic) == made_by(other, arithmetic))
    return "contested" if same_maker else "other execution"


def _content(run: Run) -> list[object]:
    """All that a run came to, as plain values."""
    return [run.status, run.results, {name: run.curve(name).to_dict("list") for name in run.curves}]


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
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
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
        found = [f"{len(self.kinds)} runs are held in several versions: {text}; the first source decides"]
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
    settings = {run_id: _setting(runs[0]) for run_id, runs in several.items()}
    for run_id, first, other in odd:
        maker, siblings = made_by(other), [each for each in several if settings[each] == settings[run_id]]
        # of a sibling's versions by that maker the first decides
        alike = {each: run for each in siblings for run in reversed(several[each]) if made_by(run) == maker}
        why = implausible(first, [*alike.values()], ALARM / len(odd))
        if why is None:
            found.untold.add(run_id)
        elif why:
            found.contested[run_id] = f"run {run_id} ({first.spec.experiment}), of two executions: {why}"
    return found


def _setting(run: Run) -> tuple[str, str]:
    return run.spec.experiment, canonical(run.spec.settings)
