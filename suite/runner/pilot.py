"""How long a training run would take here, from a few updates and a part of an evaluation; and whether it could."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from suite.experiment import Context
from suite.parameter_server.training import ServerRun
from suite.runner.cost import expected_updates
from suite.spec import RunSpec, trainings
from suite.training.build import Setup, assemble
from suite.training.evaluation import score
from suite.training.loop import TrainingRun
from suite.training.numerics import apply, synchronise

IMAGES = 1000  # of an evaluation that is timed
WARM = 2  # updates that are not


def training(spec: RunSpec, execution: Mapping[str, Any], data: Path | None, seconds: float) -> float:
    """Seconds of one run of ``train`` or ``rudra/train``: set-up, all updates, all evaluations.

    Updates are timed for about ``seconds``, at least one.
    What the first run of a process imports and reads is not counted: later ones find it there. On a CPU the seconds
    are those of a processor, as runs count them: other processes disturb them least.
    """
    apply(execution)
    settings = spec.settings
    with TemporaryDirectory() as folder:
        assemble(settings, spec.seed, execution, data)
        clock = time.process_time if execution["device"] == "cpu" else time.perf_counter
        began = clock()
        made = assemble(settings, spec.seed, execution, data)
        session = build(spec, Context(Path(folder), execution, data), made)
        set_up = clock() - began
        evaluation = evaluation_seconds(session, clock)
        update = update_of(session)
        for _ in range(WARM):
            update()
        synchronise(execution["device"])
        count, began = 0, clock()
        while not count or clock() - began < seconds:
            update()
            synchronise(execution["device"])
            count += 1
        each = (clock() - began) / count
    updates = expected_updates(spec)
    return set_up + updates * each + (updates / settings["evaluate"]["every"] + 1) * evaluation


def check(spec: RunSpec, context: Context) -> None:
    """Set up a run and the warm start before it, as they do when they begin. Raises ValueError."""
    for stage in trainings(spec):
        build(stage, context)


def build(spec: RunSpec, context: Context, made: Setup | None = None) -> TrainingRun:
    """The session that the experiment would run."""
    return (ServerRun if "server" in spec.settings else TrainingRun)(spec, context, made)


def update_of(session: TrainingRun) -> Callable[[], object]:
    """A call that makes the next update of a session."""
    turns = iter(session.turns())
    return lambda: session.update(next(turns))


def evaluation_seconds(session: TrainingRun, clock: Callable[[], float]) -> float:
    """Seconds of one evaluation, from a part of the images it reads."""
    made, settings = session.made, session.spec.settings
    inputs, targets = made.test_inputs[:IMAGES], made.test_targets[:IMAGES]
    x, buffers = session.algorithm.model(session.state), session.buffers.mean(0)
    score(made.problem, x, buffers, inputs[:100], targets[:100])
    began = clock()
    score(made.problem, x, buffers, inputs, targets)
    images = len(made.test_targets) + (settings["evaluate"].get("train_examples") or 0)
    return (clock() - began) / len(targets) * images
