"""What this machine takes over the estimates of ``plan``: measured once, kept in the store, applied afterwards.

Estimates count operations at the speed of one core of a reference CPU. A calibration runs *pilots*, a few updates of
each kind of planned training, the costliest kinds first, and keeps measured over estimated seconds for each. Kinds
that the time did not reach, or that have no pilot, take the factor of what is most like them: trainings the median
of the measured trainings, everything else that of a simulation on the host. Only pilots import torch.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from suite.experiment import Experiment
from suite.files import NUMBER, Fields, fits, read_note, write_whole
from suite.runs.environment import machine_class
from suite.spec import RunSpec, canonical

FORMAT = 1
FILE = "calibration.json"
FIELDS: Fields = {"machine": str, "device": str, "kinds": dict, "trainings": NUMBER, "host": NUMBER}
LEAST, MOST = 1.0, 6.0  # seconds of one pilot's updates
REFERENCE_EVENTS = 100_000  # of a simulated server
REFERENCE_SECONDS = 0.34  # what they take of one core of the reference CPU

Resolve = Callable[[str], Experiment]
Time = Callable[[RunSpec, float], float]  # (spec, seconds for it) -> seconds of the whole run


@dataclass(frozen=True)
class Calibration:
    """Measured over estimated seconds: by kind, for other trainings, and for what is no training."""

    machine: str
    device: str
    kinds: Mapping[str, float]
    trainings: float
    host: float

    def factor(self, spec: RunSpec) -> float:
        """By what the estimate of a run is multiplied."""
        return self.kinds.get(kind(spec), self.trainings if "model" in spec.settings else self.host)


def kind(spec: RunSpec) -> str:
    """What decides the time of an update, whatever the seed, the rate and the number of updates are."""
    names = ("model", "batch", "workers", "data", "descent", "augment", "path", "precision")
    settings = {name: spec.settings[name] for name in names if name in spec.settings}
    algorithm = spec.settings.get("algorithm", {})
    if isinstance(algorithm, Mapping):
        settings["algorithm"] = {name: algorithm[name] for name in ("name", "n") if name in algorithm}
    return canonical({"experiment": spec.experiment, **settings})


def calibrate(
    specs: Iterable[RunSpec],
    resolve: Resolve,
    device: str,
    seconds: float,
    timed: Time,
    host: Callable[[], float],
    clock: Callable[[], float] = time.monotonic,
    note: Callable[[str], None] = lambda text: None,
) -> Calibration:
    """Run pilots for about ``seconds``, the kinds with the most estimated seconds first.

    ``timed`` raises OSError or ValueError for a run that cannot be set up here (a missing data set): its kind is
    left out. A pilot that has begun is finished, so the time can be exceeded by one.
    """
    ended = clock() + seconds
    host_factor = host()
    todo = costliest(specs, resolve)
    kinds: dict[str, float] = {}
    for place, spec in enumerate(todo):
        left = ended - clock()
        if left <= 0:
            break
        share = min(MOST, max(LEAST, left / (len(todo) - place) / 2))
        try:
            taken = timed(spec, share)
        except (OSError, ValueError) as error:
            note(f"{spec.experiment} {spec.id} could not be tried: {error}")
            continue
        kinds[kind(spec)] = taken / resolve(spec.experiment).seconds(spec)
        note(f"{spec.experiment} {spec.id}: {kinds[kind(spec)]:.2f} times the estimate")
    trainings = statistics.median(kinds.values()) if kinds else host_factor
    return Calibration(machine_class(), device, kinds, trainings, host_factor)


def costliest(specs: Iterable[RunSpec], resolve: Resolve) -> list[RunSpec]:
    """The longest run of each kind that has a pilot, the kind with the most estimated seconds first."""
    kinds: dict[str, dict[RunSpec, float]] = {}
    for spec in specs:
        experiment = resolve(spec.experiment)
        if experiment.pilot is not None:
            kinds.setdefault(kind(spec), {})[spec] = experiment.seconds(spec)
    ordered = sorted(kinds.values(), key=lambda costs: -sum(costs.values()))
    return [max(costs, key=costs.__getitem__) for costs in ordered]


def pilot_run(resolve: Resolve, device: str, data: Path | None, spec: RunSpec, seconds: float) -> float:
    """Time a run's pilot in the execution that its first run would choose here."""
    from suite.runner.autotune import WORTH_SECONDS
    from suite.training.numerics import choose

    experiment = resolve(spec.experiment)
    execution = choose(spec, device, 1)
    named = "path" in spec.settings
    if experiment.measure and not named and experiment.seconds(spec) >= WORTH_SECONDS:
        execution |= experiment.measure()(spec, execution)
    assert experiment.pilot is not None
    return experiment.pilot()(spec, execution, data, seconds)


def host_seconds() -> float:
    """This host's time for a piece of a simulation over the reference's, by processor time."""
    from reference_impls.rudra_protocol import Server
    from suite.parameter_server.protocol import GammaDurations, play

    learners = 30
    made = play(Server(learners, learners), learners, GammaDurations(1.0, 0.05, 0))
    began = time.process_time()
    for _ in islice(made, REFERENCE_EVENTS):
        pass
    return (time.process_time() - began) / REFERENCE_SECONDS


def keep(store: Path, calibration: Calibration) -> Path:
    """Write it into a store, whole or not at all; returns where."""
    path = store / FILE
    write_whole(path, (json.dumps({"format": FORMAT, **asdict(calibration)}, indent=1) + "\n").encode())
    return path


def known(store: Path) -> Calibration | None:
    """The calibration that a store has of this machine; None where there is none, or of another machine."""
    with contextlib.suppress(OSError):
        found = read_note(store / FILE, {"format": int, **FIELDS})
        ours = found and found["format"] == FORMAT and found["machine"] == machine_class()
        if found and ours and fits(found["kinds"], dict.fromkeys(found["kinds"], NUMBER)):
            return Calibration(**{name: found[name] for name in FIELDS})
    return None
