"""How quantities are read from stored runs: named results, epochs to accuracy, intervals over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from suite.claims.intervals import Interval
from suite.claims.measured import Measured, exact, interval
from suite.model_averaging.time_to_accuracy import epochs_to_accuracy
from suite.papers.artifact import Evidence, Missing, Quantities
from suite.spec import RunSpec

if TYPE_CHECKING:
    from suite.runs.store import Run

Measure = Callable[[Evidence], Quantities]


def always(group: str, spec: RunSpec) -> Callable[[str], dict[str, tuple[RunSpec, ...]]]:
    """The same single run at every profile."""
    return lambda profile: {group: (spec,)}


def results(group: str, names: Mapping[str, str | tuple[str, ...]]) -> Measure:
    """Deterministic results of a run as exact quantities: claim -> one result, or several in this order."""

    def measure(evidence: Evidence) -> Quantities:
        run = evidence.run(group)
        for claim, keys in names.items():
            found: list[float] = []
            for key in (keys,) if isinstance(keys, str) else keys:
                value = run.results[key]
                found += value if isinstance(value, list) else [value]
            yield claim, exact(found, runs=(run.id,))

    return measure


def accuracies(run: Run) -> list[float]:
    """Test accuracy (share correct) at the end of every epoch of a training run."""
    table = run.curve("evaluations")
    return [1 - float(error) for error in table["test_error"][table["update"] > 0]]


def epochs(evidence: Evidence, group: str, target: float) -> list[float]:
    """Epochs to the target of every run of a group, in the order of its seeds; infinite if never reached."""
    found = [epochs_to_accuracy(accuracies(run), target) for run in evidence.runs(group)]
    return [math.inf if count is None else float(count) for count in found]


def ids(evidence: Evidence, *names: str) -> list[str]:
    return [run.id for name in names for run in evidence.runs(name)]


def spread(values: Sequence[float], kind: str, runs: Sequence[str], note: str = "") -> Measured:
    """A quantity with its Student interval over seeds. One seed, or one that never arrived, leaves it open."""
    from suite.claims.intervals import mean_interval

    if not all(math.isfinite(value) for value in values):
        missed = sum(not math.isfinite(value) for value in values)
        note = f"{note}; {missed} of {len(values)} runs never reached the target".lstrip("; ")
        middle = (
            math.inf if missed == len(values) else sum(v for v in values if math.isfinite(v)) / (len(values) - missed)
        )
        return Measured((middle,), (-math.inf,), (math.inf,), kind, len(values), tuple(runs), note)
    found: Interval = mean_interval(values)
    return interval(found.mean, found.low, found.high, kind=kind, n=len(values), runs=runs, note=note)


def several(parts: Sequence[Measured], note: str = "") -> Measured:
    """Several quantities as one with several values."""
    kinds = {part.kind for part in parts}
    assert len(kinds) == 1, kinds
    return interval(
        [value for part in parts for value in part.values],
        [value for part in parts for value in part.low],
        [value for part in parts for value in part.high],
        kind=kinds.pop(),
        n=min(part.n for part in parts),
        runs=dict.fromkeys(run for part in parts for run in part.runs),
        note=note or parts[0].note,
    )


def on_gpu(run: Run) -> bool:
    return run.environment.get("execution", {}).get("device") == "cuda"


def require(condition: bool, what: str) -> None:
    """Stop measuring for want of ``what``."""
    if not condition:
        raise Missing(what)
