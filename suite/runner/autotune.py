"""Which execution is fastest here: measured once, before the first run of its kind, and kept beside the runs.

Measurements are noisy and executions differ in their last bits, so the first answer for a kind (network, batch,
device, ...) is written to the store and every later run of that kind takes it.

Ways to do the same work are timed in turns.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeVar

from suite.experiment import Experiment, OutOfTime
from suite.files import fits, read_note, write_whole
from suite.lazy import pd
from suite.runs.run import digest
from suite.spec import RunSpec, canonical
from suite.training.numerics import FIELDS, sound, synchronise

Name = TypeVar("Name", bound=Hashable)
SHORT = 10  # spells of rest
HOPELESS = 2.0  # times the fastest side's seconds
_late: ContextVar[Callable[[], bool]] = ContextVar("late", default=lambda: False)


@contextlib.contextmanager
def until(late: Callable[[], bool]) -> Iterator[None]:
    """Within this block a measurement is given up between two of its pieces once ``late`` holds."""
    token = _late.set(late)
    try:
        yield
    finally:
        _late.reset(token)


def leave_if_late() -> None:
    """Raise OutOfTime where the time that ``until`` gave is over."""
    if _late.get()():
        raise OutOfTime


def alternating(
    sides: Mapping[Name, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
    rest: float = 0.0,
    report: Callable[[float], None] = lambda share: None,
    long: float = math.inf,
) -> dict[Name, list[float]]:
    """Seconds of each side, measured in turns so that slow drifts of the machine hit all alike.

    One warm-up of each is left out. Every side must return only when its work is done (a GPU synchronised).
    A side whose warm-up takes more than ``long`` seconds, and more than twice those of the fastest, is not called
    again: these are its seconds.
    Threads of a framework turn round for some milliseconds after their work and take the core from whoever comes
    next: with ``rest`` a side that is done within ``SHORT`` such spells first waits one and makes a call untimed.
    ``report`` is told the share that is done. Raises ValueError for fewer than one repeat, and OutOfTime within
    ``until``.
    """
    if repeats < 1:
        raise ValueError(f"repeats={repeats} must be at least 1")
    found: dict[Name, list[float]] = {name: [] for name in sides}
    taken = dict.fromkeys(sides, 0.0)  # by the latest call
    turns = dict(sides)
    for repeat in range(-1, repeats):
        for name, side in turns.items():
            if taken[name] < SHORT * rest:
                time.sleep(rest)
                side()
            start = clock()
            side()
            taken[name] = clock() - start
            if repeat >= 0:
                found[name].append(taken[name])
            leave_if_late()
        if repeat < 0:
            most = max(long, HOPELESS * min(taken.values()))
            found |= {name: [seconds] for name, seconds in taken.items() if seconds > most}
            turns = {name: side for name, side in sides.items() if not found[name]}
        report((repeat + 2) / (repeats + 1))
    return found


def by_repeat(seconds: Mapping[Any, list[float]], name: str) -> pd.DataFrame:
    """Seconds of sides that were timed in turns: a row for each repeat and side, whose column bears this name."""
    wide = pd.DataFrame(seconds).rename_axis("repeat")
    return wide.melt(var_name=name, value_name="seconds", ignore_index=False).reset_index()


def preferred(
    seconds: Mapping[Name, Sequence[float]], simple: Name, margin: float = 0.05, steady: float | None = None
) -> Name:
    """The name with the least median time, unless ``simple`` is within ``margin`` of it (a share of its time).

    ``steady`` is the margin where the other was faster in every repeat; values of the same place were taken in the
    same turn, and one that was slow at once has no other. None: the same margin. Raises ValueError if ``simple`` was
    not measured.
    """
    if simple not in seconds:
        raise ValueError(f"{simple!r} was not measured; there are {list(seconds)}")
    middle = {name: median(row) for name, row in seconds.items()}
    best = min(middle, key=lambda name: middle[name])
    if steady is not None and all(a < b for a, b in zip(seconds[best], seconds[simple], strict=False)):
        margin = steady
    return simple if middle[best] > middle[simple] * (1 - margin) else best


# Runs estimated to take less are not measured. The estimate counts the native step, which only a measurement chooses:
# searches of 8 s took 45 by the loop.
WORTH_SECONDS = 5.0
# How much less time than the default another execution must take, as a share: the second where it was the faster in
# every repeat, which noise alone does once in 128 times.
MARGIN, STEADY = 0.05, 0.02
REPEATS = 7
LONG = 1.0  # seconds of an update; sixteen learners of ResNet-32 take twenty, and nine by six ways half an hour
REST = 0.02  # seconds, after which torch's threads have gone to sleep
FEWEST_BATCHES = 2  # of an epoch, below which ISGD has no chart
# What a search leaves to its driver, and how updates that are timed come to no test.
ENDLESS = {"algorithm": {"name": "sgd"}, "updates": 10**9}
PLAIN = {"evaluate": {"every": 10**9}, "order": {"kind": "fixed-cycle"}, "exchange": None}


def decide(store: Path, experiment: Experiment, spec: RunSpec, execution: dict[str, Any]) -> Mapping[str, Any]:
    """The execution of a new run; says why it is so."""
    if "path" in spec.settings:
        if spec.settings["path"] == "captured" and execution["device"] != "cuda":
            return execution | {"path": "looped", "reason": "path captured needs CUDA, which this device has not"}
        if spec.settings["path"] == "native":
            from suite.training.machine_code import NativeError

            try:
                return execution | {"build": native_build(spec, execution), "reason": "the settings name it"}
            except NativeError as error:
                return execution | {"path": "looped", "reason": f"no native gradient: {error}"}
        return execution | {"reason": "the settings name it"}
    if experiment.measure is None:
        return execution
    if experiment.seconds(spec) < WORTH_SECONDS:
        return execution | {"reason": "too short to measure"}
    kind = _kind(spec, execution)
    path = store / "choices" / f"{digest(kind.encode())[:20]}.json"
    changes = _read(path, execution)
    if changes is None:
        changes = _keep(path, kind, execution, experiment.measure()(spec, execution))
    return execution | changes


def native_build(spec: RunSpec, execution: Mapping[str, Any]) -> str:
    """The build of a run's native step on this machine, compared with autograd. Raises NativeError without one."""
    from suite.training.build import random_classification
    from suite.training.gradients.native import Native
    from suite.training.numerics import apply

    apply(execution)
    problem = random_classification(spec.settings["model"], 1, execution, execution["channels_last"])
    return Native(problem).library.build


def _kind(spec: RunSpec, execution: Mapping[str, Any]) -> str:
    from suite.runs.environment import cpu_name, versions

    s = spec.settings
    machine = {name: execution[name] for name in ("device", "threads", "precision")}
    if execution["device"] == "cpu":
        from suite.training.gradients.native import SOURCE

        machine["native"] = SOURCE.toolchain()  # a choice names a build, which another compiler would not make
    return canonical(
        {
            "model": s["model"],
            "algorithm": algorithm_name(s),
            "batch": s["batch"],
            "workers": s.get("workers", 1),
            # a server takes the gradients of 1/n of its learners at a time, of all where n is 0
            **({"n": s["algorithm"].get("n", 0)} if "server" in s else {}),
            "cpu": cpu_name(),
            "torch": versions().get("torch", ""),
            **machine,
        }
    )


def algorithm_name(settings: Mapping[str, Any]) -> str:
    """Plain SGD where the settings name none: searches train with nothing else."""
    return str(settings.get("algorithm", {"name": "sgd"})["name"])


def _read(path: Path, execution: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a kept choice changes; None where there is none, or none that leads to an execution."""
    note = read_note(path, {"changes": dict})
    if note is None:
        return None
    whole = {**execution, **note["changes"]}
    return note["changes"] if fits(whole, FIELDS) and sound(whole) else None


def _keep(path: Path, kind: str, execution: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Write a choice unless another process was first; returns the one that stands."""
    if _read(path, execution) is None:  # absent, or no choice
        path.parent.mkdir(exist_ok=True)
        write_whole(path, json.dumps({"kind": json.loads(kind), "changes": dict(changes)}, indent=1).encode())
    return _read(path, execution) or dict(changes)


class Candidate(NamedTuple):
    """An execution that is measured."""

    path: str
    channels_last: bool
    onednn: bool
    direct: bool = False  # native convolutions by direct sums, where they could make fewer multiplications

    def __str__(self) -> str:
        layout = ", channels-last" if self.channels_last else ""
        kernels = ", direct sums" if self.direct else "" if self.onednn else ", own convolutions"
        return self.path + layout + kernels


DEFAULT = Candidate("looped", True, True)


class Ways(NamedTuple):
    """Executions that can be measured."""

    calls: dict[Candidate, Callable[[], object]]  # of which each makes an update
    builds: dict[Candidate, str]  # of native ways
    refused: dict[str, str]  # why there are no others, by name


def measure_training(spec: RunSpec, execution: Mapping[str, Any]) -> dict[str, Any]:
    """Path, memory format and kernels for training runs, by timing updates on random pictures.

    Updates of a server differ in the learners that they hear of, and are the same for all ways in each turn. On one
    CPU thread processor time is counted, which other processes disturb least.
    """
    from suite.training.numerics import apply

    apply(execution)
    device = execution["device"]
    calls, builds, refused = ways(spec, execution)
    refused |= failing(calls)
    if device == "cpu" and execution["threads"] == 1:
        seconds = alternating(calls, REPEATS, time.thread_time, long=LONG)
    else:
        seconds = alternating(calls, REPEATS, rest=REST if device == "cpu" else 0.0, long=LONG)
    middle = {way: median(taken) for way, taken in seconds.items()}
    chosen = preferred(seconds, DEFAULT, MARGIN, STEADY)
    return {
        **{name: value for name, value in chosen._asdict().items() if name != "direct"},  # the build says that
        **({"build": builds[chosen]} if chosen in builds else {}),
        "reason": "measured",
        # how many times as fast as the default
        "measured": {str(way): middle[DEFAULT] / taken for way, taken in middle.items()},
        "refused": refused,
    }


def ways(spec: RunSpec, execution: Mapping[str, Any]) -> Ways:
    """Every path in both memory formats, as far as the network and the device allow."""
    from suite.training.build import ALGORITHMS, random_classification
    from suite.training.gradients.native import Native, NativeError
    from suite.training.numerics import OwnKernels
    from suite.training.recording import refusal

    settings = spec.settings
    workers = settings.get("workers", 1)
    pictures = FEWEST_BATCHES * settings["batch"] * workers
    rows = workers if ALGORITHMS[algorithm_name(settings)].replicated else 1  # points of a turn
    found = Ways({}, {}, {})

    def add(way: Candidate, problem: Any, build: str | None = None) -> None:
        found.calls[way] = update_call(spec, {**execution, "path": way.path, "build": build}, problem)

    for channels_last in (True, False):
        problem = random_classification(settings["model"], pictures, execution, channels_last)
        add(Candidate("looped", channels_last, True), problem)
        if execution["device"] == "cpu" and not channels_last:
            add(Candidate("looped", False, False), problem.under(OwnKernels()))
        if rows == 1:
            found.refused["vectorised"] = "there is one point only"
        elif problem.dropout:
            found.refused["vectorised"] = "dropout's masks are drawn run by run"
        else:
            add(Candidate("vectorised", channels_last, True), problem)
        if channels_last:
            try:
                library = Native(problem).library
                found.builds[Candidate("native", True, True)] = library.build
                if library.winograd:
                    direct = Candidate("native", True, True, direct=True)
                    found.builds[direct] = Native(problem, direct=True).library.build
                for way, build in found.builds.items():
                    add(way, problem, build)
            except NativeError as error:
                found.refused["native"] = str(error)
        if why := refusal(problem):
            found.refused["captured"] = why
        else:
            add(Candidate("captured", channels_last, True), problem)
    return found


def failing(calls: dict[Candidate, Callable[[], object]]) -> dict[str, str]:
    """Takes out what cannot be done here after all (no memory, no kernel), with the reason. The default must work."""
    refused = {}
    for way, call in list(calls.items()):
        leave_if_late()
        try:
            call()
        except RuntimeError as error:  # also torch's own for memory
            if way == DEFAULT:
                raise
            refused[str(way)] = str(error).strip().partition("\n")[0]
            del calls[way]
    return refused


def update_call(spec: RunSpec, execution: Mapping[str, Any], problem: Any) -> Callable[[], object]:
    """A call that makes the next update as such a run does, and returns when its work is done on the device.

    Not gradients alone: what an algorithm does beside them is a good part of a small network's update, and a captured
    or native update takes it in. Whatever fails, fails in a call.
    """
    from suite.experiment import Context
    from suite.runner.pilot import build, update_of
    from suite.training.build import set_up

    @functools.cache
    def begun() -> Callable[[], object]:
        settings = {**ENDLESS, **spec.settings, **PLAIN}
        made = set_up(settings, 0, problem, problem.inputs, problem.targets)
        return update_of(build(RunSpec(spec.experiment, settings), Context(Path(), execution), made))

    def update() -> None:
        begun()()
        synchronise(execution["device"])

    return update
