"""What executes a run: an experiment is a function from a specification and its surroundings to an outcome.

A module that defines one imports all three names from here.
"""

from __future__ import annotations

import pkgutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any

from suite.runs.run import Outcome as Outcome
from suite.spec import RunSpec as RunSpec

CHECKPOINT_SECONDS = 30.0


class OutOfTime(Exception):
    """The session ends, by its time budget or a signal; the run has left a checkpoint and can be continued."""


@dataclass(frozen=True)
class Context:
    """What surrounds a run and must not change its numbers, except through ``execution``, which is recorded."""

    folder: Path  # where its checkpoint lives; exists
    execution: Mapping[str, Any]  # path, threads, precision, device: fixed before the run starts
    data: Path | None = None  # root of the data sets, or None for the environment's
    deadline: float | None = None  # time.monotonic() at which to checkpoint and raise OutOfTime
    report: Callable[[float], None] = field(default=lambda fraction: None)  # share of the run done, 0..1
    checkpoint_seconds: float = CHECKPOINT_SECONDS  # between two checkpoints
    stop: Callable[[], bool] = field(default=lambda: False)  # whether to end now as at the deadline

    @property
    def device(self) -> str:
        return self.execution.get("device", "cpu")

    @property
    def late(self) -> bool:
        return self.stop() or (self.deadline is not None and time.monotonic() > self.deadline)


# The function that does the work. It may import torch; finding it must not.
Body = Callable[[RunSpec, Context], Outcome]
# Times the ways in which a run could be executed, by its execution: what to change in it.
Measure = Callable[[RunSpec, Mapping[str, Any]], Mapping[str, Any]]
# Times a few updates, with this execution and root of the data, for about so many seconds: seconds of the whole run.
Pilot = Callable[[RunSpec, Mapping[str, Any], Path | None, float], float]
# Sets a run up and computes nothing. Raises ValueError for settings that no run could have.
Check = Callable[[RunSpec, Context], None]


def in_lab(body: Body) -> Body:
    """A body that needs a lab of hosts. Where there is none its result ``skipped`` is the reason, else empty."""

    @wraps(body)
    def run(spec: RunSpec, context: Context) -> Outcome:
        from suite.communication.link import NoLab  # every command imports this module, and few run in a lab

        try:
            made = body(spec, context)
        except NoLab as error:
            return Outcome("finished", {"skipped": str(error)})
        return replace(made, results={"skipped": "", **made.results})

    return run


def lazily(place: str) -> Callable[[], Any]:
    """What stands at a place ("package.module:name"), imported when it is called for and not before."""
    return partial(pkgutil.resolve_name, place)


def bodies(package: str) -> Callable[[str], Callable[[], Any]]:
    """What finds the functions at places ("module:name") of a package."""
    return lambda place: lazily(f"{package}.{place}")


@dataclass(frozen=True)
class Experiment:
    """How to run a kind of specification, and what that is expected to cost.

    ``load`` imports and returns the body. ``seconds`` estimates one core of the reference CPU; ``needs`` names
    data sets; ``memory`` is peak bytes. None of the three imports torch. ``settings`` are all that it knows, as in
    :data:`suite.training.settings.TRAINING`; without them only common numbers are looked at before it runs.
    """

    load: Callable[[], Body]
    seconds: Callable[[RunSpec], float] = lambda spec: 1.0
    data: Callable[[RunSpec], tuple[str, ...]] = lambda spec: ()
    memory: Callable[[RunSpec], int] = lambda spec: 300_000_000
    measure: Callable[[], Measure] | None = None  # imports what chooses an execution
    pilot: Callable[[], Pilot] | None = None  # imports what times a piece of a run
    check: Callable[[], Check] | None = None  # imports what finds settings that no run could have
    settings: Mapping[str, type | int | float] | None = None
    timed: bool = False  # its results rest on times of the machine at hand: no two runs of it agree
    clock: str = ""  # of its numbers: "none" (exact), "virtual", or "asleep" (it sleeps to compute and exchanges)
    arithmetic: bool = False  # it counts and calculates, so that every execution agrees to rounding
