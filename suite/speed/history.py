"""The gate's memory: what every accepted session measured, and whether that crept upwards.

The gate compares with the last accepted baseline, so a slowdown of two per cent a week is never a regression: each
stays below ``FLOOR``, and each is accepted. The history of a machine class (one line of JSON per accepted session)
keeps them all, and change points in it show where the level moved: E-divisive (Matteson and James, A Nonparametric
Approach for Multiple Change Point Analysis of Multivariate Data, 2014), the split with the largest energy distance
between its sides, tested by permutations, and again within the sides.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.runs.files import write_whole
from suite.speed.baselines import NOT_GUARDED, GateError, log_ratios, place

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CREEP = math.log1p(0.05)  # a rise of the level, all steps together, that is somebody's regression
ALARM = 0.01  # probability that a history without any change shows a rise, all its series together
FEWEST = 4  # sessions on each side of a change
SEED = 20_000
ROUNDING = 1e-9  # sums of the same distances in another order may differ by that share


@dataclass(frozen=True)
class Rise:
    """A level that has crept up: log ratios, before the first change and after the last."""

    workload: str
    clock: str
    before: float
    after: float
    changes: tuple[str, ...]  # when the first session after each change was accepted

    def __str__(self) -> str:
        rise = math.expm1(self.after - self.before)
        return f"{self.workload}: {rise:+.1%} by {self.clock} time in steps, at {', '.join(self.changes)}"


def file_of(folder: Path, machine_class: str) -> Path:
    """Where the history of a machine class lies, whether there is one or not."""
    return place(folder, machine_class).with_name("history.jsonl")


def remember(documents: Sequence[Mapping[str, Any]], folder: Path, *, anew: bool = False) -> Path:
    """Add a line for each benchmark document; ``anew`` takes the present level as wanted, and says so."""
    path = file_of(folder, documents[0]["machine"]["class"])
    path.parent.mkdir(parents=True, exist_ok=True)
    new = [json.dumps(session(document, anew=anew and number == 0)) for number, document in enumerate(documents)]
    write_whole(path, "".join(f"{line}\n" for line in [*_whole_lines(path), *new]).encode())
    return path


def _whole_lines(path: Path) -> list[str]:
    """The lines of a history; a last one that was cut off, as on a full disk, is passed over with a word."""
    *lines, last = path.read_text(encoding="utf-8").split("\n") if path.exists() else [""]
    if last:
        print(f"{path}: its last line was cut off and is passed over", file=sys.stderr)
    return lines


def session(document: Mapping[str, Any], *, anew: bool = False) -> dict[str, Any]:
    """What is remembered of a benchmark document."""
    return {
        "when": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "anew": anew,
        "versions": document.get("versions", {}),
        "workloads": medians(document),
    }


def medians(document: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The session's median log(ours / rival) by workload and clock."""
    found = {
        name: {clock: round(statistics.median(values), 5) for clock, values in log_ratios(workload).items()}
        for name, workload in document["workloads"].items()
        if workload.get("family") not in NOT_GUARDED
    }
    return {name: clocks for name, clocks in found.items() if clocks}


def recall(folder: Path, machine_class: str) -> list[dict[str, Any]]:
    """The sessions of a machine class since a level was last taken as wanted. Raises GateError for a broken line."""
    path = file_of(folder, machine_class)
    sessions: list[dict[str, Any]] = []
    for number, line in enumerate(_whole_lines(path)):
        try:
            session = json.loads(line)
            medians = [value for clocks in session["workloads"].values() for value in clocks.values()]
            if not all(map(math.isfinite, medians)) or not isinstance(session["when"], str):
                raise ValueError("its time is no text, or a median no number")
            if not isinstance(session["versions"], dict):
                raise ValueError("its versions are no mapping")
            sessions = [session] if session["anew"] else [*sessions, session]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise GateError(f"{path}, line {number + 1}, is no session: {error}") from error
    return sessions


def series(sessions: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[list[str], list[float]]]:
    """Times of acceptance and log ratios by workload and clock, of the sessions with the last one's versions.

    With other versions of the libraries the rival is another.
    """
    found: dict[tuple[str, str], tuple[list[str], list[float]]] = {}
    for session in sessions:
        if session["versions"] != sessions[-1]["versions"]:
            continue
        for name, clocks in session["workloads"].items():
            for clock, value in clocks.items():
                times, values = found.setdefault((name, clock), ([], []))
                times.append(session["when"])
                values.append(value)
    return found


def rises(sessions: Sequence[Mapping[str, Any]]) -> list[Rise]:
    """The workloads whose level lies at least ``CREEP`` above what it was, by changes that are no accident."""
    found, all_series = [], series(sessions)
    for (workload, clock), (times, values) in all_series.items():
        places = changes(values, ALARM / len(all_series))
        levels = [statistics.median(part) for part in _parts(values, places)]
        lowest = levels.index(min(levels))
        if levels[-1] - levels[lowest] >= CREEP:
            since = tuple(times[at] for at in places[lowest:])
            found.append(Rise(workload, clock, levels[lowest], levels[-1], since))
    return found


def changes(values: Sequence[float], alarm: float) -> list[int]:
    """Where the distribution of a series changes: indices of the first value after each change, ascending.

    ``alarm`` bounds the probability that a series without any change shows one.
    """
    import numpy as np

    distances = np.abs(np.subtract.outer(values, values))
    draw = np.random.default_rng(SEED)
    rounds = math.ceil(2 / alarm)
    found: list[int] = []
    todo = [(0, len(values))]
    while todo:
        begin, end = todo.pop()
        if end - begin < 2 * FEWEST:
            continue
        part = distances[begin:end, begin:end]
        at, size = _split(part)
        as_large = 0
        for _ in range(rounds):
            order = draw.permutation(end - begin)
            as_large += _split(part[np.ix_(order, order)])[1] >= size - ROUNDING * abs(size)
            if (as_large + 1) / (rounds + 1) > alarm:
                break
        else:
            found.append(begin + at)
            todo += [(begin, begin + at), (begin + at, end)]
    return sorted(found)


def _split(distances: Any) -> tuple[int, float]:
    """The split of a series [n, n] of distances with the largest energy distance between its sides."""
    import numpy as np

    n = len(distances)
    sums = np.zeros((n + 1, n + 1))
    sums[1:, 1:] = distances.cumsum(0).cumsum(1)
    left = np.arange(FEWEST, n - FEWEST + 1)
    right = n - left
    within_left = sums[left, left]
    across = sums[left, n] - within_left
    within_right = sums[n, n] - within_left - 2 * across
    energy = 2 * across / (left * right) - within_left / left**2 - within_right / right**2
    scaled = energy * left * right / n
    best = int(scaled.argmax())
    return int(left[best]), float(scaled[best])


def _parts(values: Sequence[float], places: Sequence[int]) -> list[Sequence[float]]:
    ends = [0, *places, len(values)]
    return [values[a:b] for a, b in itertools.pairwise(ends)]


def lines(sessions: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """The history as text."""
    yield f"{len(sessions)} accepted sessions since the level was last taken as wanted"
    for rise in rises(sessions):
        yield f"CREEPING {rise}"


def draw(sessions: Sequence[Mapping[str, Any]]) -> Figure:
    """The log ratios of every workload, session by session, with the level between changes."""
    from matplotlib.figure import Figure

    shown = {name: points for (name, clock), points in sorted(series(sessions).items()) if clock == "wall"}
    if not shown:
        raise GateError("no session has been accepted here; `gate NEW... --accept` begins a history")
    columns = min(4, len(shown))
    rows = math.ceil(len(shown) / columns)
    figure = Figure(figsize=(3.2 * columns, 2.1 * rows), layout="constrained")
    alarm = ALARM / len(series(sessions))
    for place_, (name, (times, values)) in enumerate(shown.items(), 1):
        axes = figure.add_subplot(rows, columns, place_)
        axes.plot([math.exp(value) for value in values], "o", markersize=3, color="tab:blue")
        places = changes(values, alarm)
        ends = [0, *places, len(values)]
        for begin, end, part in zip(ends, ends[1:], _parts(values, places), strict=False):
            axes.hlines(math.exp(statistics.median(part)), begin - 0.5, end - 0.5, color="tab:red")
        axes.set_title(name, fontsize=8)
        marked = sorted({0, len(values) - 1})
        axes.set_xticks(marked, [times[place][:10] for place in marked])
        axes.tick_params(labelsize=7)
    figure.supylabel("seconds of ours over the plain loop's", fontsize=8)
    return figure
